"""The padding sweep: what padding, output padding, asymmetric and negative crops cost at equal output size.

A transposed convolution crops its full output, (i-1)s + d(k-1) + 1 long, by `pre` in front and `post` behind; output padding makes `post`
smaller, and a crop below zero appends outputs that no tap reaches. Each family's layers are drawn; every variant of one has the output
sizes of the uncropped one, from an input that is longer or shorter by whole strides, so that only the border differs.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Iterator, Sequence

import geometries
import measure
import numpy as np
from layers import Layer

LEAST_FLOPS, MOST_FLOPS = 5e7, 1e9  # long enough to time, short enough for a dozen variants of each


@dataclasses.dataclass(frozen=True)
class Variant:
    """Crops of a layer, one pair per axis, all of them whole strides in sum, and the input that keeps its output sizes."""

    name: str
    layer: Layer  # without padding and output padding, with this variant's input
    pre: tuple[int, ...]
    post: tuple[int, ...]

    def onnx(self, data: dict[str, np.ndarray]) -> bytes:
        """ONNX has no crop below zero: what it appends is a Pad after the layer."""
        import onnx
        from onnx import helper, numpy_helper

        model = onnx.load_from_string(self.layer.onnx(data, "fp32"))
        graph = model.graph
        node = graph.node[0]
        kept = [attribute for attribute in node.attribute if attribute.name not in ("pads", "output_padding")]
        del node.attribute[:]
        crops = [*self.pre, *self.post]
        node.attribute.extend([*kept, helper.make_attribute("pads", [max(0, crop) for crop in crops])])
        if min(crops) < 0:
            node.output[0] = "cropped"
            around = [[0, 0, *(max(0, -crop) for crop in side)] for side in (self.pre, self.post)]
            graph.initializer.append(numpy_helper.from_array(np.array(sum(around, []), np.int64), "around"))
            graph.node.append(helper.make_node("Pad", ["cropped", "around"], ["y"]))
        graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
        return model.SerializeToString()

    def expected(self, data: dict[str, np.ndarray]) -> np.ndarray:
        """PyTorch's full output in FP64, cropped or extended by zeros."""
        import torch

        with torch.inference_mode():
            full = self.layer.module(data).double()(torch.from_numpy(data["x"]).double())
            return torch.nn.functional.pad(full, [-crop for pair in reversed(list(zip(self.pre, self.post, strict=True))) for crop in pair]).numpy()


def _crops(kernel: int, stride: int, dilation: int) -> dict[str, tuple[int, int]]:
    """(pre, post) of one axis by name; pre + post is a multiple of the stride."""
    reach = dilation * (kernel - 1)

    def even(least: int) -> int:
        """The least padding from there on that both sides can have."""
        return next(pad for pad in range(least, least + stride) if 2 * pad % stride == 0)

    pad, beyond = even(max(1, reach // 2)), even(reach + 1)
    found = {"padding": (pad, pad), "asymmetric": (2 * pad, 0), "asymmetric, behind": (0, 2 * pad), "beyond d(k-1)": (beyond, beyond), "negative": (-stride, 0),
             "negative, both sides": (-stride, -stride)}
    for extra in range(stride - 1, 0, -1):
        least = next((p for p in range(stride) if (2 * p - extra) % stride == 0), None)
        if least is not None:
            found["output padding"] = (least, least - extra)
            break
    return found


def variants(layer: Layer) -> Iterator[Variant]:
    """The uncropped layer first."""
    none = (0,) * layer.rank
    bare = dataclasses.replace(layer, batch=1, padding=none, output_padding=none, bias=False)
    yield Variant("none", bare, none, none)
    each = [_crops(k, s, d) for k, s, d in zip(layer.kernel, layer.stride, layer.dilation, strict=True)]
    for name in each[0]:
        if not all(name in axis for axis in each):
            continue
        pairs = [axis[name] for axis in each]
        input_ = tuple(i + sum(pair) // s for i, pair, s in zip(layer.input, pairs, layer.stride, strict=True))
        if min(input_) > 0:
            yield Variant(name, dataclasses.replace(bare, input=input_), tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def draw(seed: int, of_each: int) -> Iterator[tuple[str, Layer]]:
    """`of_each` layers of every family, with the family's name."""
    rng = random.Random(seed)
    for family in geometries.FAMILIES:
        least = LEAST_FLOPS / 50 if family == "depthwise" else LEAST_FLOPS
        found = 0
        while found < of_each:
            layer = geometries.draw_one(rng, [family], family)
            if layer is not None and least <= layer.flops <= MOST_FLOPS and min(layer.input) >= 12:
                found += 1
                yield family, layer


def sweep(seed: int, of_each: int, seconds: float, rounds: int, threads: int, processor: bool, filter_: str) -> Iterator[dict]:
    """Times every variant of every layer, in rounds that alternate between the variants of one; yields a row for each layer."""
    import polyphase  # here, so that reports can be read where it is not built

    for family, layer in draw(seed, of_each):
        if filter_ not in layer.name:
            continue
        runs: dict[str, Callable[[], object]] = {}
        for variant in variants(layer):
            data = variant.layer.data()
            session = polyphase.compile(variant.onnx(data)).session(threads=threads)
            found, want = session.run([data["x"]])["y"], variant.expected(data)
            if measure.relative_error([found], [want]) > measure.TOLERANCE["fp32"]:
                raise SystemExit(f"bench: {layer.name}, {variant.name}: a wrong result")
            runs[variant.name] = functools.partial(session.run, [data["x"]])
        ms = measure.alternating(runs, seconds, rounds, processor)
        yield {"name": layer.name, "family": family, "ms": ms, "ratios": {name: one / ms["none"] for name, one in ms.items()}}


def summary(rows: Sequence[dict]) -> str:
    ratios = [ratio for row in rows for name, ratio in row["ratios"].items() if name != "none"]
    if not ratios:
        return "no layer"
    return (f"{len(ratios)} crops of {len(rows)} layers, over the uncropped one at equal output size: geometric mean {measure.geometric_mean(ratios):.2f}, most {max(ratios):.2f}, "
            f"{sum(ratio <= 1.1 for ratio in ratios)} within 10 %")
