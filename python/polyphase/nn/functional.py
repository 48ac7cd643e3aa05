"""Functions over tensors of a Network, which add layers to it, and over arrays, which run at once.

    import polyphase.nn.functional as F

    y = F.silu(F.group_norm(F.conv_transpose2d(x, weight, stride=2, padding=1, output_padding=1), 8))

The names, parameters and defaults are those of TensorRT-LLM 0.5's functional module; what it accepted and ignored (output_padding, dilation and
groups of transposed convolutions; padding, ceil_mode and count_include_pad of pools) is honoured. Results, ranges and error texts are
PyTorch's. NumPy in, NumPy out; PyTorch in, PyTorch out; an array beside a network's tensor is a constant.
"""

from ._math import (abs, add, argmax, clip, cos, div, einsum, embedding, eq, exp, gelu, gt, linear, log, lt, matmul, max, maximum, mean, minimum, mish, mul, op_and, op_or, pow,
                    relu, round, sigmoid, silu, sin, softmax, softplus, sqrt, sub, tanh)
from ._norms import group_norm, instance_norm, layer_norm, rms_norm
from ._shapes import arange, cast, chunk, concat, expand, expand_dims, flip, gather, index_select, pad, permute, select, shape, slice, split, transpose, view, where
from ._windows import avg_pool2d, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, interpolate

__all__ = ["abs", "add", "arange", "argmax", "avg_pool2d", "cast", "chunk", "clip", "concat", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d", "cos", "div", "einsum", "embedding", "eq", "exp", "expand", "expand_dims", "flip", "gather", "gelu", "group_norm", "gt", "index_select",
           "instance_norm", "interpolate", "layer_norm", "linear", "log", "lt", "matmul", "max", "maximum", "mean", "minimum", "mish", "mul", "op_and", "op_or", "pad",
           "permute", "pow", "relu", "rms_norm", "round", "select", "shape", "sigmoid", "silu", "sin", "slice", "softmax", "softplus", "split", "sqrt", "sub", "tanh",
           "transpose", "view", "where"]
