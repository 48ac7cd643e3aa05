"""The engines that models are exported for, as functions: (model's bytes, inputs by name) → the first output; what they refuse they raise."""
from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Mapping

import numpy as np

Run = Callable[[bytes, Mapping[str, np.ndarray]], np.ndarray]


class Refused(Exception):
    """The engine does not take the model."""


def onnxruntime(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session.run(None, dict(inputs))[0]
    except Exception as said:  # noqa: BLE001: its exceptions have no common base but this
        raise Refused(str(said)) from said


def standard(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """ONNX has a checker and no engine: what the checker takes is computed by ONNX Runtime, through our export for it. Whatever went wrong on
    the way, the numbers are held against PyTorch's."""
    import onnx

    import polyphase

    parsed = onnx.load_model_from_string(model)
    foreign = {node.domain for node in parsed.graph.node} - {"", "ai.onnx"}
    if foreign:
        raise Refused(f"operators of {foreign}")
    try:
        onnx.checker.check_model(parsed, full_check=True)
    except Exception as said:  # noqa: BLE001
        raise Refused(str(said)) from said
    for node in parsed.graph.node:
        sizes = [attribute.ints for attribute in node.attribute if attribute.name == "output_shape"]
        kernel = [len(tensor.dims) for tensor in parsed.graph.initializer if tensor.name == "w"]
        if sizes and kernel and len(sizes[0]) > kernel[0] - 2:
            raise Refused("output_shape must hold the spatial sizes; the checker does not look when sizes are open")
    with tempfile.TemporaryDirectory() as folder:
        before, after = pathlib.Path(folder, "before.onnx"), pathlib.Path(folder, "after.onnx")
        before.write_bytes(model)
        polyphase.export(before, after, target="onnxruntime")
        return onnxruntime(after.read_bytes(), inputs)


ENGINES: dict[str, Run] = {"onnx": standard, "onnxruntime": onnxruntime}
