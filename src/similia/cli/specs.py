"""Parse kernels and distances from text such as ``GappyKmers(k=4, gaps=1)``, without evaluating it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import similia.distances
import similia.kernels
from similia.core.text import did_you_mean, short


@dataclass(frozen=True)
class _Room:
    """A package whose classes an option can name, except `bases`; error messages use `noun` and `example`."""

    noun: str
    package: ModuleType
    example: str
    bases: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [name for name in sorted(dir(self.package)) if name[0].isupper() and name not in self.bases]


_KERNELS = _Room("kernel", similia.kernels, "GappyKmers(k=4, gaps=1)", ("Kernel", "FeatureKernel"))
_DISTANCES = _Room(
    "distance", similia.distances, "DTW(window=0.1)", ("Distance", "Facts", "FromFunction", "TwoSampleResult")
)


def parse_kernel(text: str) -> Any:
    """Return the kernel of `similia.kernels` that `text` describes; arguments are literals, kernels or distances.

    Examples
    --------
    >>> parse_kernel("Normalized(Spectrum(k=3))")
    Normalized(kernel=Spectrum())
    >>> parse_kernel("__import__('os').remove('x')")
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    return _Parser(text, (_KERNELS,)).parse()


def parse_distance(text: str) -> Any:
    """Return the distance of `similia.distances` that `text` describes, in the syntax of `parse_kernel`."""
    return _Parser(text, (_DISTANCES,)).parse()


def parse_comparison(text: str) -> Any:
    """Return the kernel or distance that `text` describes, in the syntax of `parse_kernel`."""
    return _Parser(text, (_KERNELS, _DISTANCES)).parse()


def parse_one(kernel: str | None, distance: str | None) -> Any:
    """Return the kernel of --kernel or the distance of --distance, or None without them; raise if both are given."""
    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: each says how objects are compared; drop one")
    return parse_kernel(kernel) if kernel else parse_distance(distance) if distance else None


def check_bits(bits: int) -> int:
    """Return the value of --bits; raise if it is not a positive multiple of 8."""
    if bits < 8 or bits % 8:
        raise ValueError(f"--bits must be a multiple of 8 and at least 8, got {bits}")
    return bits


@dataclass(frozen=True)
class _Parser:
    """Builds the kernel or distance that `text` describes, from its syntax tree."""

    text: str
    rooms: tuple[_Room, ...]

    def parse(self) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns about "1if" and "\\d"
                tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last three: NUL, surrogates, deep nesting
            raise self._malformed() from None
        return self._build(tree, self.rooms)

    def _malformed(self) -> ValueError:
        nouns, examples = (" or ".join(parts) for parts in zip(*((r.noun, r.example) for r in self.rooms), strict=True))
        return ValueError(f"{short(self.text, 60)} is not a {nouns}; write e.g. '{examples}'")

    def _build(self, node: ast.expr, rooms: tuple[_Room, ...]) -> Any:
        """Return an instance of the class in `rooms` that a syntax node names, with the arguments of the node."""
        name = node if isinstance(node, ast.Name) else getattr(node, "func", None)
        if not isinstance(name, ast.Name):
            raise self._malformed()
        room = next((room for room in rooms if name.id in room.names), None)
        if room is None:
            self._check_other_room(name.id, rooms)
            known = (
                ", ".join(rooms[0].names) if len(rooms) == 1 else "the classes of similia.kernels and similia.distances"
            )
            nouns = " or ".join(room.noun for room in rooms)
            meant = did_you_mean(name.id, [known for room in rooms for known in room.names])
            raise ValueError(f"no {nouns} is called {short(name.id)}{meant}; known are {known}")
        cls = getattr(room.package, name.id)
        call = node if isinstance(node, ast.Call) else ast.Call(name, [], [])
        arguments = [self._value(argument) for argument in call.args]
        keywords = {str(keyword.arg): self._value(keyword.value) for keyword in call.keywords}
        if len(keywords) < len(call.keywords):
            raise ValueError(f"{short(self.text, 60)}: {name.id} gets a parameter twice; give it once")
        try:
            return cls(*arguments, **keywords)
        except TypeError as error:
            taken = cls._get_param_names()
            unknown = next((keyword for keyword in keywords if keyword not in taken), None)
            meant = "" if unknown is None else did_you_mean(unknown, taken)
            problem = short(str(error), 100)[1:-1]
            known = ", ".join(taken) or "no parameters"
            raise ValueError(f"{short(self.text, 60)}: {problem}{meant}; {name.id} takes {known}") from None

    def _check_other_room(self, name: str, rooms: tuple[_Room, ...]) -> None:
        """Raise if `name` is the name of a distance but a kernel is expected, or the reverse."""
        other = next((room for room in (_KERNELS, _DISTANCES) if room not in rooms and name in room.names), None)
        if other is not None:
            own = rooms[0].noun
            raise ValueError(
                f"{name} is a {other.noun}, not a {own}; write --{other.noun} '{short(self.text, 60)[1:-1]}' instead "
                f"of --{own}"
            )

    def _value(self, node: ast.expr) -> Any:
        """Return the kernel, distance, list, tuple or literal that a syntax node describes."""
        if isinstance(node, ast.Call):
            return self._build(node, (_KERNELS, _DISTANCES))
        if isinstance(node, ast.List | ast.Tuple):
            values = [self._value(element) for element in node.elts]
            return values if isinstance(node, ast.List) else tuple(values)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):  # a set in a set, deep nesting
            found = short(ast.get_source_segment(self.text.strip(), node))
            raise ValueError(f"{short(self.text, 60)}: {found} is neither a number, a text nor a kernel") from None
