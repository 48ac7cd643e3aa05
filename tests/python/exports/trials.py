"""One model for one target: what the engine says to it as it is, and to what the export makes of it."""
from __future__ import annotations

import pathlib

import numpy as np
import onnx
from engines import ENGINES, Refused

import polyphase


def verdict(target: str, model: bytes, inputs, right: np.ndarray) -> str:
    """'right', 'wrong: …' or 'refused: …'. The data are whole numbers, so that right is equal bit for bit."""
    try:
        found = ENGINES[target](model, inputs)
    except Refused as said:
        return f"refused: {str(said)[:300]}"
    if found.shape != right.shape:
        return f"wrong: shape {found.shape} instead of {right.shape}"
    if not np.array_equal(found, right):
        return f"wrong: {int((found != right).sum())} of {right.size} elements"
    return "right"


def exported(target: str, model: onnx.ModelProto, folder: pathlib.Path, without_rules=()) -> tuple[bytes, dict]:
    """What the export makes of the model, and its report."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    before.write_bytes(model.SerializeToString())
    report = polyphase.export(before, after, target=target, without_rules=without_rules)
    return after.read_bytes(), report
