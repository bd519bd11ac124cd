"""A type for compiled loops: a vector of numbers (lanes) that stays in registers during a recurrence.

numba vectorises a loop over an array, but keeps no array in registers between iterations of an outer loop: a recurrence
in small arrays goes through memory at each step and takes twice the time. With this type the loop carries values, and
LLVM splits or joins them to the width of the processor. A vector has `LANES` or `HALF` numbers, or `WORDS` words of
packed bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16  # float32: one register of 512 bits; two additions in flight where registers have 256
HALF = LANES // 2  # to count comparisons: 512 bits compare into mask registers, which takes longer
WORDS = 4  # words of packed bits: one register of 256 bits


class Lanes(types.Type):
    """The numba type of a vector of `LANES`, `HALF` or `WORDS` numbers of one scalar type."""

    def __init__(self, scalar: types.Number, width: int = LANES) -> None:
        self.scalar, self.width = scalar, width
        super().__init__(name=f"Lanes({scalar}, {width})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        scalar = manager.lookup(lanes.scalar).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(scalar, lanes.width))


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes) -> tuple[Any, int]:
    """Return a pointer to the numbers of a contiguous 1-D array from `index` on, as `lanes`, and their alignment."""
    pointer = builder.gep(context.make_array(array_type)(context, builder, array).data, [index])
    vector = context.get_value_type(lanes)
    return builder.bitcast(pointer, vector.as_pointer()), array_type.dtype.bitwidth // 8


def _load(width: int) -> Any:
    """Return a numba intrinsic that reads `width` numbers of a contiguous 1-D array, without bounds checks."""

    def typed(_typing, array, index):  # type: ignore[no-untyped-def]
        lanes = Lanes(array.dtype, width)

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointer, align = _address(context, builder, signature.args[0], *arguments, lanes)
            return builder.load(pointer, align=align)

        return lanes(array, types.intp), generate

    return intrinsic(typed)


load = _load(LANES)  # array[index : index + LANES]
load_half = _load(HALF)  # array[index : index + HALF]
load_words = _load(WORDS)  # array[index : index + WORDS]


@intrinsic
def prefetch(_typing, array, index):  # type: ignore[no-untyped-def]
    """Start to read the cache line of ``array[index]``, of a contiguous 1-D array, from memory; do not wait for it."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        lanes = Lanes(signature.args[0].dtype)
        pointer, _ = _address(context, builder, signature.args[0], *arguments, lanes)
        pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, number(0), number(3), number(1)])  # for reading, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def store(_typing, array, index, value):  # type: ignore[no-untyped-def]
    """Write the lanes `value` to a contiguous 1-D array from `index` on, without bounds checks."""
    lanes = Lanes(array.dtype, value.width)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, align = _address(context, builder, signature.args[0], *arguments[:2], lanes)
        builder.store(arguments[2], pointer, align=align)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


def _swapped(builder: Any, rows: list[Any], apart: int) -> list[Any]:
    """Emit the step of a transposition that swaps bit log2(`apart`) of the numbers of row and column."""
    out, columns = rows.copy(), range(LANES)
    for i in (i for i in columns if not i & apart):
        a, b = rows[i], rows[i + apart]
        low = [LANES + j - apart if j & apart else j for j in columns]
        high = [LANES + j if j & apart else j + apart for j in columns]
        for k, places in ((i, low), (i + apart, high)):
            out[k] = builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), places))
    return out


@intrinsic
def transpose(_typing, source, rows, at, target, start):  # type: ignore[no-untyped-def]
    """Set ``target[start + LANES * t + k] = source[rows[k] + at + t]`` for all k and t below `LANES`.

    The arrays are contiguous and 1-D; `rows` has `LANES` places in `source`. There are no bounds checks.
    """
    lanes = Lanes(source.dtype)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        source, rows, at, target, start = arguments
        places = context.make_array(signature.args[1])(context, builder, rows).data
        vectors = []
        for k in range(LANES):
            place = builder.add(builder.load(builder.gep(places, [ir.Constant(ir.IntType(64), k)])), at)
            pointer, align = _address(context, builder, signature.args[0], source, place, lanes)
            vectors.append(builder.load(pointer, align=align))
        for apart in (8, 4, 2, 1):
            vectors = _swapped(builder, vectors, apart)
        for t, vector in enumerate(vectors):
            place = builder.add(start, ir.Constant(ir.IntType(64), LANES * t))
            pointer, align = _address(context, builder, signature.args[3], target, place, lanes)
            builder.store(vector, pointer, align=align)
        return context.get_dummy_value()

    return types.void(source, rows, types.intp, target, types.intp), generate


