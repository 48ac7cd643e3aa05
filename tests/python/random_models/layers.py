"""Convolutions, pools and norms."""
from __future__ import annotations

import numpy as np

from .maker import LIMIT, Maker, Refused, count, pair, rule
from .elementwise import void


@rule(weight=4)
def convolution(m: Maker) -> None:
    x = m.image()
    transposed = m.chance(2) or m.chance(2)
    channels, spatial = x.shape[1][0], x.rank - 2
    group = channels if m.chance(4) else 1
    outputs = m.between(1, 3) * (group if not transposed or group > 1 else 1)
    kernel = [m.between(1, 3) for _ in range(spatial)]
    stride, dilation = [m.between(1, 3) for _ in range(spatial)], [m.between(1, 2) for _ in range(spatial)]
    pads = [m.between(0, 1) for _ in range(2 * spatial)]
    sizes = []
    adjust = [m.between(0, max(s, d) - 1) if m.chance(3) else 0 for s, d in zip(stride, dilation)]
    for axis in range(spatial):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        pad = pads[axis] + pads[axis + spatial]
        if transposed:
            sizes.append(tuple(stride[axis] * (n - 1) + adjust[axis] + reach - pad for n in x.shape[2 + axis]))
        else:
            if any(n + pad < reach for n in x.shape[2 + axis]):
                raise Refused
            sizes.append(tuple((n + pad - reach) // stride[axis] + 1 for n in x.shape[2 + axis]))
    taps = int(np.prod(kernel)) * (channels if transposed or group == 1 else 1)
    bound = x.bound * taps * 2 + 3
    if bound > LIMIT * 16:
        raise Refused
    shape = (channels, outputs // group, *kernel) if transposed else (outputs, channels // group, *kernel)
    attributes = dict(strides=stride, dilations=dilation, pads=pads, group=group) | (dict(output_padding=adjust) if transposed and any(adjust) else {})
    operands = [x.name, m.weights(*shape)] + ([m.weights(outputs, low=-3, high=3)] if m.chance(2) else [])
    if m.chance(6) and transposed:
        del attributes["pads"]
        name = m.raw("ConvTransposeWithDynamicPads", [*operands[:2], m.integers(*pads), *operands[2:]], domain="com.microsoft", **attributes)[0]
        return void(m.keep(name, (x.shape[0], pair(outputs), *sizes), x, bound))
    if m.chance(6) and not transposed:
        name = m.raw("FusedConv", operands, domain="com.microsoft", activation="Relu", **attributes)[0]
        return void(m.keep(name, (x.shape[0], pair(outputs), *sizes), x, bound))
    m.keep(m.raw("ConvTranspose" if transposed else "Conv", operands, **attributes)[0], (x.shape[0], pair(outputs), *sizes), x, bound)


@rule(weight=2)
def pool(m: Maker) -> None:
    x = m.image()
    spatial = x.rank - 2
    op = m.one("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    exact = x.exact and "Max" in op
    if op.startswith("Global"):
        bound = x.bound * (max(np.prod([s[r] for s in x.shape[2:]]) for r in (0, 1)) ** 0.5 if "Lp" in op else 1)
        return void(m.keep(m.raw(op, [x.name])[0], (*x.shape[:2], *[pair(1)] * spatial), x, float(bound), exact))
    stride = [m.between(1, 2) for _ in range(spatial)]
    sizes = [tuple((n - 2) // s + 1 for n in x.shape[2 + i]) for i, s in enumerate(stride)]
    m.keep(m.raw(op, [x.name], kernel_shape=[2] * spatial, strides=stride)[0], (*x.shape[:2], *sizes), x, x.bound * (3 if op == "LpPool" else 1), exact)


@rule(weight=2)
def norm(m: Maker) -> None:
    x = m.image()
    channels = x.shape[1][0]
    scale, bias = m.weights(channels), m.weights(channels)
    op = m.one("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization", "LRN", "MeanVarianceNormalization",
               "LpNormalization", "Softmax", "LogSoftmax", "Hardmax")
    if op == "BatchNormalization":
        name = m.raw(op, [x.name, scale, bias, m.weights(channels), m.weights(channels, low=1, high=3)], epsilon=0.5)[0]
        return void(m.keep(name, x.shape, x, x.bound * 3 + 9, exact=False))
    if op == "InstanceNormalization":
        name = m.raw(op, [x.name, scale, bias], epsilon=0.5)[0]
    elif op == "GroupNormalization":
        name = m.raw(op, [x.name, scale, bias], num_groups=m.one(1, channels), epsilon=0.5)[0]
    elif op in ("LayerNormalization", "RMSNormalization"):
        if not x.fixed(x.rank - 1):
            raise Refused
        extra = [m.weights(x.shape[-1][0])] if op[0] == "L" else []
        name = m.raw(op, [x.name, m.weights(x.shape[-1][0]), *extra], epsilon=0.5)[0]
    elif op == "LRN":
        name = m.raw(op, [x.name], size=m.one(1, 3))[0]
    elif op == "Hardmax":
        if not x.exact:
            raise Refused
        return void(m.keep(m.raw(op, [x.name], axis=m.between(0, x.rank - 1))[0], x.shape, x, 1))
    elif op in ("Softmax", "LogSoftmax"):
        bound = 1 if op == "Softmax" else x.bound * 2 + 10
        return void(m.keep(m.raw(op, [x.name], axis=m.between(-x.rank, x.rank - 1))[0], x.shape, x, bound, exact=False))
    else:
        # Where the sum is near 0 the quotient has no bound.
        shifted = m.raw("Add", [m.raw("Relu", [x.name])[0], m.weights(*[1] * x.rank, low=1, high=1)])[0]
        if op == "LpNormalization":
            name = m.raw(op, [shifted], axis=m.between(0, x.rank - 1), p=m.one(1, 2))[0]
        else:
            if x.rank != 4 or not x.fixed(3) or not all(x.fixed(axis) for axis in (0, 2)):
                raise Refused
            slope = m.constant(np.arange(count((x.shape[0], *x.shape[2:])), dtype=np.float32).reshape(x.shape[0][0], 1, x.shape[2][0], x.shape[3][0]))
            name = m.raw(op, [m.raw("Add", [m.raw("Tanh", [x.name])[0], slope])[0]])[0]
    m.keep(name, x.shape, x, 60, exact=False)
