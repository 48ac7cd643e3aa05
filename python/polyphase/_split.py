"""Models of which Polyphase takes a part: that part here, the rest in ONNX Runtime."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _native
from ._compile import compile
from ._errors import ArgumentError, UnsupportedError
from ._options import Path, path_bytes


def split(model: Path, folder: Path) -> int:
    """Cuts an ONNX model that has nodes which Polyphase does not take into parts that it takes and parts for ONNX Runtime, as few as the order
    of the nodes allows. `folder` is made; it holds the parts, each an ONNX model, and manifest.json with their order. Gives their number.

    Raises Error: those of reading; ArgumentError: the folder is there; UnsupportedError: the type of a tensor between two parts is not known.
    """
    return _native.split(path_bytes(model), path_bytes(folder))


class SplitModel:
    """What load_split gives: the chain of parts, as one function of the model's inputs.

    inputs, outputs: names, in the model's order.
    pieces: for each part its file, its engine ('polyphase' or 'onnxruntime'), its inputs and outputs.
    """

    __module__ = "polyphase"  # where users find it

    def __init__(self, folder: pathlib.Path, manifest: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.inputs: tuple[str, ...] = tuple(manifest["inputs"])
        self.outputs: tuple[str, ...] = tuple(manifest["outputs"])
        self.pieces: tuple[dict[str, Any], ...] = tuple(manifest["pieces"])
        self._runs = [_ours(folder / piece["file"], piece, options) if piece["engine"] == "polyphase" else _onnxruntimes(folder / piece["file"], piece) for piece in self.pieces]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Arrays in the order of the inputs, or by name; gives an array, or a tuple where there are several outputs."""
        if len(args) > len(self.inputs):
            raise ArgumentError(f"{len(args)} arrays were given, and the model has {len(self.inputs)} inputs.", hint=f"Give {', '.join(self.inputs)}.")
        values = dict(zip(self.inputs, args))
        for name, value in kwargs.items():
            if name not in self.inputs or name in values:
                raise ArgumentError(f"there is no input '{name}', or it was given twice.", hint=f"Inputs are {', '.join(self.inputs)}.")
            values[name] = value
        lacking = [name for name in self.inputs if name not in values]
        if lacking:
            raise ArgumentError(f"the input '{lacking[0]}' was not given.", hint=f"Give {', '.join(self.inputs)}.")
        values = {name: np.asarray(value) for name, value in values.items()}
        for piece, run in zip(self.pieces, self._runs):
            values.update(zip(piece["outputs"], run([values[name] for name in piece["inputs"]])))
        found = tuple(values[name] for name in self.outputs)
        return found[0] if len(found) == 1 else found


def _ours(path: pathlib.Path, piece: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    engine = compile(path, **options)
    names = [port.name for port in engine.inputs]

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        given = dict(zip(piece["inputs"], arrays))
        found = engine(*[given[name] for name in names])
        return list(found) if isinstance(found, (list, tuple)) else [found]

    return run


def _onnxruntimes(path: pathlib.Path, piece: Mapping[str, Any]) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise UnsupportedError(f"the part '{path.name}' needs ONNX Runtime, which is not installed.", hint="pip install onnxruntime") from None
    session = onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        return session.run(list(piece["outputs"]), dict(zip(piece["inputs"], arrays)))

    return run


def load_split(folder: Path, **options: Any) -> SplitModel:
    """The parts that `polyphase check MODEL --split FOLDER` or split wrote, ready to be called: ours are compiled (`options` as for compile), the others
    run in ONNX Runtime, on the CPU.

        net = polyphase.load_split("parts")
        y = net(x)

    Raises Error: as compile; ArgumentError: the folder holds no such parts.
    """
    at = pathlib.Path(os.fsdecode(folder))
    try:
        manifest = json.loads((at / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as said:
        raise ArgumentError(f"'{at}' holds no parts of a model: {said}.", hint="Write it with polyphase check MODEL --split FOLDER.") from None
    if not isinstance(manifest, dict) or manifest.get("polyphase_split") != 1:
        raise ArgumentError(f"'{at / 'manifest.json'}' is of another kind or version.", hint="Write it with polyphase check MODEL --split FOLDER.")
    return SplitModel(at, manifest, options)
