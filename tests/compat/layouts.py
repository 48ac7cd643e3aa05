"""The same use with its operands laid out otherwise in memory, with open sizes, or in another dtype."""
from __future__ import annotations

import dataclasses
import random

import torch
from batches import Use

CONTIGUOUS, CHANNELS_LAST, STRIDED = LAYOUTS = ("contiguous", "channels_last", "strided")
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def strided(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Equal elements behind other strides: every second one of a larger tensor, a transposed one, or one row for all (stride 0)."""
    if tensor.dim() == 0 or tensor.numel() < 2:
        return tensor
    way = rng.choice(("sliced", "transposed", "expanded"))
    if way == "transposed" and tensor.dim() >= 2:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if way == "expanded" and tensor.shape[0] > 1:
        return tensor[:1].expand(tensor.shape)
    larger = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    larger[..., ::2] = tensor
    return larger[..., ::2]


def laid_out(use: Use, layout: str, rng: random.Random) -> Use | None:
    """None: no operand can lie so."""
    operands = list(use.operands)
    for place, operand in enumerate(operands):
        if layout == CHANNELS_LAST and operand.dim() in FORMATS:
            operands[place] = operand.contiguous(memory_format=FORMATS[operand.dim()])
        elif layout == STRIDED:
            operands[place] = strided(operand, rng)
        elif layout == CONTIGUOUS:
            operands[place] = operand.contiguous()
    if layout != CONTIGUOUS and all(operand.is_contiguous() for operand in operands):
        return None
    return dataclasses.replace(use, label=f"{use.label} {layout}", operands=operands)


def opened(use: Use) -> Use | None:
    """Every size of more than one element open; None: there is none."""
    axes = {place: tuple(axis for axis, size in enumerate(operand.shape) if size > 1) for place, operand in enumerate(use.operands)}
    axes = {place: found for place, found in axes.items() if found and place not in use.weights}
    return dataclasses.replace(use, label=f"{use.label} open", open_axes=axes) if axes else None


def cast(use: Use, dtype: torch.dtype) -> Use | None:
    """Its real operands in another dtype; None: it has none."""
    if not any(operand.is_floating_point() for operand in use.operands):
        return None
    raised = [operand - operand.min() if dtype == torch.uint8 and operand.is_floating_point() and operand.numel() else operand for operand in use.operands]  # none wraps: what is sorted stays so
    operands = [operand.to(dtype) if operand.is_floating_point() else operand for operand in raised]
    return dataclasses.replace(use, label=f"{use.label} {str(dtype).removeprefix('torch.')}", operands=operands)
