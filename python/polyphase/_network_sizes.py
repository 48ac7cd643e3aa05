"""Sizes of a network's tensors: Size, and what callers may write for sizes and lists of numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Union

from . import _native
from ._errors import ArgumentError


class Size:
    """A symbolic size of a network's tensor: a name or an expression over names. Arithmetic (+ - * //) gives another, and those that
    are one expression are equal: x.size(2) * 2 == up.size(2).

        n, c, h, w = x.shape                              # (1, 3, Size('H'), Size('W'))
        y = net.reshape(x, shape=[n, c, h * w])
    """

    __module__ = "polyphase"  # where users find it

    __slots__ = ("_text",)

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Size({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __add__(self, other: SizeLike) -> Any:
        return _calculated(self, "+", other)

    def __radd__(self, other: SizeLike) -> Any:
        return _calculated(other, "+", self)

    def __sub__(self, other: SizeLike) -> Any:
        return _calculated(self, "-", other)

    def __rsub__(self, other: SizeLike) -> Any:
        return _calculated(other, "-", self)

    def __mul__(self, other: SizeLike) -> Any:
        return _calculated(self, "*", other)

    def __rmul__(self, other: SizeLike) -> Any:
        return _calculated(other, "*", self)

    def __floordiv__(self, other: SizeLike) -> Any:
        return _calculated(self, "//", other)

    def __rfloordiv__(self, other: SizeLike) -> Any:
        return _calculated(other, "//", self)


SizeLike = Union[int, str, Size]


def _calculated(left: Any, sign: str, right: Any) -> Any:
    """In the form that networks give, so that equal sizes are equal; a number where the symbols cancel."""
    for operand in (left, right):
        if not isinstance(operand, (str, Size)) and not hasattr(operand, "__index__"):
            return NotImplemented
    return size_from(_native.normal_size(f"({left}) {sign} ({right})"))


def size_from(text: str) -> int | Size:
    return int(text) if text.lstrip("-").isdigit() else Size(text)


def size_text(size: Any, what: str) -> str:
    """A size as the extension reads it."""
    if isinstance(size, (str, Size)):
        return str(size)
    try:
        return str(operator.index(size))
    except TypeError:
        raise ArgumentError(f"{what} is {size!r:.60}.", hint="Sizes are integers, names such as 'H', or sizes of tensors.") from None


def size_texts(sizes: Any, what: str) -> list[str]:
    """One size or several."""
    if isinstance(sizes, (str, Size, int)):
        return [size_text(sizes, what)]
    if sizes is None:
        return []
    if not isinstance(sizes, Sequence):
        raise ArgumentError(f"{what} is a {type(sizes).__name__}.", hint="Give one size, or a list of them.")
    return [size_text(size, f"an entry of {what}") for size in sizes]


def numbers(given: Any, what: str) -> list[int]:
    """One integer or several."""
    if given is None:
        return []
    try:
        return [operator.index(given)] if not isinstance(given, Sequence) else [operator.index(one) for one in given]
    except TypeError:
        raise ArgumentError(f"{what} is {given!r:.60}.", hint="Give an integer, or a list of them.") from None
