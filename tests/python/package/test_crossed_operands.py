"""Elementwise steps over operands that lie across the result: drawn axes, sizes, dtypes and numbers of operands, against NumPy."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import polyphase
import pytest

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8")


def drawn(draw: random.Random, dtype: str, shape: list[int]) -> np.ndarray:
    """Small whole numbers: sums and products are exact in every dtype."""
    values = np.array([draw.randint(0, 3) for _ in range(int(np.prod(shape)))]).reshape(shape)
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(12))
def test_numbers_are_numpys(seed, dtype):
    draw = random.Random(f"{seed} {dtype}")
    rank = draw.choice((2, 2, 3, 4))
    most = {2: 200, 3: 40, 4: 12}[rank]
    shape = [draw.randint(1, most) for _ in range(rank)]
    first = drawn(draw, dtype, shape)
    net = polyphase.Network("crossed")
    value, expected, arrays = net.add_input("x0", dtype, shape), first, [first]
    for i in range(1, draw.randint(2, 4)):
        axes = draw.sample(range(rank), rank)
        operand = drawn(draw, dtype, [shape[axes.index(axis)] for axis in range(rank)])
        across = net.transpose(net.add_input(f"x{i}", dtype, list(operand.shape)), order=axes)
        operator = draw.choice(("add", "mul", "max"))
        value = getattr(net, operator)(*draw.sample([value, across], 2))
        expected = {"add": np.add, "mul": np.multiply, "max": np.maximum}[operator](expected, operand.transpose(axes))
        arrays.append(operand)
        if i == 2:  # stays exact
            most = np.full([1], 3, first.dtype)
            value, expected = net.min(value, net.add_constant(most)), np.minimum(expected, most)
    net.mark_output(value, "y")
    found = net.compile()(*arrays)
    np.testing.assert_array_equal(np.asarray(found).astype(np.float64), expected.astype(np.float64))
