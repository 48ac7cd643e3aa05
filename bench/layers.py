"""Single transposed convolutions: what a layer is, what it computes, and its model in PyTorch's and ONNX's words."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
from collections.abc import Iterable

import numpy as np

SHIPPED = pathlib.Path(__file__).with_name("layers.json")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A transposed convolution in PyTorch's terms; one number per axis in each tuple."""

    name: str
    batch: int
    in_channels: int
    out_channels: int
    input: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    bias: bool = True
    suite: bool = False  # of the benchmark suite

    @classmethod
    def of(cls, row: dict) -> Layer:
        axes = {key: tuple(row[key]) for key in ("input", "kernel", "stride", "padding", "output_padding", "dilation")}
        name = f"{row['suite']} {row['name']}" if row.get("suite") else row["name"]
        return cls(name, row["batch"], row["in_channels"], row["out_channels"], groups=row["groups"], bias=row["bias"], suite=bool(row.get("suite")), **axes)

    @property
    def rank(self) -> int:
        return len(self.input)

    @property
    def output(self) -> tuple[int, ...]:
        """PyTorch's formula (torch.nn.ConvTranspose2d)."""
        each = zip(self.input, self.stride, self.padding, self.dilation, self.kernel, self.output_padding, strict=True)
        return tuple((i - 1) * s - 2 * p + d * (k - 1) + extra + 1 for i, s, p, d, k, extra in each)

    @property
    def flops(self) -> float:
        """Two for each product of an input element and a tap that lands in the output."""
        landed = 1
        for i, s, p, d, k, out in zip(self.input, self.stride, self.padding, self.dilation, self.kernel, self.output, strict=True):
            at = np.arange(i)[:, None] * s + np.arange(k)[None, :] * d - p
            landed *= int(((at >= 0) & (at < out)).sum())
        return 2.0 * self.batch * landed * self.in_channels * self.out_channels / self.groups

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel)

    def bytes_moved(self, element: int) -> int:
        """Input, weights and output once each."""
        counts = (self.batch * self.in_channels * math.prod(self.input), math.prod(self.weight_shape), self.batch * self.out_channels * math.prod(self.output))
        return element * sum(counts)

    def words(self) -> str:
        """The layer as kernels_bench reads it (tests/backends/cpu/conv_case.h)."""
        def axes(values: Iterable[int]) -> str:
            return "x".join(map(str, values))

        post = tuple(p - extra for p, extra in zip(self.padding, self.output_padding, strict=True))
        text = (f"{self.name.replace(' ', '_')} conv_transpose n{self.batch} g{self.groups} c{self.in_channels}:{self.out_channels} in{axes(self.input)} k{axes(self.kernel)} "
                f"s{axes(self.stride)} d{axes(self.dilation)} pre{axes(self.padding)} post{axes(post)}")
        return text + (" bias" if self.bias else "")

    # ---- data, and models of it

    def data(self, seed: int = 1) -> dict[str, np.ndarray]:
        """x, w and, with a bias, b, in FP32: sums of any length stay near 1."""
        rng = np.random.default_rng(seed)
        taps = max(1.0, self.in_channels / self.groups * math.prod(-(-k // s) for k, s in zip(self.kernel, self.stride, strict=True)))
        out = {"x": rng.standard_normal((self.batch, self.in_channels, *self.input), dtype=np.float32),
               "w": rng.standard_normal(self.weight_shape, dtype=np.float32) / np.float32(math.sqrt(taps))}
        if self.bias:
            out["b"] = rng.standard_normal(self.out_channels, dtype=np.float32)
        return out

    def onnx(self, data: dict[str, np.ndarray], dtype: str) -> bytes:
        from onnx import TensorProto, helper, numpy_helper

        kind = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}[dtype]

        def weight(name: str):  # as raw bytes: OpenVINO misreads numbers of bfloat16 in any other field
            return numpy_helper.from_array(data[name].astype(helper.tensor_dtype_to_np_dtype(kind)), name)

        names = [name for name in ("x", "w", "b") if name in data]
        node = helper.make_node("ConvTranspose", names, ["y"], kernel_shape=self.kernel, strides=self.stride, dilations=self.dilation, group=self.groups,
                                pads=[*self.padding, *self.padding], output_padding=self.output_padding)
        opset = 17 if dtype != "bf16" else 22  # the first in which ConvTranspose takes bfloat16
        graph = helper.make_graph([node], "layer", [helper.make_tensor_value_info("x", kind, data["x"].shape)],
                                  [helper.make_tensor_value_info("y", kind, (self.batch, self.out_channels, *self.output))], [weight(name) for name in names[1:]])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()

    def module(self, data: dict[str, np.ndarray]):
        """torch.nn.ConvTransposeNd with the data's weights."""
        import torch

        kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[self.rank - 1]
        module = kind(self.in_channels, self.out_channels, self.kernel, self.stride, self.padding, self.output_padding, self.groups, self.bias, self.dilation)
        with torch.no_grad():
            module.weight.copy_(torch.from_numpy(data["w"]))
            if self.bias:
                module.bias.copy_(torch.from_numpy(data["b"]))
        return module.eval()


def read(path: pathlib.Path = SHIPPED) -> list[Layer]:
    """The layers of a JSON list with the keys of bench/layers.json."""
    return [Layer.of(row) for row in json.loads(path.read_text())]
