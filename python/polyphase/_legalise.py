"""Modules of PyTorch and the engines of others; PyTorch is imported by the first call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._errors import ArgumentError


def _doors(net: Any) -> Any:
    try:
        import torch

        from .torch import _legalise as doors
    except ImportError as missing:
        raise ArgumentError("PyTorch is not installed.", hint="Install torch; ONNX files go through polyphase.export.") from missing
    if not isinstance(net, torch.nn.Module):
        raise ArgumentError(f"net is a {type(net).__name__}.", hint="Give a torch.nn.Module.")
    return doors


def target_names(targets: Any) -> list[str]:
    """The names of engines, where they are a list of them."""
    if isinstance(targets, str):
        raise ArgumentError("targets is a string.", hint="Give a list of names.")
    if not isinstance(targets, Iterable):
        raise ArgumentError(f"targets is a {type(targets).__name__}.", hint="Give a list of names.")
    names = list(targets)
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"a target is a {type(name).__name__}.", hint="Give the names of engines.")
    if not names:
        raise ArgumentError("targets is empty.", hint="Give the names of engines, such as 'tensorrt'.")
    return names


def _arguments(example: Any) -> tuple[Any, ...]:
    """Those of a module's forward; a single tensor is one."""
    if hasattr(example, "shape"):
        return (example,)
    if isinstance(example, Sequence) and not isinstance(example, (str, bytes)):
        return tuple(example)
    raise ArgumentError(f"the example is a {type(example).__name__}.", hint="Give a tuple of the arguments of the module's forward.")


def legalise(net: Any, example: Sequence[Any] | None = None, *, target: str) -> Any:
    """A copy of a module without what another engine cannot take of its transposed convolutions, for people who stay in PyTorch.

    net: a torch.nn.Module. Its layers ConvTranspose1d, 2d and 3d are exchanged where the target does not take them; everything else stays.
    example: arguments of its forward. With them layers that are called with an output_size are found, and modules that call
        torch.nn.functional.conv_transpose*d (or torch.conv_transpose*d) with what the target does not take. Such a module, and a layer whose
        weights are computed (weight_norm) or whose class is a user's, stays what it is, parameters and all; its forward then makes such calls
        in words that the target takes, wherever it runs: at once, in training, under torch.export, torch.onnx.export, torch.compile and
        torch.jit.trace. What the example does not call is not looked at; a call out of a graph, a script or a forward that was
        assigned to an instance is refused with its line.
    target: 'torch_tensorrt', 'tensorrt', 'onnxruntime', 'openvino' or 'tvm', reached from PyTorch in whatever way.

    Each layer that is exchanged, and each call, was run beside what takes its place, on whole numbers in double precision: equal bit for
    bit. The parameters keep their names; a layer's kernel is larger, by taps of 0, where the target takes no dilation beside a stride.

    Raises Error: invalid_argument, unsupported.
    """
    if not isinstance(target, str):
        raise ArgumentError(f"target is a {type(target).__name__}.", hint="Give the name of an engine, such as 'tensorrt'.")
    return _doors(net).legalise(net, None if example is None else _arguments(example), target)


def check_module(net: Any, example: Sequence[Any], *, targets: Sequence[str]) -> list[dict[str, str]]:
    """What other engines would refuse or get wrong of a module's transposed convolutions, also of those that are no layers.
    polyphase.check(net, example, targets=...) is the same.

    example: arguments of its forward, for torch.export.export. targets: as for legalise.

    Returns for each such call 'target', 'node', 'operation', 'rule', 'why', 'source' and 'where', the line of the module. The fixture
    `accepted_by` of polyphase.testing asserts in pytest that there is none.

    Raises Error: invalid_argument.
    """
    names = target_names(targets)
    return _doors(net).check_module(net, _arguments(example), names)
