"""Transposed convolutions in words that another engine reads, wherever a module calls them: one rewrite, as a function and as a way to call modules.

    y[o] = conv_transpose(x, padding=p, output_padding=q)      pre = p, post = p - q
         = conv_transpose(x and z zeros behind, padding=r)[p - r : …]

Each zero behind the input lengthens the output by a stride of places that hold the bias and nothing else, so that post + z·stride is not
below zero; r is the smaller of what is to be cut in front and behind, and a slice cuts the rest.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from .._errors import ArgumentError

CALLS = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
OVERLOADS = {1: torch.ops.aten.conv_transpose1d.default, 2: torch.ops.aten.conv_transpose2d.input, 3: torch.ops.aten.conv_transpose3d.input}
_AXES = {**{call: axes for axes, call in CALLS.items()}, **{call: axes for axes, call in OVERLOADS.items()},
         **{call.overloadpacket: axes for axes, call in OVERLOADS.items()}}
_NAMES = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
_DEFAULTS = {"bias": None, "stride": 1, "padding": 0, "output_padding": 0, "groups": 1, "dilation": 1}


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a target takes of a transposed convolution."""

    output_padding: str  # 'none', 'within padding', 'below stride'
    dilation_beside_stride: bool
    source: str


_TARGETS = {
    "torch_tensorrt": Limits("within padding", False, "pytorch/TensorRT issue 3352: padding behind would be below zero; dilated and strided layers stay in PyTorch"),
    "tensorrt": Limits("none", False, "NvInfer.h: IDeconvolutionLayer has no output padding"),
    "onnxruntime": Limits("below stride", True, "ONNX Runtime 1.31 refuses output_padding from the stride on"),
    "openvino": Limits("below stride", True, "OpenVINO 2026.4 is wrong from the stride on, beside groups"),
    "tvm": Limits("below stride", True, "TVM 0.27 expects the output padding less than the strides"),
}


@dataclasses.dataclass
class Geometry:
    stride: list[int]
    padding: list[int]
    output_padding: list[Any]  # numbers, or sizes that are open
    dilation: list[int]


def limits_of(target: str) -> Limits:
    if target in _TARGETS:
        return _TARGETS[target]
    raise ArgumentError(f"there is no target '{target}' to legalise modules for.", hint=f"Targets are {', '.join(_TARGETS)}.")


def spreads(geometry: Geometry, limits: Limits) -> bool:
    return not limits.dilation_beside_stride and max(geometry.dilation) > 1 and max(geometry.stride) > 1


def problems(geometry: Geometry, limits: Limits) -> list[tuple[str, str]]:
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
    if spreads(geometry, limits):
        out.append(("dilation-with-stride", f"dilation {geometry.dilation} beside stride {geometry.stride}"))
    return out[:1]


def spread_taps(weight: torch.Tensor, dilation: Sequence[int]) -> torch.Tensor:
    """The kernel of dilation 1 that does what `weight` does with this one: taps of 0 between."""
    for i, d in enumerate(dilation):
        axis = weight.dim() - len(dilation) + i
        if d > 1:
            span = (weight.shape[axis] - 1) * d + 1
            behind = [0, 0] * (weight.dim() - axis - 1)
            weight = F.pad(weight.unsqueeze(axis + 1), [*behind, 0, d - 1]).flatten(axis, axis + 1).narrow(axis, 0, span)
    return weight


