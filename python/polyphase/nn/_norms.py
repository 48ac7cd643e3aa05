"""Normalisations. Statistics are taken in FP32 at least, also of float16 and bfloat16, and the variance never is negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentError
from .._network import Network, Tensor
from ._function import function, tensor


def _narrow(x: Tensor) -> bool:
    return x.dtype in ("float16", "bfloat16")


def _scaled(net: Network, y: Tensor, weight: Any, bias: Any, of: Tensor) -> Tensor:
    """Cast back before the weight, as the originals do."""
    y = net.cast(y, to=of.dtype) if y.dtype != of.dtype else y
    y = y if weight is None else net.mul(y, weight)
    return y if bias is None else net.add(y, bias)


def _first_axis(x: Tensor, normalized_shape: int | Sequence[int]) -> int:
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if not sizes or len(sizes) > x.ndim or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(sizes[::-1], x.shape[::-1])):
        raise ArgumentError(f"Given normalized_shape={sizes}, expected input with shape [*, {', '.join(map(str, sizes))}], but got input of size{list(x.shape)}",
                            hint="The last axes of the input have these sizes.")
    return x.ndim - len(sizes)


@function
def layer_norm(net: Network, input: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-05,
               use_diff_of_squares: bool = True) -> Any:
    """(x - mean) / √(variance + eps) · weight + bias over the last axes; a missing weight is ones, a missing bias zeros.

    use_diff_of_squares is accepted and changes nothing: the variance is that of what is left when the mean is out, which stays right where
    E[x²] - E[x]² loses all its digits.
    """
    x = tensor(net, input, "input")
    axis = _first_axis(x, normalized_shape)
    if not _narrow(x):
        return net.layer_norm(x, weight, bias, axis=axis, epsilon=float(eps))
    return _scaled(net, net.layer_norm(net.cast(x, to="float32"), axis=axis, epsilon=float(eps)), weight, bias, x)


@function
def rms_norm(net: Network, input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float = 1e-06) -> Any:
    """x / √(mean(x²) + eps) · weight over the last axes; a missing weight is ones."""
    x = tensor(net, input, "input")
    axis = _first_axis(x, normalized_shape)
    if not _narrow(x):
        return net.layer_norm(x, weight, axis=axis, epsilon=float(eps), centre=False)
    return _scaled(net, net.layer_norm(net.cast(x, to="float32"), axis=axis, epsilon=float(eps), centre=False), weight, None, x)


def _channels(net: Network, given: Any, x: Tensor) -> Any:
    """A vector of one entry per channel, as it broadcasts to x."""
    return None if given is None else net.reshape(tensor(net, given, "a weight"), shape=[x.shape[1], *[1] * (x.ndim - 2)])


@function
def group_norm(net: Network, input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Each group of neighbouring channels of each image normalised, with its biased variance; rank 3 or more.

    weight, bias: (C); missing ones are ones and zeros.
    """
    x = tensor(net, input, "input")
    if x.ndim < 3:
        raise ArgumentError(f"Expected at least 3 dimensions for group_norm, but got input of size {list(x.shape)}", hint="Give (N, C, spatial...).")
    channels = x.shape[1]
    if num_groups < 1 or isinstance(channels, int) and channels % num_groups != 0:
        raise ArgumentError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and num_groups={num_groups}",
                            hint="Give a divisor of the channels.")
    if not _narrow(x):
        return net.group_norm(x, weight, bias, groups=num_groups, epsilon=float(eps))
    y = net.group_norm(net.cast(x, to="float32"), groups=num_groups, epsilon=float(eps))
    return _scaled(net, y, _channels(net, weight, x), _channels(net, bias, x), x)


@function
def instance_norm(net: Network, input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Each channel of each image normalised, with its biased variance. weight, bias: (C); missing ones are ones and zeros."""
    x = tensor(net, input, "input")
    if x.ndim < 3:
        raise ArgumentError(f"instance_norm takes (N, C, spatial...), but got input of size {list(x.shape)}", hint="Give at least one spatial axis.")
    if not _narrow(x):
        return net.instance_norm(x, weight, bias, epsilon=float(eps))
    y = net.instance_norm(net.cast(x, to="float32"), epsilon=float(eps))
    return _scaled(net, y, _channels(net, weight, x), _channels(net, bias, x), x)
