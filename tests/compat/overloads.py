"""Every overload of the converters' table as uses: the calls of tests/python/torch_cases, also written in place, in every dtype that PyTorch takes."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import layouts
import opinfo
import torch
from batches import Use
from torch_cases import CASES

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8)


def overload(name: str) -> torch._ops.OpOverload:
    """'aten.add_.Tensor'"""
    library, base, variant = name.split(".")
    return getattr(getattr(getattr(torch.ops, library), base), variant)


def in_place(target: torch._ops.OpOverload) -> Callable[..., object]:
    """Writes into a copy of its first operand."""
    return lambda first, *rest, **named: target(first.clone(), *rest, **named)


def written(call: Callable[..., object], name: str) -> Callable[..., object]:
    """A case's call that asks for its overload, with another in its place."""
    return lambda *operands: call(in_place(overload(name)), *operands)


def calls(converters: list[dict]) -> Iterator[tuple[str, str, Callable[..., object], list[torch.Tensor]]]:
    """(overload, label, call, operands)"""
    twins = {entry["name"].replace("_.", ".", 1): entry["name"] for entry in converters if entry["in_place"]}
    known = {entry["name"] for entry in converters}
    for case in CASES:
        name, call = case.overload, case.make()
        if isinstance(call, torch.nn.Module):
            continue
        if name in known:
            yield name, case.name, call, case.inputs()
        if name in twins and case.call is not None:
            yield twins[name], f"{case.name} in place", written(case.call, twins[name]), case.inputs()


def dtype_of(use: Use) -> str:
    """Of the first operand that is a real number, else of the first."""
    real = [operand.dtype for operand in use.operands if operand.is_floating_point()]
    found = real or [operand.dtype for operand in use.operands] or [torch.float32]
    return str(found[0]).removeprefix("torch.")


def uses(converters: list[dict]) -> Iterator[tuple[str, Use]]:
    """Contiguous, with fixed sizes; only what PyTorch itself takes and has numbers for."""
    for name, label, call, operands in calls(converters):
        plain = Use(label, call, operands)
        # A window is made in FP32 whatever it meets: what it then is in FP64 says nothing.
        dtypes = [dtype for dtype in DTYPES if dtype != torch.float64 or "window" not in name]
        casts = [layouts.cast(plain, dtype) for dtype in dtypes]
        for use in [use for use in casts if use is not None] or [plain]:
            if opinfo.has_numbers(use):
                yield name, use
