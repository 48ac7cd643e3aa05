"""What can be measured: layers, drawn geometries, networks, a user's own model. Each yields work, its right outputs, FLOPs and bytes."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from layers import Layer
from work import Work

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))


@dataclasses.dataclass
class Item:
    work: Work
    want: list[np.ndarray]  # FP64
    flops: float = 0.0  # 0: not counted
    bytes: float = 0.0
    check: Callable[[str, Sequence[np.ndarray]], str] | None = None


ELEMENT = {"fp32": 4, "fp16": 2, "bf16": 2}


def rounded(data: dict[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    """The same numbers in every system: those that the dtype can hold, as FP32."""
    kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    return {name: torch.from_numpy(array).to(kinds[dtype]).float().numpy() for name, array in data.items()}


def _bound_on_errors(layer: Layer, data: dict[str, np.ndarray], want: np.ndarray) -> Callable[[str, Sequence[np.ndarray]], str]:
    """For ours: every element within 2 gamma_K of the sum of its terms' sizes (Higham, Accuracy and Stability, 3.5)."""
    sizes = {name: np.abs(array) for name, array in data.items()}
    terms = layer.in_channels / layer.groups * np.prod([-(-k // s) for k, s in zip(layer.kernel, layer.stride, strict=True)]) + 1
    unit = 2.0**-24 * terms
    with torch.inference_mode():
        scale = layer.module(sizes).double()(torch.from_numpy(sizes["x"]).double()).numpy()

    def check(peer: str, found: Sequence[np.ndarray]) -> str:
        off = np.abs(found[0].astype(np.float64) - want) - 2 * unit / (1 - unit) * scale
        return "" if peer not in ("polyphase", "tuned") or off.max(initial=0) <= 0 else "wrong: an element is further off than 2 gamma_K of its terms"

    return check


def of_layers(layers: Sequence[Layer], dtype: str) -> Iterator[Item]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "layer.onnx"
        for layer in layers:
            data = rounded(layer.data(), dtype)
            path.write_bytes(layer.onnx(data, dtype))
            module = layer.module(data).double()
            with torch.inference_mode():
                want = module(torch.from_numpy(data["x"]).double()).numpy()
            work = Work(layer.name, {"x": data["x"]}, ["y"], dtype, path, functools.partial(layer.module, data))
            yield Item(work, [want], layer.flops, layer.bytes_moved(ELEMENT[dtype]), _bound_on_errors(layer, data, want) if dtype == "fp32" else None)


def of_module(name: str, make: Callable[[], torch.nn.Module], inputs: dict[str, np.ndarray], dtype: str, folder: pathlib.Path) -> Item:
    """A module in every system: exported to ONNX by PyTorch."""
    module = make()
    inputs = rounded(inputs, dtype)
    kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    given = tuple(torch.from_numpy(array) for array in inputs.values())
    with torch.inference_mode():
        lowered = make().to(kinds[dtype]).double()  # its weights as the dtype holds them
        found = lowered(*(x.double() for x in given))
    want = [one.numpy() for one in ([found] if isinstance(found, torch.Tensor) else found)]
    outputs = [f"output_{place}" for place in range(len(want))]
    path = folder / "network.onnx"
    export = functools.partial(torch.onnx.export, module.to(kinds[dtype]), tuple(x.to(kinds[dtype]) for x in given), path, input_names=list(inputs), output_names=outputs, verbose=False)
    try:
        export(dynamo=True, optimize=True, external_data=False)
    except torch.onnx.OnnxExporterError:
        export(dynamo=False)  # knows some networks that the newer exporter does not
    return Item(Work(name, inputs, outputs, dtype, path, make), want)


def of_networks(known: str, names: str, dtype: str) -> Iterator[Item]:
    """`known`: the module that lists them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, inputs) in importlib.import_module(known).NETWORKS.items():
            if names in name:
                yield of_module(name, make, inputs(), dtype, pathlib.Path(folder))


def of_upsampling(names: str, dtype: str) -> Iterator[Item]:
    import upsampling

    with tempfile.TemporaryDirectory() as folder:
        for place in upsampling.PLACES:
            for form in upsampling.FORMS:
                if names not in f"{place.name}: {form}":
                    continue
                item = of_module(f"{place.name}: {form}", functools.partial(upsampling.make, place, form), upsampling.inputs(place), dtype, pathlib.Path(folder))
                yield dataclasses.replace(item, flops=upsampling.products(place, form))


def of_model(path: pathlib.Path, shapes: dict[str, list[int]]) -> Item:
    """A user's own ONNX file; right is what ONNX Runtime computes without any optimisation."""
    import onnx
    import onnxruntime

    model = onnx.load(path, load_external_data=False)
    known = {value.name for value in model.graph.initializer}
    rng, inputs = np.random.default_rng(1), {}
    for value in model.graph.input:
        if value.name in known:
            continue
        sizes = shapes.get(value.name) or [size.dim_value for size in value.type.tensor_type.shape.dim]
        if not all(sizes):
            sys.exit(f"bench: input '{value.name}' has open sizes; say --shape {value.name}=1x3x64x64")
        if value.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
            sys.exit(f"bench: input '{value.name}' is not float; only networks with float inputs can be measured")
        inputs[value.name] = rng.standard_normal(sizes).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    want = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)
    return Item(Work(path.stem, inputs, [value.name for value in model.graph.output], "fp32", path.resolve()), [np.asarray(one, np.float64) for one in want])
