"""Programs in C: compile them, and measure bytes, instructions and time of a call."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import Row

N_COUNTED = 10
CORTEX = [
    "arm-none-eabi-gcc",
    "-mcpu=cortex-m4",
    "-mthumb",
    "-Os",
    "-std=c99",
    "-ffunction-sections",
    "-fdata-sections",
]


@dataclass
class Cost:
    """What a program in C takes: bytes on a Cortex-M4, instructions on ARM and seconds here for a label."""

    labels: npt.NDArray[np.int64]
    n_bytes: int | None
    n_written: int | None
    instructions: float | None
    seconds: float

    def rows(self, name: str) -> list[Row]:
        """Return what is known in absolute numbers."""
        units = (
            ("constants and code on a Cortex-M4, gcc -Os", "1 KiB", self.n_bytes, 1024),
            ("memory that is written, without the stack", "1 KiB", self.n_written, 1024),
            ("instructions for a label on a Cortex-M4, gcc -Os", "1000 instructions", self.instructions, 1000),
            ("time for a label here, gcc -O2", "1 µs", self.seconds, 1e-6),
        )
        return [Row(f"{name}: {what}", unit, value / one) for what, unit, value, one in units if value is not None]


def c_array(kind: str, name: str, values: npt.NDArray) -> str:
    """Write an array as C."""
    return f"static const {kind} {name}[] = {{ {', '.join(map(str, values.ravel().tolist()))} }};"


_MAIN = r"""
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
%s
int main(int n, char **arguments) {
  volatile int label;
  unsigned count = (unsigned)atoi(arguments[2]);
  if (strcmp(arguments[1], "labels") == 0)
    for (unsigned i = 0; i < count; i++) printf("%%d\n", one(i));
  else if (strcmp(arguments[1], "run") == 0)
    for (unsigned i = 0; i < count; i++) label = one(i);
  else
    for (int round = 0; round < 9; round++) {
      struct timespec a, b;
      unsigned calls = 0;
      double seconds;
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
      do {
        label = one(calls++ %% count);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
      } while (seconds < 0.1 || calls < 100);
      printf("%%.9f\n", seconds / calls);
    }
  return n < 0 && label;
}
"""


def measured(
    folder: Path, source: str, caller: str, entry: str, n: int, include: str = ".", flags: Sequence[str] = ()
) -> Cost:
    """Compile a source and a program that calls it for n objects by ``one(i)``; `entry` is what a device would call.

    The object code for the Cortex-M4 runs in a program for Linux on ARM, without its note of the processor, which the
    linker would refuse. Instructions are the difference of two runs. Bytes are those linked from `entry` on. The flags
    are for the Cortex-M4 only.
    """
    (folder / "main.c").write_text(_MAIN % caller)
    program, include = folder / "here", f"-I{include}"
    output_of(["gcc", "-O2", "-std=c99", include, folder / source, folder / "main.c", "-o", program, "-lm"])
    labels = np.array(output_of([program, "labels", n]).split(), np.int64)
    seconds = float(np.median(np.array(output_of([program, "time", n]).split(), float)))
    n_bytes = n_written = instructions = None
    if installed(CORTEX[0]):
        cortex = [*CORTEX, *flags, include, folder / source]
        output_of([*cortex, "-nostartfiles", f"-Wl,--gc-sections,-e,{entry}", "-o", folder / "device", "-lm"])
        text, data, bss = map(int, output_of(["arm-none-eabi-size", folder / "device"]).splitlines()[1].split()[:3])
        n_bytes, n_written = text + data, data + bss
    if n_bytes is not None and installed("arm-linux-gnueabihf-gcc", "qemu-arm"):
        output_of([*cortex, "-c", "-o", folder / "device.o"])
        output_of(["arm-none-eabi-objcopy", "--remove-section", ".ARM.attributes", folder / "device.o"])
        command = ["arm-linux-gnueabihf-gcc", "-O2", "-mthumb", "-static", "-std=c99", "-Wl,-z,noexecstack", include]
        output_of([*command, folder / "main.c", folder / "device.o", "-o", folder / "arm", "-lm"])
        runs = [_executed([folder / "arm", "run", f"{count:02}"]) for count in (0, N_COUNTED)]
        instructions = (runs[1] - runs[0]) / N_COUNTED
    return Cost(labels, n_bytes, n_written, instructions, seconds)


def _executed(program: list[Any]) -> int:
    """Return the number of instructions: the emulator takes one at a time and writes a line for each."""
    command = ["qemu-arm", "-singlestep", "-d", "nochain,exec", *map(str, program)]
    lines = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        while part := running.stderr.read(1 << 20):
            lines += part.count(b"\n")
    if running.returncode:
        raise RuntimeError(f"{command} ended with {running.returncode}")
    return lines


def rounded(value: float) -> str:
    """Write a number with two digits, or without decimals from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def installed(*tools: str) -> bool:
    """Return whether all tools are there, and say which one is not."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {missing[0]} is not installed")
    return not missing


def output_of(command: list[Any], text: str | None = None, folder: Path | None = None) -> str:
    """Run a command, in a folder if one is given, and return its output; raise with its errors."""
    words = list(map(str, command))
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stderr[-3000:]}")
    return done.stdout
