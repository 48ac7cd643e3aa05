"""Windows, spectra, rotations, warps, losses and the norms that optimisers write."""
from __future__ import annotations

import numpy as np

from .maker import Maker, Refused, pair, rule
from .elementwise import void


@rule
def window(m: Maker) -> None:
    op = m.one("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
    x = m.data()
    if op == "MelWeightMatrix":
        operands = [m.constant(np.int64(4)), m.constant(np.int64(16)), m.constant(np.int64(8000)), m.constant(np.float32(100)), m.constant(np.float32(3000))]
        return void(m.keep(m.raw(op, operands)[0], (pair(9), pair(4)), x, 1, False))
    size = m.between(2, 9)
    m.keep(m.raw(op, [m.constant(np.int64(size))], periodic=m.between(0, 1))[0], (pair(size),), x, 1, False)


@rule
def spectrum(m: Maker) -> None:
    x = m.data()
    if x.rank < 2 or x.rank > 4 or x.bound > 1000 or max(x.shape[1]) > 40:
        raise Refused
    signal = m.raw("Unsqueeze", [x.name, m.integers(-1)])[0]
    if m.chance(2):
        name = m.raw("DFT", [signal, "", m.constant(np.int64(1))], inverse=m.between(0, 1))[0]
        return void(m.keep(name, (*x.shape, pair(2)), x, x.bound * max(x.shape[1]), exact=False))
    if x.rank != 2 or min(x.shape[1]) < 4:
        raise Refused
    frames = tuple((n - 4) // 2 + 1 for n in x.shape[1])
    name = m.raw("STFT", [signal, m.constant(np.int64(2)), m.constant(np.ones(4, np.float32))])[0]
    m.keep(name, (x.shape[0], frames, pair(3), pair(2)), x, x.bound * 4, exact=False)


@rule
def rotation(m: Maker) -> None:
    """Positions turned by angle; two in one domain, two in another."""
    x = m.data(rank=(4,))
    if not all(x.fixed(axis) for axis in range(4)) or x.shape[3][0] % 2 or x.bound > 1000:
        raise Refused
    length, half = x.shape[2][0], x.shape[3][0] // 2
    angles = np.arange(length * half).reshape(length, half) / 7
    tables = m.constant(np.cos(angles).astype(np.float32)), m.constant(np.sin(angles).astype(np.float32))
    places = m.constant(np.tile(np.arange(length), (x.shape[0][0], 1)))
    if m.chance(2):
        name = m.raw("RotaryEmbedding", [x.name, *tables, places], interleaved=m.between(0, 1))[0]
    else:
        name = m.raw("RotaryEmbedding", [x.name, places, *tables], domain="com.microsoft", interleaved=m.between(0, 1))[0]
    m.keep(name, x.shape, x, x.bound * 2, exact=False)


@rule
def warp(m: Maker) -> None:
    x = m.data(rank=(4,))
    if not all(x.fixed(axis) for axis in range(4)) or min(x.shape[2][0], x.shape[3][0]) < 2:
        raise Refused
    n, c, h, w = (s[0] for s in x.shape)
    if m.chance(2):
        theta = np.tile(np.array([[[0.75, 0.25, 0.1], [-0.25, 0.5, 0]]], np.float32), (n, 1, 1))
        grid = m.raw("AffineGrid", [m.constant(theta), m.integers(n, c, 3, 2)], align_corners=m.between(0, 1))[0]
        return void(m.keep(m.raw("GridSample", [x.name, grid])[0], (*x.shape[:2], pair(3), pair(2)), x, x.bound, exact=False))
    shift = m.constant(np.array([m.between(-4, 4) / 4 for _ in range(n * 8 * (h - 1) * (w - 1))], np.float32).reshape(n, 8, h - 1, w - 1))
    name = m.raw("DeformConv", [x.name, m.weights(2, c, 2, 2), shift], kernel_shape=[2, 2])[0]
    m.keep(name, (x.shape[0], pair(2), pair(h - 1), pair(w - 1)), x, x.bound * c * 8, exact=False)


@rule
def loss(m: Maker) -> None:
    x = m.data()
    if x.rank < 2 or not all(x.fixed(axis) for axis in range(x.rank)) or x.bound > 60:
        raise Refused
    sizes = [s[0] for s in x.shape]
    labels = np.array([m.between(0, sizes[1] - 1) for _ in range(int(np.prod([sizes[0], *sizes[2:]])))], np.int64).reshape(sizes[0], *sizes[2:])
    if m.chance(2):
        return void(m.keep(m.raw("SoftmaxCrossEntropyLoss", [x.name, m.constant(labels)], reduction=m.one("mean", "sum"))[0], (), x, x.bound * 3 * labels.size + 9, exact=False))
    name = m.raw("NegativeLogLikelihoodLoss", [x.name, m.constant(labels)], reduction="none")[0]
    m.keep(name, tuple(pair(s) for s in labels.shape), x)


@rule(weight=2)
def optimised_norms(m: Maker) -> None:
    """Norms, biases and gates as ONNX Runtime's optimiser and new exporters write them."""
    x = m.data(rank=(3,))
    if not x.fixed(2):
        raise Refused
    width = x.shape[2][0]
    one = lambda: m.weights(width)
    op = m.one("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization", "BiasAdd", "BiasSplitGelu", "FusedGemm")
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    if op == "SkipLayerNormalization":
        name = m.raw(op, [x.name, x.name, one(), one(), one()], domain=domain, epsilon=0.5)[0]
    elif op == "SkipSimplifiedLayerNormalization":
        name = m.raw(op, [x.name, x.name, one()], domain=domain, epsilon=0.5)[0]
    elif op == "SimplifiedLayerNormalization":
        name = m.raw(op, [x.name, one()], epsilon=0.5)[0]
    elif op == "BiasAdd":
        return void(m.keep(m.raw(op, [x.name, one(), x.name], domain=domain)[0], x.shape, x, x.bound * 2 + 2))
    elif op == "BiasSplitGelu":
        if width % 2:
            raise Refused
        return void(m.keep(m.raw(op, [x.name, one()], domain=domain)[0], (*x.shape[:2], pair(width // 2)), x, (x.bound + 2) ** 2, exact=False))
    else:
        flat = m.raw("Reshape", [x.name, m.integers(-1, width)])[0]
        rows = tuple(a * b for a, b in zip(x.shape[0], x.shape[1]))
        return void(m.keep(m.raw(op, [flat, m.weights(width, 3), m.weights(3)], domain=domain, activation="Relu")[0], (rows, pair(3)), x, x.bound * width * 2 + 2))
    m.keep(name, x.shape, x, 60, exact=False)


@rule
def overlapping_frames(m: Maker) -> None:
    """Spectra to frames, a window, and Col2Im that adds them up: an inverse STFT."""
    x = m.data(rank=(3,))
    if not (x.fixed(1) and x.fixed(2)) or not 0 < x.shape[1][0] <= 9:
        raise Refused
    bins, frames = x.shape[1][0], x.shape[2][0]
    points, hop = max(2, 2 * (bins - 1) + m.between(0, 1)), m.between(1, 3)
    parts = [m.raw("Unsqueeze", [part, m.integers(-1)])[0] for part in (x.name, m.raw("Neg", [x.name])[0])]
    spectra = m.raw("Concat", parts, axis=-1)[0]
    made = m.raw("DFT", [spectra, m.constant(np.int64(points)), m.constant(np.int64(1))], inverse=1, onesided=1)[0]
    made = m.raw("Squeeze", [made, m.integers(-1)])[0]
    made = m.raw("Mul", [made, m.constant(np.arange(1, points + 1, dtype=np.float32).reshape(1, points, 1) / points)])[0]
    length = (frames - 1) * hop + points
    made = m.raw("Col2Im", [made, m.integers(1, length), m.integers(1, points)], strides=[1, hop])[0]
    m.keep(made, (x.shape[0], pair(1), pair(1), pair(length)), x, x.bound * points * 2, exact=False)


@rule
def gate(m: Maker) -> None:
    x = m.data()
    other = m.raw("Neg", [x.name])[0] if m.chance(2) else x.name
    m.keep(m.raw("SwiGLU", [x.name, other], alpha=m.one(0.5, 1.0, 1.5))[0], x.shape, x, x.bound**2, exact=False)


@rule
def causal_convolution(m: Maker) -> None:
    x = m.data(rank=(3,))
    if not x.fixed(1) or not x.fixed(2) or x.shape[1][0] > 12:
        raise Refused
    channels, taps = x.shape[1][0], m.between(1, 4)
    told = m.raw("Reshape", [x.name, m.integers(-1, channels, x.shape[2][0])])[0]  # the model tells how many channels there are
    operands = [told, m.weights(channels, 1, taps), m.weights(channels)]
    if x.fixed(0) and m.chance(2):
        operands.append(m.weights(x.shape[0][0], channels, taps - 1) if taps > 1 else "")
    activation = m.one("none", "silu")
    name = m.raw("CausalConvWithState", [*operands[:4]] if operands[-1] else operands[:3], 2, activation=activation)[0]
    m.keep(name, x.shape, x, x.bound * taps * 2 + 2, exact=x.exact and activation == "none")


@rule
def group_norm_of_pixels(m: Maker) -> None:
    """ONNX Runtime's, on channels that come last, alone or behind a sum."""
    x = m.data(rank=(4,))
    if not x.fixed(3):
        raise Refused
    channels = x.shape[3][0]
    groups = m.one(*[n for n in (1, 2, 3) if channels % n == 0])
    settings = {"groups": groups, "activation": m.between(0, 1), "epsilon": 0.5}
    if m.chance(2):
        name = m.raw("GroupNorm", [x.name, m.weights(channels), m.weights(channels)], domain="com.microsoft", **settings)[0]
    else:
        name = m.raw("SkipGroupNorm", [x.name, m.weights(channels), m.weights(channels), x.name], 2, domain="com.microsoft", **settings)[0]
    m.keep(name, x.shape, x, 100, exact=False)
