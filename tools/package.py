"""Build sdist and wheel, install the wheel into an empty environment, and use it there, away from the clone.

The wheel is built from the sdist, so both are complete. ``python dev.py package`` runs this.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 1_500_000  # bytes of the wheel: code and its documentation are eight tenths, bundled data the rest
SMOKE = """
import pathlib, similia as sm
assert "site-packages" in sm.__file__, sm.__file__
X, y = sm.datasets.load_promoters(return_X_y=True)
model = sm.recipes.nyshd(sm.kernels.Spectrum(k=4), n_landmarks=50, n_bits=1024, random_state=0).fit(X, y)
sm.save(model, "model.similia")
assert (sm.load("model.similia").predict(X) == model.predict(X)).all()
sm.report.write_report(model, X, y, "report.html")
assert "How well it predicts" in pathlib.Path("report.html").read_text(encoding="utf-8")
print("fitted, saved, loaded, reported")
"""


def run(*command: object, folder: Path) -> None:
    """Run a command in a folder, without this interpreter's paths; raise if it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([str(part) for part in command], cwd=folder, env=clean, check=True)


def environment(folder: Path) -> Path:
    """Make an environment, and return the path of its interpreter."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        builder = environment(folder / "build")
        run(builder, *quiet, "build", folder=folder)
        run(builder, "-m", "build", "--outdir", folder / "dist", ROOT, folder=folder)
        (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
        sizes = {path.name: path.stat().st_size for path in (wheel, sdist)}
        print(*(f"{name}: {size // 1000} kB" for name, size in sizes.items()), sep="\n", flush=True)
        if sizes[wheel.name] > LARGEST:
            print(f"the wheel has {sizes[wheel.name]} bytes, expected at most {LARGEST}", file=sys.stderr)
            return 1
        user = environment(folder / "user")
        run(user, *quiet, wheel, folder=folder)
        run(user, "-c", SMOKE, folder=folder)
        run(user, "-m", "similia.cli", "demo", folder=folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
