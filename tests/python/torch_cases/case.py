"""A case of an ATen overload, and the operands that most of them take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import nn

aten = torch.ops.aten


@dataclasses.dataclass
class Case:
    name: str
    make: Callable[[], object]  # a function of the inputs, or a module
    inputs: Callable[[], list[torch.Tensor]]
    tolerance: float = 3e-6
    static_only: bool = False  # PyTorch itself fixes the sizes, or they must be fixed
    names: list[str] | None = None
    call: Callable | None = None  # of an overload and operands, where `make` is that


CASES: list[Case] = []


def use(overload: str, call: Callable, *inputs, label: str = "", tolerance: float = 3e-6, static_only: bool = False):
    """`call` gets the overload, then the operands."""
    name, _, variant = overload.partition(".")
    op = getattr(getattr(aten, name), variant or "default")
    made = [x() if callable(x) else x for x in inputs]
    CASES.append(Case(overload + label, lambda: lambda *given: call(op, *given), lambda: [x.clone() for x in made], tolerance, static_only, call=call))


def reals(*shape):
    return torch.linspace(-2, 2, max(1, int(torch.tensor(shape).prod()) if shape else 1)).roll(3).reshape(shape)


def positive(*shape):
    return reals(*shape).abs() + 0.25


def inside(*shape):
    return reals(*shape) * 0.45


def whole(*shape, low=-5, high=6):
    count = int(torch.tensor(shape).prod()) if shape else 1
    return (torch.arange(count) * 7 % (high - low) + low).reshape(shape)


def noise(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


X, Y = reals(3, 4), reals(2, 3, 4)
