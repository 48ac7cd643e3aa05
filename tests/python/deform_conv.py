"""torchvision's deformable convolution without torchvision: what it computes, tap by tap, and an operator of the same declaration
where torchvision is not installed, so that programs can hold its calls."""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor

DECLARATION = ("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
               "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor")
HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None


def read_between(planes: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """planes (…, C, H, W) at places (…, h, w) between its elements: the four around each, those outside count 0."""
    height, width = planes.shape[-2:]
    out = 0
    for down in (0, 1):
        for right in (0, 1):
            row, column = rows.floor() + down, columns.floor() + right
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = (1 - (rows - row).abs()) * (1 - (columns - column).abs()) * inside
            index = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
            index = index.flatten(-2).unsqueeze(-2).expand(*planes.shape[:-2], -1)
            out = out + planes.flatten(-2).gather(-1, index).unflatten(-1, rows.shape[-2:]) * share.unsqueeze(-3)
    return out


def reference(x, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask):
    """Source: Zhu et al., Deformable ConvNets v2 (arXiv 1811.11168), equation 1; the arguments are those of torchvision's operator."""
    if x.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"not implemented for {x.dtype}")
    batch, channels, _, _ = x.shape
    outputs, _, kernel_h, kernel_w = weight.shape
    height, width = offset.shape[-2:]
    taps = kernel_h * kernel_w
    moved = offset.reshape(batch, offset_groups, taps, 2, height, width)
    counts = mask.reshape(batch, offset_groups, taps, height, width) if use_mask else torch.ones_like(moved[:, :, :, 0])
    planes = x.reshape(batch, offset_groups, channels // offset_groups, *x.shape[2:])
    read = []
    for tap in range(taps):
        rows = torch.arange(height).reshape(-1, 1) * stride_h - pad_h + tap // kernel_w * dilation_h + moved[:, :, tap, 0]
        columns = torch.arange(width) * stride_w - pad_w + tap % kernel_w * dilation_w + moved[:, :, tap, 1]
        read.append(read_between(planes, rows, columns) * counts[:, :, tap, None])
    columns = torch.stack(read, 3).reshape(batch, groups, channels // groups * taps, height * width)
    y = weight.reshape(groups, outputs // groups, -1) @ columns
    return y.reshape(batch, outputs, height, width) + bias.reshape(-1, 1, 1)


if HAS_TORCHVISION:
    import torchvision  # noqa: F401: registers it
else:
    _library = torch.library.Library("torchvision", "DEF")
    _library.define(DECLARATION)
    _library.impl("deform_conv2d", reference, "CPU")
    _library.impl("deform_conv2d", lambda x, weight, offset, *_: x.new_empty((x.shape[0], weight.shape[0], *offset.shape[2:])), "Meta")

OVERLOAD = torch.ops.torchvision.deform_conv2d.default


def deform_conv2d(x, offset, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), mask=None):
    """What torchvision.ops.deform_conv2d makes of its arguments."""
    given = x.new_zeros((x.shape[0], 1)) if mask is None else mask
    bias = x.new_zeros(weight.shape[0]) if bias is None else bias
    groups, offset_groups = x.shape[1] // weight.shape[1], offset.shape[1] // (2 * weight.shape[2] * weight.shape[3])
    return OVERLOAD(x, weight, offset, given, bias, *stride, *padding, *dilation, groups, offset_groups, mask is not None)


def operands(groups=1, offset_groups=1, kernel=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(1, 1), masked=True, batch=2, size=(7, 9), channels=(4, 6), seed=0):
    """(x, offset, mask or None, weight, bias); offsets go beyond every edge."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.randn(shape, generator=generator)

    out = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(size, padding, dilation, kernel, stride)]
    places = offset_groups * kernel[0] * kernel[1]
    mask = torch.rand(batch, places, *out, generator=generator) if masked else None
    return drawn(batch, channels[0], *size), drawn(batch, 2 * places, *out) * 3, mask, drawn(channels[1], channels[0] // groups, *kernel) * 0.3, drawn(channels[1])
