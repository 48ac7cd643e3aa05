"""A case of an overload, and the operands that most of them take."""

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

    @property
    def overload(self) -> str:
        """Its name begins with it: 'add.Tensor/alpha' → 'aten.add.Tensor', 'exp' → 'aten.exp.default', 'torchvision::nms' → 'torchvision.nms.default'."""
        library, _, own = self.name.partition("/")[0].rpartition("::")
        return f"{library or 'aten'}.{own}" if "." in own else f"{library or 'aten'}.{own}.default"


CASES: list[Case] = []


def use(overload: str, call: Callable, *inputs, label: str = "", tolerance: float = 3e-6, static_only: bool = False):
    """`call` gets the overload, of ATen or 'LIBRARY::NAME', then the operands."""
    library, _, own = overload.rpartition("::")
    name, _, variant = own.partition(".")
    op = getattr(getattr(getattr(torch.ops, library or "aten"), name), variant or "default")
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
