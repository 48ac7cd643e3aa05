"""Arrays whose types neither DLPack nor buffers can name, and why something is no array; called by the extension."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import ArgumentError, UnsupportedError

# Types by name that have no code in DLPack or no letter in buffers → integers of their width.
_CARRIERS = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}
# Types of ml_dtypes that hold 4 bits in another way than Polyphase does.
_NARROW = {"int4": np.int8, "uint4": np.uint8}


def reinterpret(given: Any, what: str, writable: bool) -> tuple[Any, str]:
    """The same memory with elements that the extension can read, and the dtype that they stand for; raises otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        return _reinterpret_tensor(torch, given, what)
    if not isinstance(given, np.ndarray):
        raise _no_array(given, what)
    name = given.dtype.name
    if name in _CARRIERS and given.dtype.isnative:
        if writable and not given.flags.writeable:
            raise ArgumentError(f"{what} is read-only.", hint="Give an array that may be written.")
        return given.view(_CARRIERS[name]), name
    if name in _NARROW and not writable:
        return given.astype(_NARROW[name]), np.dtype(_NARROW[name]).name
    raise _no_numbers(given, what, writable)


def _reinterpret_tensor(torch: Any, given: Any, what: str) -> tuple[Any, str]:
    if given.device.type != "cpu":
        device = given.device
        raise ArgumentError(f"{what} lies on device '{device}'; expected the CPU.", hint="Copy it first: .cpu().")
    if given.layout != torch.strided:
        layout = given.layout
        raise ArgumentError(f"{what} is a PyTorch tensor of layout {layout}.", hint="Make it dense: .to_dense().")
    name = str(given.dtype).removeprefix("torch.")
    if name in _CARRIERS:
        return given.detach().view(torch.uint8 if _CARRIERS[name] is np.uint8 else torch.int16).numpy().view(_CARRIERS[name]), name
    dtype = given.dtype
    raise ArgumentError(f"{what} is a PyTorch tensor of type {dtype} that cannot be read.",
                        hint="Give floats, integers or bool: .to(torch.float32).")


def _no_array(given: Any, what: str) -> ArgumentError:
    kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
    if hasattr(given, "__dlpack_device__"):
        try:
            device = int(given.__dlpack_device__()[0])
        except Exception as error:  # whatever a foreign array says
            return ArgumentError(f"{what} is a {kind} that does not share its memory: {error}.", hint="Copy it to NumPy first.")
        if device != 1:
            return ArgumentError(f"{what} lies on DLPack device type {device}; expected the CPU.", hint="Copy it to the CPU first.")
    return ArgumentError(f"{what} is a {kind}, which is no array.", hint="Give an array of NumPy or PyTorch, as of numpy.asarray(...).")


def _no_numbers(given: np.ndarray, what: str, writable: bool) -> ArgumentError:
    dtype = given.dtype
    if dtype.kind in "iufb" and not dtype.isnative:
        return ArgumentError(f"{what} has the byte order of another machine ({dtype}).", hint="Convert it: .astype(a.dtype.newbyteorder('=')).")
    if dtype.kind in "iufb" and writable and not given.flags.writeable:
        return ArgumentError(f"{what} is read-only.", hint="Give an array that may be written.")
    if dtype.kind in "iufb" and any(stride % given.itemsize for stride in given.strides):
        strides, width = given.strides, given.itemsize
        return ArgumentError(f"{what} has strides of {strides} bytes, no multiples of its elements' {width}.", hint="Copy it: numpy.ascontiguousarray.")
    return ArgumentError(f"{what} holds elements of type {dtype}.", hint="Give floats, integers or bool.")


def flatten(names: list[str], args: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Arguments as a module's forward takes them → arrays by input name: {"skips": [a, b]} → {"skips.0": a, "skips.1": b}."""
    parameters = list(dict.fromkeys(name.split(".")[0] for name in names))
    if len(args) > len(parameters):
        count = len(parameters)
        found = len(args)
        raise ArgumentError(f"the engine takes {count} arguments, found {found}.", hint=f"They are: {', '.join(parameters)}.")
    out: dict[str, Any] = {}
    for parameter, given in [*zip(parameters, args), *named.items()]:
        for name, value in _leaves(parameter, given, names):
            if name in out:
                raise ArgumentError(f"input '{name}' is given twice.", hint="Give each input once.")
            out[name] = value
    return out


def _leaves(path: str, given: Any, names: list[str]) -> list[tuple[str, Any]]:
    if path in names or not isinstance(given, (dict, list, tuple)):
        return [(path, given)]
    items = given.items() if isinstance(given, dict) else enumerate(given)
    return [leaf for key, value in items for leaf in _leaves(f"{path}.{key}", value, names)]


def name_dtype(array: Any, name: str, as_torch: bool) -> Any:
    """The array of integers under the dtype that its elements have."""
    if as_torch:
        import torch

        return array.view(getattr(torch, name))
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(f"an output has elements of type {name}, which NumPy has in the package ml_dtypes.", "unsupported",
                               hint="Install ml_dtypes, or give PyTorch tensors.") from None
    return array.view(getattr(ml_dtypes, name))


def weights_of(given: Any) -> dict[str, Any]:
    """Arrays by name, of what Engine.refit is given; parameters without their gradients."""
    if not isinstance(given, Mapping) and hasattr(given, "named_parameters") and hasattr(given, "named_buffers"):
        given = {**dict(given.named_parameters(remove_duplicate=False)), **dict(given.named_buffers(remove_duplicate=False))}
    if not isinstance(given, Mapping):
        raise ArgumentError(f"the weights are a {type(given).__name__}.", hint="Give a dict of names, such as module.state_dict(), or the module.")
    if not all(isinstance(name, str) for name in given):
        raise ArgumentError("the weights have a key that is no name.", hint="Give the names that the model has for them.")
    return {name: value.detach() if getattr(value, "requires_grad", False) else value for name, value in given.items()}
