"""One model, two sets of weights: the engine of the first, refitted to the second, is byte for byte the engine of the second.

Equal bytes say it all: the same program whatever the weights are, so no pass has looked at one, and the same packed weights.
"""

from __future__ import annotations

import io
import zipfile

import numpy as np
import onnx
from onnx import numpy_helper

import polyphase


def others(array: np.ndarray, seed: int) -> np.ndarray:
    """Legal elements for where `array` stood, unlike it: also zeros and ones, which look like something."""
    random = np.random.default_rng(seed)
    kind = seed % 4
    if array.dtype.kind != "f":
        return random.permutation(array.reshape(-1)).reshape(array.shape) if array.dtype.kind in "iu" else array
    positive = bool(array.size) and float(np.asarray(array, np.float64).min()) > 0  # variances, slopes
    if kind == 0:
        made = np.abs(random.standard_normal(array.shape)) + 0.25 if positive else random.standard_normal(array.shape)
    elif kind == 1:
        made = np.ones(array.shape)
    elif kind == 2 and not positive:
        made = np.zeros(array.shape)
    else:
        made = np.asarray(array, np.float64) * 1.5
    return np.asarray(made).astype(array.dtype)


def with_weights(model: onnx.ModelProto, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    return copy


def exchangeable(engine: polyphase.Engine) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (weight["dtype"], tuple(weight["sizes"]))
            for weight in engine.info()["weights"] if not weight["fixed_because"] for name in weight["names"]}


def expect_same(refitted: bytes, fresh: bytes) -> None:
    assert len(refitted) == len(fresh), "the program depends on the weights"
    if refitted != fresh:
        at = next(i for i, (a, b) in enumerate(zip(refitted[40:], fresh[40:])) if a != b) + 40
        raise AssertionError(f"byte {at} of {len(fresh)} differs")


def try_model(model: onnx.ModelProto, seed: int, **options) -> int:
    """Returns the number of weights that were exchanged; raises polyphase.Error if the first does not compile."""
    engine = polyphase.compile(model, refittable=True, **options)
    before = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    numpy_can = {name for name, array in before.items() if array.dtype.kind in "fiub" and array.dtype.names is None}
    names = sorted(set(exchangeable(engine)) & numpy_can)
    weights = {name: others(before[name], seed + i) for i, name in enumerate(names)}
    fresh = polyphase.compile(with_weights(model, weights), refittable=True, **options).to_bytes()
    # Also in two parts, and from a file.
    first = {name: weights[name] for name in names[::2]}
    engine.refit(first)
    engine = polyphase.load(engine.to_bytes())
    engine.refit({name: weights[name] for name in names[1::2]})
    expect_same(engine.to_bytes(), fresh)
    return len(names)


def payload(program: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(program)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
