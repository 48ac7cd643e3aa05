"""Polyphase, by its Python package."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polyphase
from work import Unable, Work

NAME = "polyphase"
TARGETS = {"native": "native", "avx2": "avx2"}


class Runner:
    def __init__(self, work: Work, threads: int, isa: str, **options: Any) -> None:
        if work.onnx is None:
            raise Unable("there is no ONNX model")
        try:
            engine = polyphase.load(work.made) if work.made else polyphase.compile(work.onnx, target=TARGETS[isa], precision=work.precision, **options)
        except polyphase.Error as error:
            raise Unable(str(error).splitlines()[0]) from error
        self.session = engine.session(threads=threads)
        self.names = work.outputs
        self.inputs = [_in(array, work.dtype) for array in work.inputs.values()]

    def run(self):
        return self.session.run(self.inputs)

    def outputs(self) -> list[np.ndarray]:
        found = self.run()
        return [np.asarray(found[name]).astype(np.float32) for name in self.names]


def forms(work: Work, threads: int, isa: str, **options: Any) -> list[Work]:  # noqa: ARG001: threads are the session's
    """An engine file, which is compiled where there is time and memory."""
    if work.onnx is None:
        raise Unable("there is no ONNX model")
    made = work.onnx.with_suffix(".ppe")
    try:
        polyphase.compile(work.onnx, target=TARGETS[isa], engine_file=made, precision=work.precision, **options)
    except polyphase.Error as error:
        raise Unable(str(error).splitlines()[0]) from error
    return [dataclasses.replace(work, made=made)]


def _in(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        import ml_dtypes

        return array.astype(ml_dtypes.bfloat16)
    return array.astype(np.float16 if dtype == "fp16" else np.float32)
