"""The picture of the house: rooms on their floors, drawn from the imports and the contracts in ``pyproject.toml``."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

from matplotlib.patches import Arc

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "similia"
BLUE, GREY = "#0072b2", "#9aa0a6"
MANY = 4  # imports from one room to another that are worth an arc


def floors():
    """Return the rooms of each floor, the highest first, as the contract on layers names them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|") if not room.strip().startswith("_")] for layer in layers]


def imports():
    """Count the import statements from one room to another: ``{(from, to): number}``."""
    found = Counter()
    for path in PACKAGE.rglob("*.py"):
        room = Path(path.relative_to(PACKAGE).parts[0]).stem
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("similia."):
                found[room, node.module.split(".")[1]] += 1
    return {(a, b): n for (a, b), n in found.items() if a != b}


def lines(room):
    """Return the lines of code and documentation in a room."""
    files = [PACKAGE / f"{room}.py"] if (PACKAGE / f"{room}.py").exists() else (PACKAGE / room).rglob("*.py")
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def sentence(room):
    """Return the first sentence of a room's docstring."""
    path = PACKAGE / f"{room}.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else PACKAGE / room / "__init__.py").read_text("utf-8")))
    return text.split("\n\n")[0].replace("\n", " ").split(". ")[0].split(": ")[0].rstrip(".").replace("`", "")


def draw():
    """List the rooms from the highest floor to the lowest; arcs join a room to those that it imports most."""
    import matplotlib.pyplot as plt

    rooms = [(floor, room) for floor, names in enumerate(floors()) for room in names]
    height = {room: len(rooms) - i for i, (_, room) in enumerate(rooms)}
    fig, axis = plt.subplots(figsize=(9, 0.3 * len(rooms)))
    for floor, room in rooms:
        if floor % 2 == 0:
            axis.axhspan(height[room] - 0.5, height[room] + 0.5, xmin=0.19, color=GREY, alpha=0.16, lw=0)
        axis.text(3.1, height[room], room, va="center", fontsize=10, weight="bold")
        axis.text(6.5, height[room], f"{lines(room):,}", va="center", ha="right", fontsize=9, color="#5f6368")
        axis.text(6.8, height[room], sentence(room), va="center", fontsize=9)
    for (start, end), n in imports().items():
        if start in height and end in height and n >= MANY:
            middle, tall = (height[start] + height[end]) / 2, abs(height[start] - height[end])
            width = 5.2 * tall / len(rooms)
            arc = Arc((3, middle), width, tall, theta1=90, theta2=270, color=BLUE, alpha=0.55, lw=0.4 + n / 18)
            axis.add_patch(arc)
    axis.set(xlim=(0, 16), ylim=(0.4, len(rooms) + 0.6))
    axis.axis("off")
    return fig
