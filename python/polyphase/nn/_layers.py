"""The layers of polyphase.nn: PyTorch's names for their parameters, TensorRT-LLM 0.5's for their settings."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentError
from .._network import Network, Size, Tensor, dtype_name
from . import functional as F
from ._function import function, per_axis, tensor
from ._module import Module, Parameter
from ._shapes import _CAST_DTYPES
from ._windows import PADDING_MODES, convolution, image, transposed_convolution


class Mish(Module):
    """x · tanh(softplus(x))."""

    def forward(self, x: Any) -> Any:
        """x: any shape."""
        return F.mish(x)


class Cast(Module):
    """Another dtype; int8 quantises with scale 1, as functional.cast says."""

    def __init__(self, output_dtype: Any = "float32"):
        name = dtype_name(output_dtype)
        if name not in _CAST_DTYPES:
            raise ArgumentError(f"output_dtype is {name!r:.60}.", hint=f"Cast takes {', '.join(_CAST_DTYPES)}.")
        self.output_dtype = name

    def forward(self, x: Any) -> Any:
        """x: any shape."""
        return F.cast(x, self.output_dtype)


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = (0, 0), ceil_mode: bool = False, count_include_pad: bool = True):
        self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad = kernel_size, stride, padding, ceil_mode, count_include_pad

    def forward(self, x: Any) -> Any:
        """x: (N, C, H, W) or (C, H, W)."""
        return F.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class LayerNorm(Module):
    """Normalisation over the last axes."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-05, elementwise_affine: bool = True, dtype: Any = None):
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Parameter(self.normalized_shape, dtype, 1.0) if elementwise_affine else None
        self.bias = Parameter(self.normalized_shape, dtype, 0.0) if elementwise_affine else None

    def forward(self, x: Any) -> Any:
        """x: (*, normalized_shape)."""
        return F.layer_norm(x, self.normalized_shape, self.weight_of(self.weight), self.weight_of(self.bias), self.eps)


class RmsNorm(Module):
    """x / √(mean(x²) + eps) · weight over the last axes."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-06, elementwise_affine: bool = True, dtype: Any = None):
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Parameter(self.normalized_shape, dtype, 1.0) if elementwise_affine else None

    def forward(self, x: Any) -> Any:
        """x: (*, normalized_shape)."""
        return F.rms_norm(x, self.normalized_shape, self.weight_of(self.weight), self.eps)


class GroupNorm(Module):
    """Each group of neighbouring channels normalised."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True, dtype: Any = None):
        if num_groups < 1 or num_channels % num_groups != 0:
            raise ArgumentError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})", hint="Give a divisor of the channels.")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter((num_channels,), dtype, 1.0) if affine else None
        self.bias = Parameter((num_channels,), dtype, 0.0) if affine else None

    def forward(self, x: Any) -> Any:
        """x: (N, C, spatial...)."""
        return F.group_norm(x, self.num_groups, self.weight_of(self.weight), self.weight_of(self.bias), self.eps)


class InstanceNorm(Module):
    """Each channel of each image normalised."""

    def __init__(self, num_features: int, eps: float = 1e-05, affine: bool = False, dtype: Any = None):
        self.num_features, self.eps = num_features, eps
        self.weight = Parameter((num_features,), dtype, 1.0) if affine else None
        self.bias = Parameter((num_features,), dtype, 0.0) if affine else None

    def forward(self, x: Any) -> Any:
        """x: (N, C, spatial...)."""
        return F.instance_norm(x, self.weight_of(self.weight), self.weight_of(self.bias), self.eps)


def _of_one_process(tp_size: Any, tp_group: Any) -> None:
    if tp_size != 1 or tp_group is not None:
        raise ArgumentError(f"tp_size is {tp_size!r:.40} and tp_group {tp_group!r:.40}.", hint="A layer is of one process here: leave them out, and give the whole weight.")


