"""Write a quantised model as Verilog: a core that computes code and label, its tables, and a testbench.

The core, ``templates/model.v.jinja``, takes the whole numbers k of `similia.devices.inputs`. It has one multiplier,
tables in ROMs that are read from their first number to their last, and registers just wide enough for the sums of any
numbers k that fit its port. So no sum can overflow, and every result is that of `similia.devices.stages`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.validation import BadParameter
from similia.devices.files import answers, check_name, quantised, render, write
from similia.devices.quantised import Quantised
from similia.devices.stages import DenseSigns, HadamardSigns, Linear, Prototypes

_N_TESTS = 1000
_WITHIN_A_CLOCK = {"a", "b", "start", "shifted"}  # declared as reg, but synthesis makes no registers of them
_KEYWORDS = """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam
    design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify
    endtable endtask event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include
    initial inout input instance integer join large liblist library localparam macromodule medium module nand
    negedge nmos nor noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1
    pulldown pullup pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran
    rtranif0 rtranif1 scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table
    task time tran tranif0 tranif1 tri tri0 tri1 triand trior trireg unsigned use vectored wait wand weak0 weak1
    while wire wor xnor xor
"""


@dataclass(frozen=True)
class Rom:
    """A table of the core: name, meaning, numbers, their width in bits, and the counter that addresses the table."""

    name: str
    meaning: str
    values: npt.NDArray
    width: int
    counter: str
    signed: bool = True

    @property
    def n_bytes(self) -> int:
        return -(-len(self.values) * self.width // 8)

    @property
    def address_width(self) -> int:
        return _counter_width(len(self.values))


@dataclass(frozen=True)
class Widths:
    """Numbers of bits of the signals of the core; signals that may be negative have one bit for the sign.

    Attributes
    ----------
    k : int
        Numbers at the input.
    coordinate : int
        Sums of A k + c after their shifts, and coordinates z.
    a, b, sum : int
        Factors of the multiplier, and the sum to which it adds their product.
    shifter, by : int
        Input of the shifter, and the distance by which it shifts.
    row, column, address, numbers_address, coordinates_address, code_address, position, label : int
        Counters, and the parts of counters that address memories.
    """

    k: int
    coordinate: int
    a: int
    b: int
    sum: int
    shifter: int
    by: int
    row: int
    column: int
    address: int
    numbers_address: int
    coordinates_address: int
    code_address: int
    position: int
    label: int


@dataclass(frozen=True)
class Stage:
    """A step of the core: its meaning, and the number of clocks that it takes for an object."""

    meaning: str
    clocks: int


def export_verilog(
    model: Any, folder: str | Path, X: Any = None, *, name: str = "model", max_length: int | None = None,
    letters: str = "", overwrite: bool = False,
) -> Quantised:  # fmt: skip
    """Write a fitted pipeline as Verilog source code, for FPGAs and other chips.

    For each object, the circuit computes the same bits (the code of the object) and the same label as the Python model
    that `similia.quantise` returns.

    The core, ``NAME.v``, handles one object at a time and reads one number after another. If the model has a kernel,
    these numbers are the similarities of the object to the landmarks (the objects with which the model compares all
    others). The core does not compute the similarities; the C code from `export_c` computes them. If the model has no
    kernel, the object is a vector, and the numbers are its entries. The core outputs the code byte by byte, and the
    label as its index in ``classes_``. The core has one multiplier and one clock, and needs no vendor library. The
    testbench, ``NAME_tb.v``, simulates the core, and counts the objects for which the core and Python differ in code or
    label. ``NAME_*.hex`` hold the tables of the core and of the testbench. ``NAME_verilog.txt`` explains how to run the
    simulation, and lists sizes, clock cycles and operations.

    Parameters
    ----------
    model, folder : Pipeline or Quantised, path
        The same as in `similia.export_c`.
    X : collection of objects, optional
        Objects such as the training objects. Together with the landmarks, these objects set the limits of the model,
        such as the maximum length of an object; see `similia.quantise`. The testbench runs the first 1000 objects of
        `X` or, without `X`, the first 1000 landmarks. A model without landmarks needs `X`.
    name : str, default="model"
        Name of the module and prefix of the names of all files: a letter, then letters, digits and underscores.
    max_length, letters, overwrite : int, str, bool
        The same as in `similia.export_c`.

    Returns
    -------
    Quantised
        The model that was written.

    Raises
    ------
    TypeError, ValueError
        Errors that `similia.quantise` raises for `model` and the other parameters. Also TypeError if `model` makes
        codes without `similia.SignRandomProjection` or was quantised with ``numbers="float"``, and ValueError if `name`
        is not a valid name in Verilog.
    FileExistsError
        If a file exists and `overwrite` is False. Then nothing is written.

    Warns
    -----
    UserWarning
        If quantising changes more than 3 % of the bits of the codes of `X`, measured on at most 300 objects.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 40, 2000, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small = sm.export_verilog(model, folder, X, name="promoters")
    ...     sorted(path.name for path in Path(folder).glob("*[!x]"))
    ['promoters.v', 'promoters_tb.v', 'promoters_verilog.txt']
    """
    check_name(name)
    if name in _KEYWORDS.split():
        raise BadParameter("name", "no keyword of Verilog", repr(name), f"give another, such as '{name}_model'")
    small, _ = quantised(model, X, max_length, letters)
    _linear_and_signs(small)
    write(_rendered(small, name, *answers(small, X, _N_TESTS)), folder, overwrite)
    return small


def _rendered(small: Quantised, name: str, objects: Any, codes: npt.NDArray, labels: npt.NDArray) -> dict[str, str]:
    """Return the text of each file, by its name."""
    linear, signs = _linear_and_signs(small)
    roms = roms_of(small)
    widths = widths_of(small, roms)
    stages = stages_of(small, widths)
    facts = {
        "name": name, "small": small, "kind": small.input.kind, "roms": roms, "has": {rom.name for rom in roms},
        "w": widths, "stages": stages, "clocks": sum(stage.clocks for stage in stages), "n_tests": len(codes),
        "M": small.input.width, "R": len(linear.A), "diagonal": linear.A.ndim == 1, "n_bits": small.n_bits,
        "p": signs.flips.shape[2] if isinstance(signs, HadamardSigns) else None,
        "labels": [] if small.classes_ is None else [ascii(label) for label in small.classes_.tolist()],
        "classes": 0 if small.classes_ is None else len(small.classes_),
        "rom_bytes": sum(rom.n_bytes for rom in roms), "ram": _ram(small, widths),
    }  # fmt: skip
    core = render("model.v", facts)
    files = {f"{name}.v": core, f"{name}_tb.v": render("model_tb.v", facts)}
    files |= {f"{name}_{rom.name}.hex": _hexadecimal(rom.values, rom.width) for rom in roms}
    files[f"{name}_tb_numbers.hex"] = _hexadecimal(small.input.numbers(objects), widths.k)
    files[f"{name}_tb_codes.hex"] = _hexadecimal(codes, 8)
    if small.prototypes is not None:
        files[f"{name}_tb_labels.hex"] = _hexadecimal(labels, widths.label)
    files[f"{name}_verilog.txt"] = render("verilog.txt", facts | {"registers": _registers(core)})
    return files


def roms_of(small: Quantised) -> list[Rom]:
    """Return the tables of the core, except those of zeros only."""
    (linear, signs), prototypes = _linear_and_signs(small), small.prototypes
    roms = [_rom("factors", "A, row by row" if linear.A.ndim == 2 else "the diagonal of A", linear.A, "address")]
    if linear.c.any():
        roms.append(_rom("offsets", "c of each coordinate", linear.c, "row"))
    if linear.shifts.any():
        most = int(linear.shifts.max())
        roms.append(Rom("shifts", "a power of two for each sum", linear.shifts, most.bit_length(), "row", signed=False))
    if isinstance(signs, DenseSigns):
        roms.append(_rom("projection", "P, row by row", signs.P, "address"))
    else:
        roms.append(Rom("flips", "signs before each product", signs.flips.reshape(-1), 1, "address", signed=False))
    if isinstance(prototypes, Prototypes):
        R, bits = prototypes.R.reshape(-1), prototypes.bits
        roms.append(Rom("prototypes", "R, row by row", R > 0 if bits == 1 else R, bits, "address", signed=bits > 1))
        roms.append(_rom("weights", "m of each class", prototypes.m, "row"))
        roms.append(_rom("intercepts", "c of each class", prototypes.c, "row"))
    return roms


def widths_of(small: Quantised, roms: list[Rom]) -> Widths:
    """Return widths for which no sum overflows, for any numbers k."""
    width = {rom.name: rom.width for rom in roms}
    (linear, signs), prototypes = _linear_and_signs(small), small.prototypes
    M, R = small.input.width, len(linear.A)
    k, z = _signed_width(small.input.limit), linear.n_bits + 1
    sums = [_most(row, 2 ** (k - 1)) + abs(int(c)) for row, c in zip(linear.A, linear.c, strict=True)]
    kept = [(most << linear.guard >> int(shift)) + 1 for most, shift in zip(sums, linear.shifts, strict=True)]
    coordinate = max(z, _signed_width(max(kept)))
    a, b, totals, columns, rows = [width["factors"]], [k], sums.copy(), [M, coordinate], [R, small.n_bits]
    if isinstance(signs, DenseSigns):
        a, b = [*a, width["projection"]], [*b, z]
        totals += [_most(row, 2 ** (z - 1)) for row in signs.P]
        columns.append(R)
    if isinstance(prototypes, Prototypes):
        products = [_most(row, 1) for row in prototypes.R]
        a, b = [*a, width["prototypes"], 2, width["weights"]], [*b, 2, _signed_width(max(products))]
        totals += products
        totals += [
            abs(int(m)) * most + abs(int(c)) for most, m, c in zip(products, prototypes.m, prototypes.c, strict=True)
        ]
        columns.append(small.n_bits)
        rows.append(len(prototypes.R))
    total = _signed_width(max(totals))
    return Widths(
        k=k, coordinate=coordinate, a=max(a), b=max(b), sum=total,
        shifter=max(_signed_width(max(sums) << linear.guard), coordinate + linear.n_bits, total + linear.guard),
        by=max(coordinate, int(linear.shifts.max())).bit_length(),
        row=_counter_width(max(rows)), column=_counter_width(max(columns)),
        address=max(rom.address_width for rom in roms if rom.counter == "address"),
        numbers_address=_counter_width(M), coordinates_address=_counter_width(R),
        code_address=_counter_width(small.n_bits),
        position=1 if isinstance(signs, DenseSigns) else _counter_width(signs.flips.shape[2]),
        label=1 if prototypes is None else _counter_width(len(prototypes.R)),
    )  # fmt: skip


def stages_of(small: Quantised, widths: Widths) -> list[Stage]:
    """Return the steps of the core for an object, in order."""
    (linear, signs), n_bits = _linear_and_signs(small), small.n_bits
    M, R, terms = small.input.width, len(linear.A), int(linear.A.size)
    stages = [
        Stage("numbers k are taken, if they come without pauses", M),
        Stage(f"sums of coordinates: {terms} multiplications", terms + 2 * R),
        Stage("length of the largest sum", widths.coordinate),
        Stage(f"coordinates: {R} shifts", 2 * R),
    ]
    if isinstance(signs, DenseSigns):
        stages.append(Stage(f"bits of the code: {signs.P.size} multiplications", signs.P.size + 2 * n_bits))
    else:
        blocks, _, p = signs.flips.shape
        additions = 3 * blocks * p * (p.bit_length() - 1)
        stages.append(Stage(f"Hadamard products: {additions} additions", additions))
        stages.append(Stage("bits of the code", 2 * n_bits))
    if small.prototypes is not None:
        classes, size = len(small.prototypes.R), int(small.prototypes.R.size)
        stages.append(Stage(f"scores: {size} additions, {classes} multiplications", size + 3 * classes))
    return stages


def _linear_and_signs(small: Quantised) -> tuple[Linear, DenseSigns | HadamardSigns]:
    """Return the stages from numbers k to the code; raise if the input makes codes itself."""
    if small.linear is None or small.signs is None:
        raise TypeError(
            "an encoder of hypervectors makes codes without numbers k, which the core takes; give a pipeline with "
            "SignRandomProjection, or use export_c"
        )
    if not isinstance(small.linear, Linear) or not isinstance(small.signs, DenseSigns | HadamardSigns):
        raise TypeError("the core has no floating point; quantise the model with numbers='whole', or use export_c")
    return small.linear, small.signs


def _ram(small: Quantised, widths: Widths) -> dict[str, int]:
    """Return the number of bits of each memory that the core writes."""
    linear, signs = _linear_and_signs(small)
    found = {"numbers k": widths.k * small.input.width, "coordinates": widths.coordinate * len(linear.A)}
    if isinstance(signs, HadamardSigns):
        found["a block of Hadamard products"] = 32 * signs.flips.shape[2]
    if small.prototypes is not None:
        found["code"] = small.n_bits
    return found


def _registers(core: str) -> int:
    """Return the number of bits of the registers of a core, without its memories."""
    total = 0
    for high, names in re.findall(r"\breg (?:signed )?(?:\[(\d+):0\] )?(\w+(?:, \w+)*)[;,\n]", core):
        total += (int(high or 0) + 1) * len(set(names.split(", ")) - _WITHIN_A_CLOCK)
    return total


def _rom(name: str, meaning: str, values: npt.NDArray, counter: str) -> Rom:
    """Return a table of signed numbers of the smallest sufficient width."""
    return Rom(name, meaning, values.reshape(-1), _signed_width(int(np.abs(values.astype(np.int64)).max())), counter)


def _most(row: npt.NDArray, largest: int) -> int:
    """Return the largest sum of products of `row` with numbers of at most `largest`, exactly."""
    return int(np.abs(row.astype(np.int64)).sum()) * largest


def _signed_width(largest: int) -> int:
    """Return the number of bits of a number from -largest to largest."""
    return largest.bit_length() + 1


def _counter_width(n: int) -> int:
    """Return the number of bits of a number from 0 to n - 1."""
    return max(1, (n - 1).bit_length())


def _hexadecimal(values: npt.NDArray, width: int) -> str:
    """Return one number per line for $readmemh; negative numbers as two's complement of `width` bits."""
    digits, mask = -(-width // 4), 2**width - 1
    return "".join(f"{int(value) & mask:0{digits}x}\n" for value in values.ravel().tolist())
