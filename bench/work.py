"""What every system is given: a network in the forms that they read, its inputs, and the outputs that are right."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass
class Work:
    """Handed to other processes, so everything in it is plain data, a file, or a function of a module."""

    name: str
    inputs: dict[str, np.ndarray]  # by the name in the ONNX model, in PyTorch's order; FP32
    outputs: list[str]
    dtype: str  # fp32, fp16 or bf16: of the model and of what it is given
    onnx: pathlib.Path | None = None
    module: Callable[[], object] | None = None  # a torch.nn.Module in eval mode, FP32
    made: pathlib.Path | None = None  # what the system has made of the model in its own format, which it then reads instead
    precision: str = "model"  # auto: the system may compute it in bf16, where it can be told so

    @property
    def narrowest(self) -> str:
        """The type in which it may be computed."""
        return "bf16" if self.precision == "auto" else self.dtype


def computed(settings: dict) -> str:
    """A report's types in words: the model's, and what it may be computed in."""
    return f"{settings['dtype']}, precision auto" if settings.get("precision") == "auto" else settings["dtype"]


class Unable(Exception):
    """The system cannot run the work; its message says why, in one line."""