class Linear(Module):
    """x · weightᵀ + bias. The settings of the original that divide a layer among processes are 1 and None here."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None, tp_group: Any = None, tp_size: int = 1,
                 gather_output: bool = True, share_weight: Parameter | None = None):
        _of_one_process(tp_size, tp_group)
        if share_weight is not None and getattr(share_weight, "shape", None) != (out_features, in_features):
            raise ArgumentError(f"share_weight is {share_weight!r:.60}; expected a parameter of shape ({out_features}, {in_features}).", hint="Give the weight of another layer.")
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((out_features, in_features), dtype) if share_weight is None else share_weight
        self.bias = Parameter((out_features,), dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """x: (*, in_features)."""
        return F.linear(x, self.weight_of(self.weight), self.weight_of(self.bias))


class Embedding(Module):
    """Rows of a table."""

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = None, tp_size: int = 1, tp_group: Any = None, sharding_dim: int = 0, tp_rank: Any = None):
        _of_one_process(tp_size, tp_group)
        self.weight = Parameter((num_embeddings, embedding_dim), dtype)

    def forward(self, x: Any) -> Any:
        """x: integers of any shape."""
        return F.embedding(x, self.weight_of(self.weight))


@function
def _convolve(net: Network, x: Any, weight: Any, bias: Any, settings: tuple[Any, ...]) -> Any:
    spatial, stride, padding, dilation, groups, padding_mode = settings
    return convolution(net, spatial, image(net, x, spatial, f"conv{spatial}d"), weight, bias, stride, padding, dilation, groups, padding_mode)


@function
def _convolve_transposed(net: Network, x: Any, weight: Any, bias: Any, settings: tuple[Any, ...], output_size: Any) -> Any:
    spatial, stride, padding, output_padding, groups, dilation = settings
    given = image(net, x, spatial, f"conv_transpose{spatial}d")
    return transposed_convolution(net, spatial, given, weight, bias, stride, padding, output_padding, groups, dilation, output_size)


class _Convolution(Module):
    _spatial = 0

    def _settle(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, groups: int, padding_mode: str) -> None:
        if groups <= 0:
            raise ArgumentError("groups must be a positive integer", hint=f"groups is {groups}.")
        if in_channels % groups != 0:
            raise ArgumentError("in_channels must be divisible by groups", hint=f"{in_channels} and {groups}.")
        if out_channels % groups != 0:
            raise ArgumentError("out_channels must be divisible by groups", hint=f"{out_channels} and {groups}.")
        if padding_mode not in PADDING_MODES:
            raise ArgumentError(f"padding_mode must be one of {sorted(PADDING_MODES)}, but got padding_mode='{padding_mode}'", hint="Give one of them.")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size = tuple(per_axis(kernel_size, self._spatial, "kernel_size"))
        self.stride = tuple(per_axis(stride, self._spatial, "stride"))
        self.padding = tuple(per_axis(padding, self._spatial, "padding"))
        self.dilation = tuple(per_axis(dilation, self._spatial, "dilation"))


def _sizes_of_weight(sizes: tuple[int, ...]) -> tuple[int, ...]:
    for size in sizes:
        if size < 0:
            raise ArgumentError(f"Trying to create tensor with negative dimension {size}: {list(sizes)}", hint="Channels and kernel are 0 or more.")
    return sizes


class _Conv(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", dtype: Any = None):
        self._settle(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self.weight = Parameter(_sizes_of_weight((out_channels, in_channels // groups, *self.kernel_size)), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """x: (N, C, spatial...) or (C, spatial...)."""
        settings = (self._spatial, self.stride, self.padding, self.dilation, self.groups, self.padding_mode)
        return _convolve(x, self.weight_of(self.weight), self.weight_of(self.bias), settings)


class _ConvTranspose(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", dtype: Any = None):
        if padding_mode != "zeros":
            raise ArgumentError(f'Only "zeros" padding mode is supported for {type(self).__name__}', hint="A transposed convolution crops; pad its input.")
        self._settle(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self.output_padding = tuple(per_axis(output_padding, self._spatial, "output_padding"))
        self.weight = Parameter(_sizes_of_weight((in_channels, out_channels // groups, *self.kernel_size)), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Any, output_size: Any = None) -> Any:
        """x: (N, C, spatial...) or (C, spatial...).

        output_size: the spatial sizes of the result, or its shape with or without a batch axis, in place of output_padding; another tensor, or its
        shape, makes the result as large as that one, at every size of one engine; a vector of integers holds sizes that a run tells.
        """
        settings = (self._spatial, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        if isinstance(output_size, (int, Size)):
            raise ArgumentError(f"output_size is {output_size!r:.60}.", hint="Give a list of sizes, or a tensor that the result is as large as.")
        sizes = output_size if output_size is None or hasattr(output_size, "shape") else tuple(output_size)
        return _convolve_transposed(x, self.weight_of(self.weight), self.weight_of(self.bias), settings, sizes)


def _of_rank(kind: type, spatial: int) -> type:
    word = "transposed convolution" if kind is _ConvTranspose else "convolution"
    name = f"{'ConvTranspose' if kind is _ConvTranspose else 'Conv'}{spatial}d"
    made = type(name, (kind,), {"_spatial": spatial, "__module__": __name__, "__doc__": f"A {word} over {spatial} spatial ax{'is' if spatial == 1 else 'es'}."})
    signature = inspect.signature(kind.__init__)
    per_axis_defaults = {key: (one.default,) * spatial for key, one in signature.parameters.items() if key in ("stride", "padding", "output_padding", "dilation")}

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        kind.__init__(self, *args, **kwargs)

    __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(default=per_axis_defaults.get(key, one.default)) for key, one in signature.parameters.items()])
    made.__init__ = __init__  # type: ignore[misc]
    return made


Conv1d, Conv2d, Conv3d = (_of_rank(_Conv, spatial) for spatial in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (_of_rank(_ConvTranspose, spatial) for spatial in (1, 2, 3))


class Upsample(Module):
    """Resampling to a size or by a factor."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None):
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, bool(align_corners)

    def forward(self, x: Any) -> Any:
        """x: (N, C, spatial...)."""
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)