def grown_by_zeros(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry, groups: int, most: Sequence[int] | None = None) -> torch.Tensor:
    """The transposed convolution without output_padding. most: how large the output paddings may be, where they are open."""
    axes, stride, padding, extra = len(geometry.stride), geometry.stride, geometry.padding, geometry.output_padding
    open_sizes, most = most is not None, extra if most is None else most
    zeros = [max(0, -(-(q - p) // s)) for p, q, s in zip(padding, most, stride)]
    behind = [p - q + z * s for p, q, z, s in zip(padding, most, zeros, stride)]
    crop = [min(p, b) for p, b in zip(padding, behind)]
    if any(zeros):
        x = F.pad(x, [entry for z in reversed(zeros) for entry in (0, z)])
    y = CALLS[axes](x, weight, bias, stride, crop, 0, groups, geometry.dilation)
    for i in range(axes):
        first, last = padding[i] - crop[i], behind[i] - crop[i] + most[i] - extra[i]
        if open_sizes or first or last:
            axis = i - axes
            y = y.narrow(axis, first, y.shape[axis] - first - last)
    return y


@dataclasses.dataclass
class Call:
    """A call of torch.nn.functional.conv_transpose1d, 2d or 3d that PyTorch would take, its arguments in one form."""

    axes: int
    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None
    groups: int
    geometry: Geometry

    def legal(self, limits: Limits) -> torch.Tensor:
        weight, geometry = self.weight, self.geometry
        is_open = not all(isinstance(q, int) for q in geometry.output_padding)
        most = [max(s, d) - 1 for s, d in zip(geometry.stride, geometry.dilation)] if is_open else None
        if spreads(geometry, limits):
            weight = spread_taps(weight, geometry.dilation)
            geometry = dataclasses.replace(geometry, dilation=[1] * self.axes)
        return grown_by_zeros(self.x, weight, self.bias, geometry, self.groups, most)


def call_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
    """None: it is another function, or PyTorch has something to say about the arguments itself."""
    axes = _AXES.get(func)
    if axes is None or len(args) > len(_NAMES) or any(name not in _NAMES[len(args):] for name in kwargs):
        return None
    given = {**_DEFAULTS, **dict(zip(_NAMES, args)), **kwargs}
    if "input" not in given or "weight" not in given:
        return None
    geometry = Geometry(*(entries(given[name], axes) for name in ("stride", "padding", "output_padding", "dilation")))
    fixed = [*geometry.stride, *geometry.padding, *geometry.dilation]
    if any(len(values) != axes for values in vars(geometry).values()) or not all(isinstance(value, int) for value in fixed):
        return None
    if min(*geometry.stride, *geometry.dilation) < 1 or min(geometry.padding) < 0:
        return None
    for q, s, d in zip(geometry.output_padding, geometry.stride, geometry.dilation):
        if isinstance(q, int) and not 0 <= q < max(s, d):
            return None
    return Call(axes, given["input"], given["weight"], given["bias"], given["groups"], geometry)


def says_output_padding(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return func in _AXES and ("output_padding" in kwargs or len(args) > _NAMES.index("output_padding"))


def entries(value: Any, axes: int) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * axes if len(values) == 1 else values


class LegalCalls(TorchFunctionMode):
    """Inside it, calls that the target does not take are rewritten; torch.export, torch.compile and torch.jit.trace see what they became."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.limits = limits_of(target)

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        call = call_of(func, args, kwargs or {})
        if call is not None and problems(call.geometry, self.limits) and not _repeated_by_backward():
            return call.legal(self.limits)
        return func(*args, **(kwargs or {}))


def _repeated_by_backward() -> bool:
    """Whether torch.utils.checkpoint makes the backward pass call this again. It does so outside of forward, and what is saved must be the same then:
    in training at once such calls stay as they are written. What is traced is another matter."""
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return hooks is not None and not torch.compiler.is_compiling() and not torch.jit.is_tracing() and hooks(False) is not None


class _CalledLegally:
    """In front of a module's class: the same module, whose forward runs inside LegalCalls. Copies and pickles are so too."""

    legal_base: type
    legal_target: str

    def __reduce_ex__(self, protocol: Any) -> Any:
        make, args, *rest = super().__reduce_ex__(max(2, protocol))
        args = tuple(self.legal_base if entry is type(self) else entry for entry in args)
        return _made_legal, (self.legal_target, make, args), *rest


def _made_legal(target: str, make: Callable[..., Any], args: Sequence[Any]) -> nn.Module:
    return call_legally(make(*args), target)


_CLASSES: dict[tuple[type, str], type] = {}


def can_be_called_legally(module: nn.Module) -> bool:
    """Whether its forward is a function of its class: not one of a graph or of a script, which write themselves, nor of this instance."""
    return not isinstance(module, (torch.fx.GraphModule, torch.jit.ScriptModule)) and "forward" not in vars(module)


def call_legally(module: nn.Module, target: str) -> nn.Module:
    """The module itself, of a class of its own."""
    base = type(module)
    if not issubclass(base, _CalledLegally):
        if (base, target) not in _CLASSES:
            _CLASSES[base, target] = _legal_class(base, target)
        module.__class__ = _CLASSES[base, target]
    return module


def _legal_class(base: type, target: str) -> type:
    @functools.wraps(base.forward)  # whoever asks for its arguments sees theirs
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        with LegalCalls(target):
            return base.forward(self, *args, **kwargs)

    members = {"forward": forward, "legal_base": base, "legal_target": target, "__module__": base.__module__}
    return type(f"Legal{base.__name__}", (_CalledLegally, base), members)
