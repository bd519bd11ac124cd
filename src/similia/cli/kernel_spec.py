"""Kernels written as text, e.g. ``GappyKmers(k=4, gaps=1)``: parsed, never evaluated."""

from __future__ import annotations

import ast
from typing import Any

import similia.kernels

_NOT_KERNELS = {"Kernel", "FeatureKernel", "pairwise"}


def parse_kernel(text: str) -> Any:
    """Return the kernel that `text` describes.

    Parameters
    ----------
    text : str
        A name of `similia.kernels`, with keyword arguments that are literals or kernels.

    Raises
    ------
    ValueError
        If `text` is not of that form, or names an unknown kernel or parameter.

    Examples
    --------
    >>> parse_kernel("Normalized(Spectrum(k=3))")
    Normalized(kernel=Spectrum())
    >>> parse_kernel("__import__('os').remove('x')")
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is not a kernel; write e.g. 'GappyKmers(k=4, gaps=1)'") from None
    return _build(tree, text)


def _build(node: ast.expr, text: str) -> Any:
    name = node if isinstance(node, ast.Name) else getattr(node, "func", None)
    if not isinstance(name, ast.Name):
        raise ValueError(f"{text!r} is not a kernel; write e.g. 'GappyKmers(k=4, gaps=1)'")
    known = sorted(set(dir(similia.kernels)) - _NOT_KERNELS)
    if name.id not in known or not name.id[0].isupper():
        raise ValueError(f"no kernel is called {name.id!r}; there are {', '.join(k for k in known if k[0].isupper())}")
    cls = getattr(similia.kernels, name.id)
    if isinstance(node, ast.Name):
        return cls()
    assert isinstance(node, ast.Call)
    arguments = [_value(argument, text) for argument in node.args]
    keywords = {str(keyword.arg): _value(keyword.value, text) for keyword in node.keywords}
    try:
        return cls(*arguments, **keywords)
    except TypeError as error:
        raise ValueError(f"{text!r}: {error}; {name.id} takes {', '.join(cls._get_param_names())}") from None


def _value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Call):
        return _build(node, text)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(element, text) for element in node.elts]
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{text!r}: {ast.unparse(node)} is neither a literal nor a kernel") from None
