"""A vector of `LANES` numbers as a type for compiled loops, which keeps the lanes of a recurrence in registers.

numba vectorises a loop over an array, but keeps no array in registers between iterations of an outer loop: a recurrence
in small arrays goes through memory at each step and takes twice the time. With this type the loop carries values, and
LLVM splits or joins them to the width of the processor.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16  # float32: one register of 512 bits; two additions in flight where registers have 256


class Lanes(types.Type):
    """numba's type of `LANES` numbers of one scalar type."""

    def __init__(self, scalar: types.Float) -> None:
        self.scalar = scalar
        super().__init__(name=f"Lanes({scalar})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        scalar = manager.lookup(lanes.scalar).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(scalar, LANES))


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> tuple[Any, int]:
    """Return a pointer to `LANES` numbers of a contiguous 1-D array from `index` on, and their alignment."""
    pointer = builder.gep(context.make_array(array_type)(context, builder, array).data, [index])
    lanes = context.get_value_type(Lanes(array_type.dtype))
    return builder.bitcast(pointer, lanes.as_pointer()), array_type.dtype.bitwidth // 8


@intrinsic
def load(_typing, array, index):  # type: ignore[no-untyped-def]
    """Return ``array[index : index + LANES]`` of a contiguous 1-D array, without bounds checks."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, align = _address(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=align)

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def store(_typing, array, index, value):  # type: ignore[no-untyped-def]
    """Write `value` to ``array[index : index + LANES]`` of a contiguous 1-D array, without bounds checks."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, align = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=align)
        return context.get_dummy_value()

    return types.void(array, types.intp, Lanes(array.dtype)), generate


@intrinsic
def splat(_typing, number):  # type: ignore[no-untyped-def]
    """Return `number` in all lanes."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        lanes = context.get_value_type(signature.return_type)
        first = builder.insert_element(ir.Constant(lanes, ir.Undefined), arguments[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), zeros)

    return Lanes(number)(number), generate


@intrinsic
def widened(_typing, a):  # type: ignore[no-untyped-def]
    """Convert lanes of float32 or float64 to float64."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        to = context.get_value_type(signature.return_type)
        return arguments[0] if arguments[0].type == to else builder.fpext(arguments[0], to)

    return Lanes(types.float64)(a), generate


@intrinsic
def minimum(_typing, a, b):  # type: ignore[no-untyped-def]
    """Return ``a if a < b else b`` in each lane, as one instruction that needs no assumption about NaN."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(builder.fcmp_ordered("<", *arguments), *arguments)

    return a(a, a), generate


@intrinsic
def maximum(_typing, a, b):  # type: ignore[no-untyped-def]
    """Return ``a if a > b else b`` in each lane."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return a(a, a), generate


@intrinsic
def where_at_most(_typing, a, b, value, other):  # type: ignore[no-untyped-def]
    """Return ``value if a <= b else other`` in each lane."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(builder.fcmp_ordered("<=", *arguments[:2]), *arguments[2:])

    return a(a, a, a, a), generate


def _function(name: str, n_arguments: int) -> Any:
    """Return an intrinsic that applies LLVM's function `name` in each lane."""

    def typed(_typing, *arguments):  # type: ignore[no-untyped-def]
        lanes = arguments[0]

        def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
            vector = values[0].type
            form = ir.FunctionType(vector, [vector] * n_arguments)
            full_name = f"llvm.{name}.v{LANES}f{lanes.scalar.bitwidth}"
            return builder.call(cgutils.get_or_insert_function(builder.module, form, full_name), values)

        return lanes(*[lanes] * n_arguments), generate

    return typed


@intrinsic
def square_root(_typing, a):  # type: ignore[no-untyped-def]
    """Return the correctly rounded square root of each lane."""
    return _function("sqrt", 1)(_typing, a)


@intrinsic
def magnitude(_typing, a):  # type: ignore[no-untyped-def]
    """Return |a| in each lane."""
    return _function("fabs", 1)(_typing, a)


@intrinsic
def multiply_add(_typing, a, b, c):  # type: ignore[no-untyped-def]
    """Return a b + c in each lane, rounded once; processors without this instruction use the C library, slowly."""
    return _function("fma", 3)(_typing, a, b, c)


@intrinsic
def nearest_integer(_typing, a):  # type: ignore[no-untyped-def]
    """Round each lane to the nearest integer, halves to even."""
    return _function("rint", 1)(_typing, a)


_BITS = ir.VectorType(ir.IntType(64), LANES)
_FRACTION, _BIAS, _TWO_52 = 52, 1023, 0x4330000000000000  # of float64; as float64, 2^52 + k has k as its low bits


def _bits(number: int) -> ir.Constant:
    return ir.Constant(_BITS, [number] * LANES)


@intrinsic
def power_of_two(_typing, a):  # type: ignore[no-untyped-def]
    """Return 2^a in each lane of float64, for integers a from -1022 to 1023; 0 for a = -1023."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        shifted = builder.fadd(arguments[0], ir.Constant(arguments[0].type, [2.0**_FRACTION + _BIAS] * LANES))
        exponents = builder.shl(builder.bitcast(shifted, _BITS), _bits(_FRACTION))
        return builder.bitcast(exponents, arguments[0].type)

    return a(a), generate


@intrinsic
def exponent(_typing, a):  # type: ignore[no-untyped-def]
    """Return the integer e with a = 2^e m, 1 <= m < 2, in each lane of positive normal float64."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        exponents = builder.lshr(builder.bitcast(arguments[0], _BITS), _bits(_FRACTION))
        shifted = builder.bitcast(builder.or_(exponents, _bits(_TWO_52)), arguments[0].type)
        return builder.fsub(shifted, ir.Constant(arguments[0].type, [2.0**_FRACTION + _BIAS] * LANES))

    return a(a), generate


@intrinsic
def mantissa(_typing, a):  # type: ignore[no-untyped-def]
    """Return m with a = 2^e m, 1 <= m < 2, in each lane of positive normal float64."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        fraction = builder.and_(builder.bitcast(arguments[0], _BITS), _bits(2**_FRACTION - 1))
        return builder.bitcast(builder.or_(fraction, _bits(_BIAS << _FRACTION)), arguments[0].type)

    return a(a), generate


def _operator(function: Any, instruction: str) -> None:
    """Define the operator `function` of `Lanes` by an LLVM instruction."""

    @intrinsic
    def apply(_typing, a, b):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return getattr(builder, instruction)(*arguments)

        return a(a, a), generate

    @overload(function)
    def typed(a, b):  # type: ignore[no-untyped-def]
        if isinstance(a, Lanes) and a == b:
            return lambda a, b: apply(a, b)
        return None


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")