@function
def _shuffle(net: Network, x: Any, factor: int) -> Any:
    given = tensor(net, x, "input")
    channels = given.shape[-3] if given.ndim >= 3 else 0
    if given.ndim < 3 or isinstance(channels, int) and channels % (factor * factor) != 0:
        raise ArgumentError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input has {list(given.shape)} and "
                            f"upscale_factor={factor}", hint="Give (*, C · factor², H, W).")
    lead, (_, height, width) = given.shape[:-3], given.shape[-3:]
    split = net.reshape(given, shape=[*lead, channels // (factor * factor), factor, factor, height, width])
    n = len(lead)
    turned = net.transpose(split, order=[*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return net.reshape(turned, shape=[*lead, channels // (factor * factor), height * factor, width * factor])


class PixelShuffle(Module):
    """(*, C · r², H, W) to (*, C, H · r, W · r)."""

    def __init__(self, upscale_factor: int):
        if upscale_factor < 1:
            raise ArgumentError(f"upscale_factor is {upscale_factor}.", hint="Give 1 or more.")
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Any:
        """x: rank 3 or more."""
        return _shuffle(x, self.upscale_factor)


@function
def _attend(net: Network, q: Any, k: Any, v: Any, heads: int) -> Any:
    def apart(x: Tensor) -> Tensor:  # (N, L, E) to (N, heads, L, E / heads)
        n, length, width = x.shape
        return net.transpose(net.reshape(x, shape=[n, length, heads, width // heads]), order=[0, 2, 1, 3])

    n, length, width = q.shape
    y = net.attention(apart(q), apart(k), apart(v), scale=1.0 / math.sqrt(width // heads))
    return net.reshape(net.transpose(y, order=[0, 2, 1, 3]), shape=[n, length, width])


class MultiHeadAttention(Module):
    """torch.nn.MultiheadAttention with one width for query, key and value; it gives the result without the weights."""

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, batch_first: bool = False, dtype: Any = None):
        if num_heads < 1 or embed_dim % num_heads != 0:
            raise ArgumentError("embed_dim must be divisible by num_heads", hint=f"{embed_dim} and {num_heads}.")
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self.in_proj_weight = Parameter((3 * embed_dim, embed_dim), dtype)
        self.in_proj_bias = Parameter((3 * embed_dim,), dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)

    def forward(self, query: Any, key: Any = None, value: Any = None) -> Any:
        """query, key, value: (L, N, E), or (N, L, E) with batch_first; key and value None: the query, the key."""
        key = query if key is None else key
        value = key if value is None else value
        if not self.batch_first:
            query, key, value = (F.transpose(one, 0, 1) for one in (query, key, value))
        weights = F.split(self.weight_of(self.in_proj_weight), self.embed_dim)
        biases = (None,) * 3 if self.in_proj_bias is None else F.split(self.weight_of(self.in_proj_bias), self.embed_dim)
        q, k, v = (F.linear(one, weight, bias) for one, weight, bias in zip((query, key, value), weights, biases))
        y = self.out_proj(_attend(q, k, v, self.num_heads))
        return y if self.batch_first else F.transpose(y, 0, 1)
