"""What callers may write for models and sizes, made plain for the extension."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from ._errors import ArgumentError

Path = Union[str, "os.PathLike[str]", "os.PathLike[bytes]"]
Shape = Union[str, Sequence[Union[int, str]]]
Range = Union[int, "tuple[int, int]"]
_HUGE = 2**63 - 1


def is_path(model: Any) -> bool:
    return isinstance(model, (str, os.PathLike))


def path_bytes(path: Any) -> bytes:
    if not is_path(path):
        raise ArgumentError(f"the path is a {type(path).__name__}.", hint="Give a str or os.PathLike.")
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ArgumentError("the path holds a NUL character.", hint="Give the path of a file.")
    return encoded


def model_bytes(model: Any) -> bytes:
    """Bytes of a model or an engine in memory."""
    if isinstance(model, bytes):
        return model
    if isinstance(model, (bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):  # an onnx.ModelProto
        return bytes(model.SerializeToString())
    raise ArgumentError(f"the model is a {type(model).__name__}.", hint="Give a path, bytes, or an onnx.ModelProto; a Network has its own method compile().")


def plain_options(*, target: str, shapes: Mapping[str, Shape] | None, dims: Mapping[str, Range] | None,
                  tune_for: Mapping[str, Sequence[int]] | None, without: Sequence[str], external_data: Path | None = None,
                  refittable: bool = False, tune: bool = False, tune_threads: int = 0, timing_cache: Path | None = None,
                  engine_file: Path | None = None, precision: str = "model", plugins: Sequence[Path] = (),
                  input_layouts: Mapping[str, str] | None = None, output_layouts: Mapping[str, str] | None = None) -> dict[str, Any]:
    if not isinstance(target, str):
        raise ArgumentError(f"target is a {type(target).__name__}.", hint="Targets are native, portable, scalar, avx2, avx512, avx512_bf16 and amx.")
    if not isinstance(precision, str):
        raise ArgumentError(f"precision is a {type(precision).__name__}.", hint="Precisions are model, fp32 and auto.")
    if isinstance(without, str) or not all(isinstance(name, str) for name in without):
        raise ArgumentError("without is no list of names.", hint="polyphase.pass_names() has them.")
    return {
        "target": target,
        "precision": precision,
        "shapes": {_name(name, "shapes"): _shape(name, shape) for name, shape in _items(shapes, "shapes")},
        "dims": {_name(name, "dims"): _range(name, size) for name, size in _items(dims, "dims")},
        "tune_for": {_name(name, "tune_for"): _sizes(name, sizes) for name, sizes in _items(tune_for, "tune_for")},
        "input_layouts": {_name(name, "input_layouts"): _layout(name, layout) for name, layout in _items(input_layouts, "input_layouts")},
        "output_layouts": {_name(name, "output_layouts"): _layout(name, layout) for name, layout in _items(output_layouts, "output_layouts")},
        "without": list(without),
        "refittable": bool(refittable),
        "external_data": path_bytes(external_data) if external_data is not None else b"",
        "plugins": plugin_paths(plugins),
        "engine_file": path_bytes(engine_file) if engine_file is not None else b"",
        **tuning_options(tune, tune_threads, timing_cache),
    }


def plugin_paths(plugins: Sequence[Path]) -> list[bytes]:
    if is_path(plugins) or not all(is_path(path) for path in plugins):
        raise ArgumentError(f"plugins is {plugins!r:.60}.", hint="Give a list of the paths of shared libraries.")
    return [path_bytes(path) for path in plugins]


def _layout(name: str, layout: Any) -> str:
    if not isinstance(layout, str):
        raise ArgumentError(f"the layout of '{name:.60}' is {layout!r:.60}.", hint="Give the letters of its axes, as in 'NHWC', or 'NCHW:NHWC': the caller's and the model's.")
    return layout


def tuning_options(tune: bool, threads: int, timing_cache: Path | None) -> dict[str, Any]:
    if not isinstance(tune, bool):
        raise ArgumentError(f"tune is {tune!r:.60}.", hint="Give True or False.")
    if not tune and (threads != 0 or timing_cache is not None):
        raise ArgumentError("tune_threads or timing_cache is given without tune.", hint="Add tune=True.")
    return {"tune": tune, "tune_threads": checked_threads(threads, "tune_threads"),
            "timing_cache": path_bytes(timing_cache) if timing_cache is not None else b""}


def checked_threads(threads: Any, name: str) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int) or not 0 <= threads <= 1024:
        raise ArgumentError(f"{name} is {threads!r:.60}; expected 0 to 1024.", hint="0 is one per core.")
    return threads


def compat_settings(*, seed: int, tolerance: float | None, only: str, sizes: Mapping[str, Sequence[int]] | None) -> dict[str, Any]:
    if not isinstance(only, str):
        raise ArgumentError(f"only is a {type(only).__name__}.", hint="Give the name of an operator.")
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise ArgumentError(f"the tolerance is {tolerance!r}.", hint="Give a number of 0 or more, or None.")
    values: dict[str, list[int]] = {}
    for name, given in _items(sizes, "sizes"):
        if isinstance(given, (str, int)) or not given:
            raise ArgumentError(f"the sizes of '{name}' are {given!r}.", hint="Give a list of sizes: (64, 65).")
        values[_name(name, "sizes")] = [_integer(size, f"a size of '{name}'") for size in given]
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ArgumentError(f"the seed is {seed!r}.", hint="Give a number from 0 to 2**63 - 1.")
    return {"seed": seed, "tolerance": None if tolerance is None else float(tolerance), "only": only, "sizes": values}


def _items(given: Any, option: str) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{option} is a {type(given).__name__}.", hint="Give a dict of names.")
    return list(given.items())


def _name(name: Any, option: str) -> str:
    if not isinstance(name, str):
        raise ArgumentError(f"{option} has a key that is a {type(name).__name__}.", hint="Give names.")
    return name


def _integer(value: Any, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{what} is {value!r:.60}.", hint="Give an integer.") from None
    if not -_HUGE <= number <= _HUGE:
        raise ArgumentError(f"{what} does not fit into 64 bits.", hint="Give a smaller integer.")
    return number


def _shape(name: str, shape: Any) -> list[str]:
    if isinstance(shape, str):
        return shape.split("x") if shape else []
    if not isinstance(shape, Sequence):
        raise ArgumentError(f"the shape given for input '{name}' is a {type(shape).__name__}.", hint="Give sizes: (1, 3, 'H', 'W').")
    return [size if isinstance(size, str) else str(_integer(size, f"a size of input '{name}'")) for size in shape]


def _range(name: str, size: Any) -> tuple[int, int]:
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ArgumentError(f"the range of size '{name}' has {len(size)} ends.", hint="Give (low, high).")
        low, high = (_integer(end, f"an end of the range of '{name}'") for end in size)
        return low, high
    fixed = _integer(size, f"size '{name}'")
    return fixed, fixed


def _sizes(name: str, sizes: Any) -> list[int]:
    if isinstance(sizes, str) or not isinstance(sizes, Sequence):
        raise ArgumentError(f"the shape to tune for, of input '{name}', is a {type(sizes).__name__}.", hint="Give sizes: (1, 3, 256, 256).")
    return [_integer(size, f"a size to tune for, of input '{name}',") for size in sizes]
