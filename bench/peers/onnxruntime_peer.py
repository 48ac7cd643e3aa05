"""ONNX Runtime's CPU provider, inputs and outputs bound, so that nothing is allocated for a run."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime
from work import Unable, Work

NAME = "onnxruntime"


class Runner:
    def __init__(self, work: Work, threads: int, isa: str) -> None:
        if isa != "native":
            raise Unable("it cannot be held to fewer instructions")
        if work.onnx is None:
            raise Unable("there is no ONNX model")
        if work.dtype == "bf16":
            raise Unable("its CPU provider has no bfloat16")
        if work.precision == "auto":
            raise Unable("its CPU provider computes an FP32 model in FP32 only")
        options = _options(threads)
        try:
            self.session = onnxruntime.InferenceSession(work.made or work.onnx, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001: its errors have no common type
            raise Unable(str(error).splitlines()[0]) from error
        self.binding = self.session.io_binding()
        self.inputs = [onnxruntime.OrtValue.ortvalue_from_numpy(array.astype(np.float16 if work.dtype == "fp16" else np.float32)) for array in work.inputs.values()]
        for name, value in zip(work.inputs, self.inputs, strict=True):
            self.binding.bind_ortvalue_input(name, value)
        for name in work.outputs:
            self.binding.bind_output(name)
        self.session.run_with_iobinding(self.binding)
        found = self.binding.get_outputs()
        for name, value in zip(work.outputs, found, strict=True):
            self.binding.bind_ortvalue_output(name, value)

    def run(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def outputs(self) -> list[np.ndarray]:
        self.run()
        return [value.numpy().astype(np.float32) for value in self.binding.get_outputs()]


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def forms(work: Work, threads: int, isa: str) -> list[Work]:
    """The model, and the optimised one in its own format: either may need less."""
    Runner(work, threads, isa)  # says what it cannot
    options, made = _options(threads), work.onnx.with_suffix(".ort")
    options.optimized_model_filepath = str(made)
    onnxruntime.InferenceSession(work.onnx, options, providers=["CPUExecutionProvider"])
    return [work, dataclasses.replace(work, made=made)]