def _in_all(builder: Any, lanes: Any, number: Any) -> Any:
    """Emit a vector of the LLVM type `lanes` with `number` in all lanes."""
    nothing = ir.Constant(lanes, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(first, nothing, zeros)


def _splat(width: int) -> Any:
    """Return a numba intrinsic that makes a vector with a number in all of `width` lanes."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _in_all(builder, context.get_value_type(signature.return_type), arguments[0])

    def typed(_typing, number):  # type: ignore[no-untyped-def]
        return Lanes(number, width)(number), generate

    return intrinsic(typed)


splat = _splat(LANES)
splat_half = _splat(HALF)


@intrinsic
def widened(_typing, a):  # type: ignore[no-untyped-def]
    """Convert lanes of int32, float32 or float64 to float64."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        to = context.get_value_type(signature.return_type)
        if isinstance(a.scalar, types.Integer):
            return builder.sitofp(arguments[0], to)
        return arguments[0] if arguments[0].type == to else builder.fpext(arguments[0], to)

    return Lanes(types.float64, a.width)(a), generate


def _elementwise(n_arguments: int, build: Callable[..., Any]) -> Any:
    """Return a numba intrinsic of one or two `Lanes`, for which ``build(builder, *values)`` emits the LLVM code."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return build(builder, *arguments)

    def one(_typing, a):  # type: ignore[no-untyped-def]
        return a(a), generate

    def two(_typing, a, b):  # type: ignore[no-untyped-def]
        return a(a, b), generate

    return intrinsic(one if n_arguments == 1 else two)


def _call(name: str, builder: Any, *values: Any) -> Any:
    """Emit a call of LLVM's intrinsic called `name` on vectors of one type."""
    vector = values[0].type
    bits = 64 if vector.element == ir.DoubleType() else 32
    form = ir.FunctionType(vector, [vector] * len(values))
    return builder.call(cgutils.get_or_insert_function(builder.module, form, f"llvm.{name}.v{LANES}f{bits}"), values)


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _maximum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


# One instruction each; they need no assumption about NaN.
minimum = _elementwise(2, _minimum)  # a if a < b else b
maximum = _elementwise(2, _maximum)  # a if a > b else b
square_root = _elementwise(1, partial(_call, "sqrt"))  # correctly rounded
magnitude = _elementwise(1, partial(_call, "fabs"))
nearest_integer = _elementwise(1, partial(_call, "rint"))  # halves to even


@intrinsic
def where_at_most(_typing, a, b, value, other):  # type: ignore[no-untyped-def]
    """Return ``value if a <= b else other`` in each lane."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(builder.fcmp_ordered("<=", *arguments[:2]), *arguments[2:])

    return a(a, a, a, a), generate


@intrinsic
def bits_above(_typing, a, b):  # type: ignore[no-untyped-def]
    """Return a uint64 whose bit i, of `LANES` bits, is 1 if a > b in lane i."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        above = builder.fcmp_ordered(">", *arguments)
        return builder.zext(builder.bitcast(above, ir.IntType(LANES)), ir.IntType(64))

    return types.uint64(a, b), generate


@intrinsic
def no_counts(_typing):  # type: ignore[no-untyped-def]
    """Return `HALF` zeros of int32, to which `count_above` adds."""
    counts = Lanes(types.int32, HALF)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return ir.Constant(context.get_value_type(counts), [0] * HALF)

    return counts(), generate


@intrinsic
def count_above(_typing, counts, a, b):  # type: ignore[no-untyped-def]
    """Return `counts`, plus 1 in the lanes where a > b."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        above = builder.fcmp_ordered(">", *arguments[1:])
        return builder.add(arguments[0], builder.zext(above, arguments[0].type))

    return counts(counts, a, b), generate


@intrinsic
def low_bits(_typing, a):  # type: ignore[no-untyped-def]
    """Return the lower four bits of each lane of uint8."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.and_(arguments[0], ir.Constant(arguments[0].type, [15] * a.width))

    return a(a), generate


@intrinsic
def high_bits(_typing, a):  # type: ignore[no-untyped-def]
    """Return the upper four bits of each lane of uint8, as numbers up to 15."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.lshr(arguments[0], ir.Constant(arguments[0].type, [4] * a.width))

    return a(a), generate


@intrinsic
def bits_at(_typing, a, place, n):  # type: ignore[no-untyped-def]
    """Return `n` bits of each lane of unsigned integers, from bit `place` on, as numbers; both are best constants."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        lanes, *numbers = arguments
        place, n = (builder.trunc(number, lanes.type.element) for number in numbers)
        mask = builder.sub(builder.shl(n.type(1), n), n.type(1))
        return builder.and_(
            builder.lshr(lanes, _in_all(builder, lanes.type, place)), _in_all(builder, lanes.type, mask)
        )

    return a(a, types.intp, types.intp), generate


@intrinsic
def add_products(_typing, sums, levels, numbers):  # type: ignore[no-untyped-def]
    """Return `sums`, `HALF` lanes of int32, each plus two neighbouring products of unsigned and int16 lanes.

    The unsigned lanes are of uint8, or of uint16 below 2^15. The code is written so that LLVM finds the instruction, if
    there is one, that multiplies 16-bit numbers and adds pairs of products.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.VectorType(ir.IntType(32), LANES)
        products = builder.mul(builder.zext(arguments[1], wide), builder.sext(arguments[2], wide))
        even, odd = (
            builder.shuffle_vector(
                products,
                ir.Constant(wide, ir.Undefined),
                ir.Constant(ir.VectorType(ir.IntType(32), HALF), [*range(first, LANES, 2)]),
            )
            for first in (0, 1)
        )
        return builder.add(arguments[0], builder.add(even, odd))

    return sums(sums, levels, numbers), generate


def _folded(builder: Any, value: Any, width: int, join: Callable[..., Any]) -> Any:
    """Emit the join of all lanes: the two halves are joined lane by lane until one number is left."""
    while width > 1:
        width //= 2
        halves = [
            builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), width), [*numbers]))
            for numbers in (range(width), range(width, 2 * width))
        ]
        value = join(*halves)
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


def _joined(builder: Any, a: Any, b: Any, apart: int) -> Any:
    """Emit the sums of lanes of a, and of b, that are `apart` (1, 2 or 4 lanes), as halves of the groups of lanes."""
    groups = range(0, HALF, 2 * apart)
    first = [start + i + half for start in groups for half in (0, HALF) for i in range(apart)]
    return builder.add(_chosen(builder, a, b, *first), _chosen(builder, a, b, *(place + apart for place in first)))


@intrinsic
def totals(_typing, a, b, c, d, e, f, g, h):  # type: ignore[no-untyped-def]
    """Return a vector of the sums of the lanes of each of `HALF` vectors of `HALF` integers."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        vectors = [*arguments]
        for apart in (1, 2, 4):
            vectors = [_joined(builder, *pair, apart) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
        return vectors[0]

    return a(a, b, c, d, e, f, g, h), generate


@intrinsic
def load_pairs(_typing, array, index, stride):  # type: ignore[no-untyped-def]
    """Return ``array[at]`` and ``array[at + 1]`` for at = index, index + stride ...: twice `HALF` lanes of float64.

    The array is contiguous, 1-D and of float32; there are no bounds checks.
    """
    lanes = Lanes(types.float64, HALF)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, stride = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        pair = ir.IntType(64)
        pairs = ir.Constant(ir.VectorType(pair, HALF), ir.Undefined)
        for k in range(HALF):
            both = builder.load(builder.bitcast(builder.gep(data, [index]), pair.as_pointer()), align=4)
            pairs = builder.insert_element(pairs, both, ir.Constant(ir.IntType(32), k))
            index = builder.add(index, stride)
        flat = builder.bitcast(pairs, ir.VectorType(ir.FloatType(), 2 * HALF))
        parts = (_chosen(builder, flat, flat, *range(first, 2 * HALF, 2)) for first in (0, 1))
        wide = context.get_value_type(lanes)
        return context.make_tuple(builder, signature.return_type, [builder.fpext(part, wide) for part in parts])

    return types.UniTuple(lanes, 2)(array, types.intp, types.intp), generate


@intrinsic
def total(_typing, a):  # type: ignore[no-untyped-def]
    """Return the sum of all lanes: the two halves are added lane by lane until one number is left."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        add = builder.fadd if isinstance(a.scalar, types.Float) else builder.add
        return _folded(builder, arguments[0], a.width, add)

    return a.scalar(a), generate


@intrinsic
def smallest(_typing, a):  # type: ignore[no-untyped-def]
    """Return the least of all lanes, none of which is NaN."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _folded(builder, arguments[0], a.width, partial(_minimum, builder))

    return a.scalar(a), generate


@intrinsic
def multiply_add(_typing, a, b, c):  # type: ignore[no-untyped-def]
    """Return a * b + c in each lane, rounded once; processors without this instruction use the C library, slowly."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _call("fma", builder, *arguments)

    return a(a, a, a), generate


_BITS = ir.VectorType(ir.IntType(64), LANES)
_FRACTION, _BIAS, _TWO_52 = 52, 1023, 0x4330000000000000  # of float64; as float64, 2^52 + k has k as its low bits


def _bits(number: int) -> ir.Constant:
    return ir.Constant(_BITS, [number] * LANES)


def _shift(a: Any) -> ir.Constant:
    """Return c = 2^52 + 1023 in each lane; for a whole k, the low bits of c + k are the exponent field of 2^k."""
    return ir.Constant(a.type, [2.0**_FRACTION + _BIAS] * LANES)


def _power_of_two(builder: Any, a: Any) -> Any:
    biased = builder.bitcast(builder.fadd(a, _shift(a)), _BITS)
    return builder.bitcast(builder.shl(biased, _bits(_FRACTION)), a.type)


def _exponent(builder: Any, a: Any) -> Any:
    biased = builder.lshr(builder.bitcast(a, _BITS), _bits(_FRACTION))
    return builder.fsub(builder.bitcast(builder.or_(biased, _bits(_TWO_52)), a.type), _shift(a))


def _mantissa(builder: Any, a: Any) -> Any:
    fraction = builder.and_(builder.bitcast(a, _BITS), _bits(2**_FRACTION - 1))
    return builder.bitcast(builder.or_(fraction, _bits(_BIAS << _FRACTION)), a.type)


# Lanes of float64: a = 2^exponent(a) mantissa(a) with 1 <= mantissa < 2 for positive normal a;
# power_of_two(a) = 2^a for integers from -1022 to 1023, and 0 for -1023.
power_of_two = _elementwise(1, _power_of_two)
exponent = _elementwise(1, _exponent)
mantissa = _elementwise(1, _mantissa)


# ---- lanes of uint64, words of packed bits
def _bits_of(builder: Any, words: Any) -> Any:
    form = ir.FunctionType(words.type, [words.type])
    name = f"llvm.ctpop.v{words.type.count}i64"
    return builder.call(cgutils.get_or_insert_function(builder.module, form, name), [words])


def _chosen(builder: Any, a: Any, b: Any, *places: int) -> Any:
    """Emit a vector of the numbers at `places` of a, followed by b."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), [*places]))


def _sums_of_pairs(builder: Any, a: Any, b: Any) -> Any:
    return builder.add(_chosen(builder, a, b, 0, 4, 2, 6), _chosen(builder, a, b, 1, 5, 3, 7))


def _sums_of_halves(builder: Any, a: Any, b: Any) -> Any:
    return builder.add(_chosen(builder, a, b, 0, 1, 4, 5), _chosen(builder, a, b, 2, 3, 6, 7))


differing_bits = _elementwise(2, lambda builder, a, b: _bits_of(builder, builder.xor(a, b)))
plus = _elementwise(2, lambda builder, a, b: builder.add(a, b))
sums_of_pairs = _elementwise(2, _sums_of_pairs)  # a0 + a1, b0 + b1, a2 + a3, b2 + b3: `WORDS` lanes
sums_of_halves = _elementwise(2, _sums_of_halves)  # a0 + a2, a1 + a3, b0 + b2, b1 + b3: `WORDS` lanes


@intrinsic
def any_at_most(_typing, a, bound):  # type: ignore[no-untyped-def]
    """Return whether at least one lane is at most `bound`: a float64, or an int64 for counts."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        lanes, most = arguments
        compare = builder.fcmp_ordered if isinstance(a.scalar, types.Float) else builder.icmp_signed
        within = builder.bitcast(compare("<=", lanes, _in_all(builder, lanes.type, most)), ir.IntType(a.width))
        return builder.icmp_unsigned("!=", within, within.type(0))

    return types.boolean(a, a.scalar if isinstance(a.scalar, types.Float) else types.int64), generate


def _operator(function: Any, instruction: str) -> None:
    """Define a Python operator, such as ``operator.add``, for `Lanes` by the LLVM instruction of the given name."""
    apply = _elementwise(2, lambda builder, a, b: getattr(builder, instruction)(a, b))

    @overload(function)
    def typed(a, b):  # type: ignore[no-untyped-def]
        if isinstance(a, Lanes) and a == b:
            return lambda a, b: apply(a, b)
        return None


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")
