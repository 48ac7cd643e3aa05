"""OpenVINO's CPU plugin, on the ONNX model, for one stream."""

from __future__ import annotations

import dataclasses

import numpy as np
import openvino
from work import Unable, Work

NAME = "openvino"
PRECISIONS = {"fp32": openvino.Type.f32, "fp16": openvino.Type.f16, "bf16": openvino.Type.bf16}


def tensor_of(array: np.ndarray, kind: openvino.Type) -> openvino.Tensor:
    """The numbers as that type, which NumPy may lack."""
    if kind != openvino.Type.bf16:
        return openvino.Tensor(array.astype(kind.to_dtype()))
    import torch  # here, since its memory would be counted as OpenVINO's

    out = openvino.Tensor(kind, array.shape)
    np.copyto(out.data.view(np.uint16), torch.from_numpy(array.astype(np.float32)).bfloat16().view(torch.uint16).numpy())
    return out


def numbers(given: openvino.Tensor) -> np.ndarray:
    if given.element_type != openvino.Type.bf16:
        return np.array(given.data, np.float32)
    return (given.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


class Runner:
    def __init__(self, work: Work, threads: int, isa: str) -> None:  # noqa: ARG002: environment variables hold it (worker.py)
        if work.onnx is None:
            raise Unable("there is no ONNX model")
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": PRECISIONS[work.narrowest]}
        if work.made:
            settings["CACHE_DIR"] = str(work.made)
        try:
            self.request = core.compile_model(work.onnx, "CPU", settings).create_infer_request()
        except Exception as error:  # noqa: BLE001: its errors have no common type
            raise Unable(str(error).strip().splitlines()[0]) from error
        kinds = [port.get_element_type() for port in self.request.model_inputs]
        self.inputs = [tensor_of(array, kind) for array, kind in zip(work.inputs.values(), kinds, strict=True)]
        for place, tensor in enumerate(self.inputs):
            self.request.set_input_tensor(place, tensor)
        self.count = len(work.outputs)

    def run(self) -> None:
        self.request.infer()

    def outputs(self) -> list[np.ndarray]:
        self.run()
        return [numbers(self.request.get_output_tensor(place)) for place in range(self.count)]


def forms(work: Work, threads: int, isa: str) -> list[Work]:
    """The model, and its cache of compiled ones."""
    cached = dataclasses.replace(work, made=work.onnx.with_suffix(".cache") if work.onnx else None)
    Runner(cached, threads, isa)
    return [work, cached]
