"""Convolutions, transposed convolutions, pools and resampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .._errors import ArgumentError
from .._network import Network, Size, Tensor
from ._function import function, per_axis, tensor
from ._shapes import expect_room, sizes_of_tensor

PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def image(net: Network, given: Any, spatial: int, what: str) -> Tensor:
    """What a window moves over, with or without a batch axis."""
    x = tensor(net, given, "input")
    if x.ndim not in (spatial + 1, spatial + 2):
        raise ArgumentError(f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {what}, but got input of size: {list(x.shape)}",
                            hint="Give (C, spatial...) or (N, C, spatial...).")
    return x


def convolution(net: Network, spatial: int, x: Tensor, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
                padding_mode: str = "zeros") -> Tensor:
    pads = per_axis(padding, spatial, "padding")
    if padding_mode != "zeros" and any(pads):
        around = [0] * (x.ndim - spatial) + pads
        expect_room(x, around, around, padding_mode)
        x = net.pad(x, pre=around, post=around, mode=PADDING_MODES[padding_mode])
        pads = [0] * spatial
    return net.add_convolution_nd(x, weight, bias, stride=per_axis(stride, spatial, "stride"), dilation=per_axis(dilation, spatial, "dilation"),
                                  groups=groups, pre_padding=pads)


def transposed_convolution(net: Network, spatial: int, x: Tensor, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int,
                           dilation: Any, output_size: Sequence[int | Size] | Tensor | None = None) -> Tensor:
    if isinstance(output_size, Tensor):  # as large as that one; a vector holds the sizes themselves
        output_size = sizes_of_tensor(net, output_size) if output_size.ndim == 1 else output_size.shape
    elif hasattr(output_size, "shape"):  # an array, likewise
        output_size = [int(size) for size in (output_size if len(output_size.shape) == 1 else output_size.shape)]
    settings: dict[str, Any] = {"output_size": list(output_size)} if output_size is not None else {"output_padding": per_axis(output_padding, spatial, "output_padding")}
    return net.add_deconvolution_nd(x, weight, bias, stride=per_axis(stride, spatial, "stride"), dilation=per_axis(dilation, spatial, "dilation"),
                                    groups=groups, pre_padding=per_axis(padding, spatial, "padding"), **settings)


def _conv(spatial: int) -> Callable[..., Any]:
    one = (1,) * spatial
    zero = (0,) * spatial

    def write(net: Network, input: Any, weight: Any, bias: Any = None, stride: Any = one, padding: Any = zero, dilation: Any = one, groups: int = 1) -> Any:
        x = image(net, input, spatial, f"conv{spatial}d")
        return convolution(net, spatial, x, weight, bias, stride, padding, dilation, groups)

    write.__name__ = f"conv{spatial}d"
    write.__doc__ = f"""A convolution over {spatial} spatial ax{'is' if spatial == 1 else 'es'}, with or without a batch axis.

    weight: (out, in / groups, kernel...). bias: (out). padding: zeros on both sides.
    """
    return function(write)


def _conv_transpose(spatial: int) -> Callable[..., Any]:
    one = (1,) * spatial
    zero = (0,) * spatial

    def write(net: Network, input: Any, weight: Any, bias: Any = None, stride: Any = one, padding: Any = zero, output_padding: Any = zero, dilation: Any = one,
              groups: int = 1) -> Any:
        x = image(net, input, spatial, f"conv_transpose{spatial}d")
        return transposed_convolution(net, spatial, x, weight, bias, stride, padding, output_padding, groups, dilation)

    write.__name__ = f"conv_transpose{spatial}d"
    write.__doc__ = f"""A transposed convolution over {spatial} spatial ax{'is' if spatial == 1 else 'es'}, with or without a batch axis.

    weight: (in, out / groups, kernel...). bias: (out). The result has
    (size - 1) · stride - 2 · padding + dilation · (kernel - 1) + output_padding + 1 places along each axis.
    """
    return function(write)


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)
conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose(1), _conv_transpose(2), _conv_transpose(3)


@function
def avg_pool2d(net: Network, input: Any, kernel_size: Any, stride: Any = None, padding: Any = (0, 0), ceil_mode: bool = False, count_include_pad: bool = True) -> Any:
    """The mean of each window, with or without a batch axis. stride None: the kernel's size.

    ceil_mode: windows that begin inside of the image or its padding before it count, even where they end beyond.
    count_include_pad: zeros of the padding count in the mean.
    """
    x = image(net, input, 2, "avg_pool2d")
    kernel, pads = per_axis(kernel_size, 2, "kernel_size"), per_axis(padding, 2, "padding")
    strides = kernel if stride is None else per_axis(stride, 2, "stride")
    if 0 in (*kernel, *strides):
        raise ArgumentError("stride should not be zero", hint=f"kernel_size is {kernel}, stride is {strides}.")
    if any(2 * pad > size for pad, size in zip(pads, kernel)) or any(pad < 0 for pad in pads):
        raise ArgumentError("pad should be at most half of effective kernel size", hint=f"padding is {pads}, kernel_size is {kernel}.")
    batched = x if x.ndim == 4 else net.reshape(x, shape=[1, *x.shape])
    y = net.avg_pool(batched, kernel=kernel, stride=strides, dilation=[1, 1], pre=pads, post=pads,
                     ceil=bool(ceil_mode), include_pad=bool(count_include_pad))
    return y if x.ndim == 4 else net.reshape(y, shape=list(y.shape[1:]))


_RESAMPLING = {"nearest": ("nearest", None), "nearest-exact": ("nearest", None), "linear": ("linear", 1), "bilinear": ("linear", 2), "bicubic": ("cubic", 2), "trilinear": ("linear", 3)}


@function
def interpolate(net: Network, input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False,
                recompute_scale_factor: bool = False, antialias: bool = False) -> Any:
    """torch.nn.functional.interpolate of (N, C, spatial...): to the spatial sizes `size`, or by the factor `scale_factor`.

    mode: 'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic' or 'trilinear'. size may hold sizes of other tensors.
    """
    x = tensor(net, input, "input")
    spatial = x.ndim - 2
    if mode not in _RESAMPLING:
        raise ArgumentError(f"mode is {mode!r:.60}.", hint=f"It is one of {', '.join(_RESAMPLING)}.")
    word, axes = _RESAMPLING[mode]
    if spatial not in (1, 2, 3) or axes not in (None, spatial):
        raise ArgumentError(f"Got {x.ndim}D input, but {mode} mode needs {(axes or 2) + 2}D input", hint="Give (N, C, spatial...).")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("either size or scale_factor should be defined", hint="Give one of them.")
    if align_corners and word == "nearest":
        raise ArgumentError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear", hint="Leave it out.")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input", hint="Leave it out.")
    scales: list[float] = []
    if size is not None:
        sizes = list(size) if isinstance(size, (list, tuple)) else [size] * spatial
        if len(sizes) != spatial:
            raise ArgumentError(f"size has {len(sizes)} entries for {spatial} spatial axes.", hint="Give one for each.")
    else:
        factors = [float(one) for one in scale_factor] if isinstance(scale_factor, (list, tuple)) else [float(scale_factor)] * spatial
        if len(factors) != spatial or any(not factor > 0 for factor in factors):
            raise ArgumentError(f"scale_factor is {scale_factor!r:.60}.", hint="Give a factor above 0, or one for each spatial axis.")
        sizes = [_scaled(x, 2 + i, factor) for i, factor in enumerate(factors)]
        scales = [] if recompute_scale_factor else [1.0, 1.0, *factors]
    coordinate = "align_corners" if align_corners else "asymmetric" if mode == "nearest" else "half_pixel"
    nearest = "floor" if mode == "nearest" else "round_prefer_ceil"
    return net.resize(x, sizes=[*x.shape[:2], *sizes], scales=scales, mode=word, coordinate=coordinate, nearest=nearest, antialias=bool(antialias),
                      exclude_outside=bool(antialias), cubic_coefficient=-0.5 if antialias else -0.75)


def _scaled(x: Tensor, axis: int, factor: float) -> Any:
    size = x.shape[axis]
    if isinstance(size, int):
        return math.floor(size * factor)
    if factor == int(factor):
        return size * int(factor)
    raise ArgumentError(f"axis {axis} of tensor '{x.name}' is {size}, which has no size times {factor} as an expression.", hint="Give size, or a whole factor.")
