"""Polyphase: compile a trained network into an engine, and run it.

    engine = polyphase.compile("model.onnx")     # or polyphase.load("model.ppe")
    y = engine(x)                                # NumPy in, NumPy out; PyTorch in, PyTorch out
    engine.save("model.ppe")

Sizes are in elements, in the network's order (N, C, H, W); times are in seconds. What is refused raises polyphase.Error.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._compatibility import Compatibility
from ._compile import check, compare_layers, compat, compile, explain, load
from ._errors import ArgumentError, CancelledError, Error, FileError, ModelError, OutOfMemoryError, UnsupportedError
from ._explanation import Explanation
from ._export import check_for, export, export_targets, opset_steps
from ._legalise import check_module, legalise
from ._native import Engine, Port, Session, devices, measured_bandwidth, measured_peak_flops, pass_names
from ._native import version as version

if TYPE_CHECKING:
    from ._at_once import layer
    from ._network import Network, Size, Tensor, precision
    from ._split import SplitModel, load_split, split

__version__: str = version

# Imported by their first use: who runs an engine needs none of them, and the network's methods alone take 4 MB.
_LATER = {"Network": "_network", "Size": "_network", "SplitModel": "_split", "Tensor": "_network", "layer": "_at_once", "load_split": "_split",
          "precision": "_network", "split": "_split"}
_PARTS = ("nn", "torch")  # modules; the latter needs PyTorch


def __getattr__(name: str) -> object:
    if name in _PARTS:
        return importlib.import_module(f".{name}", __name__)
    if name in _LATER:
        value = globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_PARTS})


for _public in (ArgumentError, CancelledError, Compatibility, Error, Explanation, FileError, ModelError, OutOfMemoryError, UnsupportedError):
    _public.__module__ = __name__  # where users find it
del _public

__all__ = ["ArgumentError", "CancelledError", "Compatibility", "Engine", "Error", "Explanation", "FileError", "ModelError", "Network", "OutOfMemoryError",
           "Port", "Session", "Size", "SplitModel", "Tensor", "UnsupportedError", "check", "check_for", "check_module", "compare_layers", "compat", "compile", "devices", "explain", "export", "export_targets", "layer", "legalise", "load", "load_split", "opset_steps",
           "measured_bandwidth", "measured_peak_flops", "pass_names", "precision", "split", "version"]
