"""Operators over numbers of eight bits."""
from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .maker import FLOAT, Maker, Refused, pair, rule
from .elementwise import void


@rule
def quantise(m: Maker) -> None:
    x = m.data(exact=True)
    scale, zero = m.constant(np.float32(m.one(1, 2, 4))), m.constant(m.one(np.uint8(7), np.int8(-3)))
    back = m.raw("DequantizeLinear", [m.raw("QuantizeLinear", [x.name, scale, zero])[0], scale, zero])[0]
    m.keep(back, x.shape, x, 1024)


@rule
def quantise_by_range(m: Maker) -> None:
    x = m.data(exact=True)
    names = m.raw("DynamicQuantizeLinear", [m.raw("Clip", [x.name, m.constant(np.float32(-100)), m.constant(np.float32(155))])[0]], 3)
    m.keep(m.raw("Cast", [names[2]], to=FLOAT)[0], (), x, 255)


@rule
def integer_products(m: Maker) -> None:
    x = m.data(exact=True)
    if x.rank < 2 or not x.fixed(x.rank - 1):
        raise Refused
    bytes_ = m.raw("Cast", [m.raw("Clip", [x.name, m.constant(np.float32(0)), m.constant(np.float32(15))])[0]], to=TensorProto.UINT8)[0]
    inner, outer = x.shape[-1][0], m.between(1, 4)
    small = lambda *shape: m.constant(np.array([m.between(-4, 4) for _ in range(int(np.prod(shape)))], np.int8).reshape(shape))
    if m.chance(2):
        name = m.raw("MatMulInteger", [bytes_, small(inner, outer), m.constant(np.uint8(3))])[0]
        return void(m.keep(m.raw("Cast", [name], to=FLOAT)[0], (*x.shape[:-1], pair(outer)), x, inner * 100))
    one, byte = m.constant(np.float32(1)), m.constant(np.uint8(2))
    name = m.raw("QLinearMatMul", [bytes_, one, byte, small(inner, outer), one, m.constant(np.int8(0)), m.constant(np.float32(2)), m.constant(np.int8(1))])[0]
    m.keep(m.raw("Cast", [name], to=FLOAT)[0], (*x.shape[:-1], pair(outer)), x, 128)


@rule
def integer_convolution(m: Maker) -> None:
    x = m.image()
    if not x.exact:
        raise Refused
    bytes_ = m.raw("Cast", [m.raw("Clip", [x.name, m.constant(np.float32(0)), m.constant(np.float32(15))])[0]], to=TensorProto.UINT8)[0]
    channels, outputs, spatial = x.shape[1][0], m.between(1, 3), x.rank - 2
    weights = m.constant(np.array([m.between(-4, 4) for _ in range(outputs * channels * 2**spatial)], np.int8).reshape(outputs, channels, *[2] * spatial))
    shape = (x.shape[0], pair(outputs), *((a - 1, b - 1) for a, b in x.shape[2:]))
    if m.chance(2):
        name = m.raw("ConvInteger", [bytes_, weights, m.constant(np.uint8(1))])[0]
        return void(m.keep(m.raw("Cast", [name], to=FLOAT)[0], shape, x, channels * 2**spatial * 64))
    one, four = m.constant(np.float32(1)), m.constant(np.float32(4))
    name = m.raw("QLinearConv", [bytes_, one, m.constant(np.uint8(1)), weights, one, m.constant(np.int8(0)), four, m.constant(np.uint8(9))])[0]
    m.keep(m.raw("Cast", [name], to=FLOAT)[0], shape, x, 256)
