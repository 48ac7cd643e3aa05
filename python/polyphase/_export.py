"""Models for the engines of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._errors import ArgumentError
from ._options import Path, path_bytes


def export(model: Path, out: Path, *, target: str, opset: int | None = None, without_rules: Sequence[str] = (),
           progress: Callable[[str, float], object] | None = None) -> dict[str, Any]:
    """Writes a model that another engine takes, and that gives the same.

    model: the path of an ONNX file. A module of PyTorch becomes one with torch.onnx.export.
    out: the file to write; it takes its name when it is complete. Files of weights beside the model are copied beside it.
    target: the engine, one of export_targets(): 'onnxruntime', …. What it refuses or gets wrong is rewritten; every other node stays
        byte for byte.
    opset: the opset of ONNX's own operators to write the model in; None: its own. docs/opsets.md lists what is rewritten.
    without_rules: names of rules to leave out, to see what the engine says without them.

    Before anything is written, the model before and after runs in the interpreter on whole numbers, or each rewritten node where
    the model is large, and must give the same bits.

    Returns plain data: 'changes' (each with 'node', 'rule', 'why', 'before', 'after') and what was compared: the fields of
    ExportReport in polyphase/export.h.

    Raises Error: io, invalid_model, invalid_argument, unsupported (the file is no ONNX model; a rule cannot be followed at a node).
    """
    if not isinstance(target, str):
        raise ArgumentError(f"target is a {type(target).__name__}.", hint="Give the name of a target: export_targets() lists them.")
    if isinstance(without_rules, str):
        raise ArgumentError("without_rules is a string.", hint="Give a list of names.")
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 1):
        raise ArgumentError(f"opset is {opset!r}.", hint="Give a number, such as 17, or None for the model's own.")
    return _native.export_model(path_bytes(model), path_bytes(out), {"target": target, "opset": 0 if opset is None else opset, "without_rules": set(without_rules)}, progress)


def check_for(model: Path, target: str) -> list[dict[str, Any]]:
    """What another engine would refuse or get wrong of a model: for each such node 'node', 'operation', 'rule', 'why', 'doc' (what an export
    makes of it) and 'rewrites' (False: no rewrite helps). Empty: the engine takes it as it is, as far as the rules know.

    Raises Error: as export.
    """
    if not isinstance(target, str):
        raise ArgumentError(f"target is a {type(target).__name__}.", hint="Give the name of a target: export_targets() lists them.")
    return _native.check_for(path_bytes(model), target)


def export_targets() -> list[dict[str, Any]]:
    """The engines that models can be exported for, and the rules of each: 'name', 'operation', 'versions', 'source', 'doc', and
    'rewrites' (False: the export refuses such a node)."""
    return _native.export_targets()


def opset_steps() -> list[dict[str, Any]]:
    """The versions of ONNX's operators that changed their form or their meaning, and for which exports have rules: 'operation', 'version' (the
    opset that brought the change), 'doc' (what is so from there on), 'up' and 'down' (whether a rule of its own leads there and back), and
    'tolerance' (how far results may be apart on the way back, in units of the largest, where several nodes stand for one)."""
    return _native.opset_steps()
