"""C written by HDCC, a compiler of hyperdimensional classifiers (github.com/pereverges/hdcc), beside exported C.

SIMILIA_HDCC names a folder with HDCC at commit 0d8e57c. Its C reads two sets of data from files, draws and
trains tables, and labels the second set. Only the labelling is measured, with the tables of a run of the whole program.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from c_programs import Cost, c_array, measured, output_of, rounded
from measure import Row

DIMENSIONS = (256, 512, 1024, 2048, 4096, 10_240)
_MAX_LOSS = 0.01  # as `compress` has it
# HDCC gets the floating-point unit that a Cortex-M4F has; without it, each operation would be a call.
_CORTEX_M4F = ["-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-ffp-contract=fast", "-w"]
_CORTEX_M4F += ["--specs=nosys.specs", "-Wl,--defsym,_fini=0"]  # it calls calloc, free and round of a C library
_DESCRIPTION = """
.NAME CLASSIFIER;
.WEIGHT_EMBED (VALUE LEVEL {levels} {highest});
.EMBEDDING (ID RANDOM {n_features});
.ENCODING MULTIBUNDLE(MULTIBIND(ID,VALUE));
.INPUT_DIM {n_features};
.CLASSES {n_classes};
.TYPE SEQUENTIAL;
.VECTORIAL TRUE;
.VECTOR_SIZE 128;
.NUM_THREADS 1;
.DIMENSIONS {dimensions};
.TRAIN_SIZE {n_train};
.TEST_SIZE {n_test};
"""
_LIBRARY = """
#define _GNU_SOURCE
#define main hdcc_main
#include "classifier.c"
"""
_TRAIN = """
int main(int n, char **arguments) {
  FILE *tables = fopen(arguments[n - 1], "wb");
  hdcc_main(n, arguments);
  fwrite(ID, sizeof(float), ID_DIM * DIMENSIONS, tables);
  fwrite(VALUE, sizeof(float), VALUE_DIM * DIMENSIONS, tables);
  fwrite(WEIGHT, sizeof(float), CLASSES * DIMENSIONS, tables);
  return fclose(tables);
}
"""
# HDCC's function counts the objects that it labels rightly, and frees the numbers that it is given.
_CALLER = """
struct Task { float *data; int label; };
extern float *ID, *VALUE, *WEIGHT;
extern int CORRECT_PREDICTIONS;
void encode_test_task(void *task);
__attribute__((constructor)) static void read_tables(void) {
  FILE *tables = fopen("%(tables)s", "rb");
  ID = malloc(4 * %(n_numbers)d);
  if (fread(ID, 4, %(n_numbers)d, tables) != %(n_numbers)d) exit(2);
  VALUE = ID + %(n_features)d * %(dimensions)d;
  WEIGHT = VALUE + %(levels)d * %(dimensions)d;
  fclose(tables);
}
int one(unsigned i) {
  struct Task task = { calloc(%(n_features)d, sizeof(float)), labels[i] };
  int before = CORRECT_PREDICTIONS;
  for (int j = 0; j < %(n_features)d; j++) task.data[j] = numbers[%(n_features)d * i + j];
  encode_test_task(&task);
  return CORRECT_PREDICTIONS - before;
}
"""


def checkout() -> Path | None:
    """Return the folder of HDCC, or None, saying so."""
    if folder := os.environ.get("SIMILIA_HDCC"):
        return Path(folder)
    print("skipped: SIMILIA_HDCC names no folder with HDCC")
    return None


@dataclass
class Compiled:
    """A program by HDCC, and what a label takes."""

    dimensions: int
    accuracy: float
    best: float  # of all dimensions
    n_bytes: int  # of the tables and the vector of an object, which it allocates
    cost: Cost

    def rows(self, name: str, ours: Cost, accuracy: float) -> list[Row]:
        """Return what our program takes beside this one."""
        what = f"{name}: accuracy on {len(ours.labels)} others, {accuracy:.3f}"
        rows = [Row(what, f"HDCC, {self.dimensions} dimensions: {self.accuracy:.3f}", accuracy / self.accuracy)]
        pairs = [("time for a label here, gcc -O2", "µs", 1e6 * ours.seconds, 1e6 * self.cost.seconds)]
        if ours.instructions and self.cost.instructions:
            what, unit = "instructions for a label on a Cortex-M4", "instructions of a Cortex-M4F"
            pairs.insert(0, (what, unit, ours.instructions, self.cost.instructions))
        if ours.n_bytes and ours.n_written and self.cost.n_bytes:
            what, unit = "constants, code and memory on a Cortex-M4", f"bytes, {self.n_bytes:,} of them allocated"
            pairs.insert(0, (what, unit, ours.n_bytes + ours.n_written, self.cost.n_bytes + self.n_bytes))
        for what, unit, mine, theirs in pairs:
            more = ", more" if mine > theirs else ""
            rows.append(Row(f"{name}: {what}{more}", f"HDCC, {rounded(theirs)} {unit}", mine / theirs))
        return rows


Numbers = npt.NDArray[np.int64]


def smallest(hdcc: Path, X: Numbers, y: Numbers, others: Numbers, true: Numbers) -> Compiled:
    """Return the program of the fewest dimensions whose accuracy on the others is within 0.01 of the best.

    X and the others are whole numbers from 0 up, each of which gets a level; labels are numbers from 0 up.
    """
    sizes = {"levels": int(X.max()) + 1, "n_features": X.shape[1], "n_classes": int(y.max()) + 1}
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), []
        for file, values in (("X", X), ("y", y), ("others", others), ("true", true)):
            np.savetxt(folder / file, values, "%d", ",")
            files.append(folder / file)
        accuracies = {}
        for dimensions in DIMENSIONS:
            written = _written(hdcc, folder / str(dimensions), len(y), len(true), sizes, dimensions)
            answer = output_of([written / "train", *files, written / "tables"])
            accuracies[dimensions] = float(answer.split(",")[-1])
        print("HDCC, accuracy by dimensions:", accuracies, flush=True)
        best = max(accuracies.values())
        chosen = min(size for size, accuracy in accuracies.items() if accuracy >= best - _MAX_LOSS)
        n_vectors = sizes["n_features"] + sizes["levels"] + sizes["n_classes"]
        given = sizes | {"dimensions": chosen, "n_numbers": n_vectors * chosen}
        arrays = [c_array("uint8_t", "numbers", others), c_array("int", "labels", true)]
        written = folder / str(chosen)
        caller = "\n".join(["#include <stdint.h>", *arrays, _CALLER % (given | {"tables": written / "tables"})])
        cost = measured(written, "library.c", caller, "encode_test_task", len(true), flags=_CORTEX_M4F)
    if abs(np.mean(cost.labels) - accuracies[chosen]) > 1e-6:
        raise RuntimeError(f"HDCC's labels differ from those of its own program: {np.mean(cost.labels)} are right")
    return Compiled(chosen, accuracies[chosen], best, 4 * chosen * (n_vectors + 1), cost)


def _written(hdcc: Path, folder: Path, n_train: int, n_test: int, sizes: dict[str, int], dimensions: int) -> Path:
    """Let HDCC write C into a new folder, compile the whole program there, and return the folder."""
    folder.mkdir()
    given = sizes | {"highest": sizes["levels"] - 1, "n_train": n_train, "n_test": n_test, "dimensions": dimensions}
    (folder / "classifier.hdcc").write_text(_DESCRIPTION.format(**given))
    output_of([sys.executable, hdcc / "src" / "main.py", "classifier.hdcc"], folder=folder)
    (folder / "library.c").write_text(_LIBRARY)
    (folder / "train.c").write_text(_LIBRARY + "#undef main" + _TRAIN)
    output_of(["gcc", "-O2", "-w", folder / "train.c", "-o", folder / "train", "-lm"])
    return folder
