"""Arrays whose types neither DLPack nor buffers can name, and why something is no array; called by the extension."""

from __future__ import annotations

import sys
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
        raise ArgumentError(*_no_array(given, what))
    name = given.dtype.name
    if name in _CARRIERS and given.dtype.isnative:
        if writable and not given.flags.writeable:
            raise ArgumentError(f"{what} is read-only.", hint="Give an array that may be written.")
        return given.view(_CARRIERS[name]), name
    if name in _NARROW and not writable:
        return given.astype(_NARROW[name]), np.dtype(_NARROW[name]).name
    raise ArgumentError(*_no_numbers(given, what, writable))


def _reinterpret_tensor(torch: Any, given: Any, what: str) -> tuple[Any, str]:
    if given.device.type != "cpu":
        raise ArgumentError(f"{what} lies on device '{given.device}'; expected the CPU.", hint="Copy it first: .cpu().")
    if given.layout != torch.strided:
        raise ArgumentError(f"{what} is a PyTorch tensor of layout {given.layout}.", hint="Make it dense: .to_dense().")
    name = str(given.dtype).removeprefix("torch.")
    if name in _CARRIERS:
        return given.detach().view(torch.uint8 if _CARRIERS[name] is np.uint8 else torch.int16).numpy().view(_CARRIERS[name]), name
    raise ArgumentError(f"{what} is a PyTorch tensor of type {given.dtype} that cannot be read.",
                        hint="Give floats, integers or bool: .to(torch.float32).")


def _no_array(given: Any, what: str) -> tuple[str, str, str]:
    kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
    if hasattr(given, "__dlpack_device__"):
        try:
            device = given.__dlpack_device__()
        except Exception as error:  # whatever a foreign array says
            return f"{what} is a {kind} that does not share its memory: {error}", "invalid_argument", "Copy it to NumPy first."
        if device[0] != 1:
            return f"{what} lies on DLPack device type {int(device[0])}; expected the CPU.", "invalid_argument", "Copy it to the CPU first."
    return f"{what} is a {kind}, which is no array.", "invalid_argument", "Give an array of NumPy or PyTorch, as of numpy.asarray(...)."


def _no_numbers(given: np.ndarray, what: str, writable: bool) -> tuple[str, str, str]:
    code = "invalid_argument"
    if given.dtype.kind in "iufb" and not given.dtype.isnative:
        return f"{what} has the byte order of another machine ({given.dtype.str}).", code, "Convert it: .astype(a.dtype.newbyteorder('='))."
    if given.dtype.kind in "iufb" and writable and not given.flags.writeable:
        return f"{what} is read-only.", code, "Give an array that may be written."
    if given.dtype.kind in "iufb" and any(stride % given.itemsize for stride in given.strides):
        return f"{what} has strides of {given.strides} bytes, no multiples of its elements' {given.itemsize}.", code, "Copy it: numpy.ascontiguousarray."
    return f"{what} holds elements of type {given.dtype}.", code, "Give floats, integers or bool."


def name_dtype(array: Any, name: str, as_torch: bool) -> Any:
    """The array of integers under the dtype that its elements have."""
    if as_torch:
        import torch

        return array.view(getattr(torch, name))
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(f"an output has elements of type {name}, which NumPy has in the package ml_dtypes.", "unsupported",
                            "Install ml_dtypes, or give PyTorch tensors.") from None
    return array.view(getattr(ml_dtypes, name))
