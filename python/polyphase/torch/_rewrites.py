"""Operators that PyTorch has no decomposition for, in operators that Polyphase takes. What a function cannot write it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import GraphModule

aten = torch.ops.aten


def _convolution(x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int], transposed: bool,
                 output_padding: list[int], groups: int, *_: bool) -> Tensor:
    """TorchScript's form."""
    return aten.convolution.default(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)  # type: ignore[no-any-return]


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return aten.clone.default(src.to(self.dtype).expand(self.shape), memory_format=torch.contiguous_format)  # type: ignore[no-any-return]


def _slice_scatter(self: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """y[:, 2:4] = src."""
    size = self.shape[dim]
    first, last = (_place(end_of, size, default) for end_of, default in ((start, 0), (end, size)))
    if step != 1:
        inside = torch.arange(0, size) - first
        picked = ((inside >= 0) & (inside < last - first) & (inside % step == 0))
        source = src.index_select(dim, (inside // step).clamp(0, src.shape[dim] - 1))
        shape = [1] * self.dim()
        shape[dim] = -1
        return torch.where(picked.reshape(shape), source.to(self.dtype), self)
    return torch.cat([self.narrow(dim, 0, first), src.to(self.dtype).expand(_with(self.shape, dim, src.shape[dim])), self.narrow(dim, last, size - last)], dim)


def _place(given: Any, size: Any, default: Any) -> Any:
    """Where a slice begins or ends, from the end if negative, inside of the axis."""
    if given is None:
        return default
    if isinstance(given, int) and isinstance(size, int):
        return min(max(given + size if given < 0 else given, 0), size)
    if isinstance(given, int):
        return size if given >= 2**62 else torch.sym_max(size + given, 0) if given < 0 else torch.sym_min(given, size)
    return torch.sym_min(given, size)


def _with(shape: torch.Size, dim: int, size: Any) -> list[Any]:
    out = list(shape)
    out[dim] = size
    return out


def _select_scatter(self: Tensor, src: Tensor, dim: int, index: Any) -> Any:
    place = index + self.shape[dim] if isinstance(index, int) and index < 0 else index
    return _slice_scatter(self, src.unsqueeze(dim), dim, place, place + 1)


def _attention(x: Tensor, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    batch, length, width = x.shape
    query, key, value = F.linear(x, qkv_weight, qkv_bias).reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
    found = F.scaled_dot_product_attention(query, key, value)
    return F.linear(found.transpose(1, 2).reshape(batch, length, width), weight, bias)


def _encoder_layer(x: Tensor, width: int, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, weight: Tensor, bias: Tensor, use_gelu: bool,
                   norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
                   weight_1: Tensor, bias_1: Tensor, weight_2: Tensor, bias_2: Tensor, mask: Tensor | None = None, mask_type: int | None = None) -> Any:
    """torch.nn.TransformerEncoderLayer in eval mode."""
    if mask is not None or x.dim() != 3:
        return NotImplemented

    def attend(y: Tensor) -> Tensor:
        return _attention(y, heads, qkv_weight, qkv_bias, weight, bias)

    def feed(y: Tensor) -> Tensor:
        y = F.linear(y, weight_1, bias_1)
        return F.linear(F.gelu(y) if use_gelu else F.relu(y), weight_2, bias_2)

    def norm(y: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return F.layer_norm(y, (width,), scale, shift, eps)

    if norm_first:
        x = x + attend(norm(x, norm_weight_1, norm_bias_1))
        return x + feed(norm(x, norm_weight_2, norm_bias_2))
    x = norm(x + attend(x), norm_weight_1, norm_bias_1)
    return norm(x + feed(x), norm_weight_2, norm_bias_2)


REWRITES: dict[Any, Callable[..., Any]] = {
    aten._convolution.default: _convolution,
    aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    aten.copy.default: _copy,
    aten.select_scatter.default: _select_scatter,
    aten.slice_scatter.default: _slice_scatter,
}


def tidy(graph: GraphModule) -> None:
    """What Dynamo's own passes write after all decompositions, and constants that older releases leave without a description."""
    for node in graph.graph.nodes:
        if node.op == "get_attr" and isinstance(value := getattr(graph, str(node.target), None), Tensor):
            node.meta.setdefault("val", value)
        if node.target is torch.ops.prims.convert_element_type.default:
            node.target = aten._to_copy.default
            node.args, node.kwargs = node.args[:1], {"dtype": node.args[1]}
