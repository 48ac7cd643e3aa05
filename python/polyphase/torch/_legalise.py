"""Modules without what another engine cannot take: transposed convolutions in words that it reads, for people who stay in PyTorch.

    y[o] = conv_transpose(x, padding=p, output_padding=q)      pre = p, post = p - q
         = conv_transpose(x and z zeros behind, padding=r)[p - r : …]

Each zero behind the input lengthens the output by a stride of places that hold the bias and nothing else, so that post + z·stride is not
below zero; r is the smaller of what is to be cut in front and behind, and a slice cuts the rest.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .._errors import ArgumentError, UnsupportedError

_CALLS = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_OVERLOADS = {"conv_transpose1d.default": 1, "conv_transpose2d.input": 2, "conv_transpose3d.input": 3}


@dataclasses.dataclass(frozen=True)
class _Limits:
    """What a target takes of a transposed convolution."""

    output_padding: str  # 'none', 'within padding', 'below stride'
    dilation_beside_stride: bool
    source: str


_TARGETS = {
    "torch_tensorrt": _Limits("within padding", False, "pytorch/TensorRT issue 3352: padding behind would be below zero; dilated and strided layers stay in PyTorch"),
    "tensorrt": _Limits("none", False, "NvInfer.h: IDeconvolutionLayer has no output padding"),
    "onnxruntime": _Limits("below stride", True, "ONNX Runtime 1.31 refuses output_padding from the stride on"),
    "openvino": _Limits("below stride", True, "OpenVINO 2026.4 is wrong from the stride on, beside groups"),
    "tvm": _Limits("below stride", True, "TVM 0.27 expects the output padding less than the strides"),
}


@dataclasses.dataclass
class _Geometry:
    stride: list[int]
    padding: list[int]
    output_padding: list[Any]  # numbers, or sizes that are open
    dilation: list[int]


def _limits_of(target: str) -> _Limits:
    if target in _TARGETS:
        return _TARGETS[target]
    raise ArgumentError(f"there is no target '{target}' to legalise modules for.", hint=f"Targets are {', '.join(_TARGETS)}.")


def _problems(geometry: _Geometry, limits: _Limits) -> list[tuple[str, str]]:
    """(rule, why) of what the target does not take."""
    out = []
    for q, p, s in zip(geometry.output_padding, geometry.padding, geometry.stride):
        if not isinstance(q, int):
            out.append(("output-padding", "output_padding follows from sizes that are open (output_size)"))
        elif limits.output_padding == "none" and q > 0:
            out.append(("output-padding", f"there is no output_padding, and it is {q}"))
        elif limits.output_padding == "within padding" and q > p:
            out.append(("output-padding", f"output_padding {q} is larger than padding {p}"))
        elif limits.output_padding == "below stride" and q >= s:
            out.append(("output-padding", f"output_padding {q} is not below the stride {s}"))
    if not limits.dilation_beside_stride and max(geometry.dilation) > 1 and max(geometry.stride) > 1:
        out.append(("dilation-with-stride", f"dilation {geometry.dilation} beside stride {geometry.stride}"))
    return out[:1]


class LegalConvTranspose(nn.Module):
    """A transposed convolution without output_padding and, where it is asked for, without dilation. Its parameters are those of the layer that
    it replaces; only a dilated kernel is larger, by taps of 0."""

    def __init__(self, layer: nn.modules.conv._ConvTransposeNd, spread: bool):
        super().__init__()
        self.layer = f"{type(layer).__name__}({layer.extra_repr()})"
        self.stride, self.padding = list(layer.stride), list(layer.padding)
        self.output_padding, self.groups = list(layer.output_padding), layer.groups
        self.spans = [(k - 1) * d + 1 for k, d in zip(layer.kernel_size, layer.dilation)]
        self.dilation = [1] * len(self.stride) if spread else list(layer.dilation)
        self.weight, self.bias = layer.weight, layer.bias
        if spread:
            taps = layer.weight.new_zeros([*layer.weight.shape[:2], *self.spans])
            taps[(slice(None), slice(None), *(slice(None, None, d) for d in layer.dilation))] = layer.weight.detach()
            self.weight = nn.Parameter(taps, layer.weight.requires_grad)

    def extra_repr(self) -> str:
        return f"for {self.layer}"

    def forward(self, x: torch.Tensor, output_size: Sequence[int] | None = None) -> torch.Tensor:
        axes = len(self.stride)
        if output_size is None:
            extra, most = self.output_padding, self.output_padding
        else:  # the sizes may be open, so there is room for whatever is legal
            wanted = list(output_size)[-axes:]
            low = [(x.shape[i - axes] - 1) * s - 2 * p + span for i, (s, p, span) in enumerate(zip(self.stride, self.padding, self.spans))]
            extra, most = [size - least for size, least in zip(wanted, low)], [s - 1 for s in self.stride]
            if not torch.compiler.is_compiling():  # traced sizes would have to be proved to be in range
                high = [least + s - 1 for least, s in zip(low, self.stride)]
                if any(not least <= size <= top for size, least, top in zip(wanted, low, high)):
                    raise ValueError(f"requested an output size of {wanted}, but valid sizes range from {low} to {high} (for an input of {x.shape[-axes:]})")
        zeros = [max(0, -(-(q - p) // s)) for p, q, s in zip(self.padding, most, self.stride)]
        behind = [p - q + z * s for p, q, z, s in zip(self.padding, most, zeros, self.stride)]
        crop = [min(p, b) for p, b in zip(self.padding, behind)]
        if any(zeros):
            x = F.pad(x, [entry for z in reversed(zeros) for entry in (0, z)])
        y = _CALLS[axes](x, self.weight, self.bias, self.stride, crop, 0, self.groups, self.dilation)
        for i in range(axes):
            first, last = self.padding[i] - crop[i], behind[i] - crop[i] + most[i] - extra[i]
            if output_size is not None or first or last:
                axis = y.dim() - axes + i
                y = y.narrow(axis, first, y.shape[axis] - first - last)
        return y


def _expect_same(layer: nn.Module, spread: bool) -> None:
    """Both on whole numbers in double precision, where every order of sums is exact: equal bit for bit."""
    generator = torch.Generator().manual_seed(1)
    one = copy.deepcopy(layer).cpu().double().eval()
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.copy_(torch.randint(-3, 4, parameter.shape, generator=generator))
        other = LegalConvTranspose(one, spread)
        for size in (4, 7):
            sizes = [size + 2 * p // s for p, s in zip(layer.padding, layer.stride)]
            x = torch.randint(-3, 4, (2, layer.in_channels, *sizes), generator=generator).double()
            if not torch.equal(one(x), other(x)):
                raise UnsupportedError(f"what was made of {layer} is not the same.", hint="That is a defect of Polyphase: report the layer.")


def _must_change(layer: nn.Module, limits: _Limits, called_with_size: bool) -> bool:
    geometry = _Geometry(list(layer.stride), list(layer.padding), list(layer.output_padding), list(layer.dilation))
    return called_with_size or bool(_problems(geometry, limits))


def legalise(net: nn.Module, example: Sequence[Any] | None, target: str) -> nn.Module:
    limits = _limits_of(target)
    out = copy.deepcopy(net)
    sized = _called_with_size(net, example) if example is not None else set()
    for name, layer in list(out.named_modules()):
        if not isinstance(layer, nn.modules.conv._ConvTransposeNd) or not _must_change(layer, limits, name in sized):
            continue
        spread = not limits.dilation_beside_stride and max(layer.dilation) > 1 and max(layer.stride) > 1
        _expect_same(layer, spread)
        legal = LegalConvTranspose(layer, spread).train(layer.training)
        if not name:
            return legal
        parent, _, leaf = name.rpartition(".")
        setattr(out.get_submodule(parent), leaf, legal)
    left = check_module(out, example, [target]) if example is not None else []
    if left:
        raise UnsupportedError(f"{left[0]['why']}, in a call that is no layer: {left[0]['where'] or left[0]['node']}.",
                               hint="Write it as torch.nn.ConvTranspose1d, 2d or 3d, which can be exchanged.")
    return out


def _called_with_size(net: nn.Module, example: Sequence[Any]) -> set[str]:
    """The layers that are given an output_size, by name."""
    seen: set[str] = set()
    hooks = []
    for name, layer in net.named_modules():
        if isinstance(layer, nn.modules.conv._ConvTransposeNd):
            def note(module: nn.Module, args: Any, kwargs: Any, name: str = name) -> None:
                if len(args) > 1 or kwargs.get("output_size") is not None:
                    seen.add(name)

            hooks.append(layer.register_forward_pre_hook(note, with_kwargs=True))
    try:
        with torch.no_grad():
            net(*example)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _entries(value: Any, axes: int) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * axes if len(values) == 1 else values


def check_module(net: nn.Module, example: Sequence[Any], targets: Sequence[str]) -> list[dict[str, str]]:
    limits = {target: _limits_of(target) for target in targets}
    program = torch.export.export(net, tuple(example))
    out = []
    for node in program.graph.nodes:
        axes = _OVERLOADS.get(str(node.target).removeprefix("aten."))
        if node.op != "call_function" or axes is None:
            continue
        given = [*node.args, *[None] * 8]
        stride, padding, output_padding, dilation = (_entries(default if value is None else value, axes) for value, default in
                                                    ((given[3], 1), (given[4], 0), (given[5], 0), (given[7], 1)))
        geometry = _Geometry(stride, padding, output_padding, dilation)
        where = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
        for target in targets:
            for rule, why in _problems(geometry, limits[target]):
                out.append({"target": target, "node": node.name, "operation": str(node.target), "rule": rule, "why": why, "source": limits[target].source,
                            "where": where[-1] if where else ""})
    return out
