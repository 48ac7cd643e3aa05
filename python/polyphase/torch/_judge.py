"""Whether Polyphase's tensors are PyTorch's: FP64 says how far off PyTorch itself is."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

# Units in the last place of the largest element: sums are added in another order.
_UNITS = {torch.float32: 16, torch.float64: 256}
_FACTOR = 4  # times as far from FP64 as PyTorch's own result may ours be


@dataclasses.dataclass
class Difference:
    """Of one result, or the worst of several."""

    reason: str = ""  # why it is not PyTorch's; empty: it is
    error: float = 0.0  # of the worst element, as a share of the largest
    allowed: float = 0.0  # likewise


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), torch.no_grad(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def tensors_of(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def eager(call: Callable[..., Any], operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that PyTorch gives; the operands stay as they are."""
    with quiet():
        return [result.detach().clone() for result in tensors_of(call(*[operand.clone() for operand in operands]))]


def difference(found: torch.Tensor, right: torch.Tensor, precise: torch.Tensor | None, tolerance: float | None = None) -> Difference:
    """Holds `found` against PyTorch's result, and both against FP64's (`precise`). Real numbers may err four times as far as PyTorch's own
    do, or by a few units in the last place of the largest one; or, if `tolerance` is given, by that share of the largest."""
    if found.dtype != right.dtype:
        return Difference(f"the type is {found.dtype}, not {right.dtype}")
    if found.shape != right.shape:
        return Difference(f"the shape is {list(found.shape)}, not {list(right.shape)}")
    if not right.is_floating_point():
        return Difference("" if torch.equal(found, right) else f"{int((found != right).sum())} of {right.numel()} integers differ")
    ours, theirs = found.double(), right.double()
    true = theirs if precise is None or precise.shape != right.shape else precise.double()
    special = ~torch.isfinite(theirs)
    if not torch.equal(torch.nan_to_num(ours[special], nan=7.0), torch.nan_to_num(theirs[special], nan=7.0)):
        return Difference("infinities or NaN are not where PyTorch has them")
    finite = ~special & torch.isfinite(true)
    if not bool(finite.any()):
        return Difference()
    scale = max(float(true[finite].abs().max()), 1e-30)
    allowed = max(_FACTOR * float((theirs[finite] - true[finite]).abs().max()), _UNITS.get(right.dtype, 2) * torch.finfo(right.dtype).eps * scale)
    if tolerance is not None:
        allowed = tolerance * scale
    error = float((ours[finite] - true[finite]).abs().max())
    right_enough = math.isfinite(error) and error <= allowed
    reason = "" if right_enough else f"an element is off by {error:.3g}, where {allowed:.3g} is allowed and the largest is {scale:.3g}"
    return Difference(reason, error / scale, allowed / scale)


def judge(call: Callable[..., Any], operands: Sequence[torch.Tensor], found: Sequence[torch.Tensor], tolerance: float | None = None) -> Difference:
    """Of all results of the call: the first that is wrong, or the one that is nearest to its limit."""
    right = eager(call, operands)
    if len(found) != len(right):
        return Difference(f"it gives {len(found)} results, not {len(right)}")
    precise: Sequence[torch.Tensor | None] = _precise(call, operands)
    if len(precise) != len(right):
        precise = [None] * len(right)
    differences = [difference(a, b, c, tolerance) for a, b, c in zip(found, right, precise)]
    wrong = [each for each in differences if each.reason]
    return wrong[0] if wrong else max(differences, key=lambda each: each.error / (each.allowed or 1.0), default=Difference())


def _precise(call: Callable[..., Any], operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same in FP64; nothing where the operator does not take that: a dtype among its arguments may forbid it."""
    try:
        return eager(call, [operand.double() if operand.is_floating_point() else operand for operand in operands])
    except Exception:
        return []
