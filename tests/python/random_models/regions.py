"""Regions, places and noise."""
from __future__ import annotations

import numpy as np

from .maker import FLOAT, Maker, Refused, pair, rule
from .elementwise import void


@rule
def regions(m: Maker) -> None:
    x = m.data(rank=(4,))
    if not x.fixed(1) or min(min(s) for s in x.shape[2:]) < 2:
        raise Refused
    boxes = m.constant(np.array([[0, 0, 3, 3], [1, 0, 2, 4], [0.5, 0.5, 2.5, 1.5]], np.float32))
    which = np.zeros(3, np.int64)
    if m.chance(2):
        name = m.raw("RoiAlign", [x.name, boxes, m.constant(which)], output_height=2, output_width=3, mode="avg", sampling_ratio=2)[0]
        return void(m.keep(name, (pair(3), x.shape[1], pair(2), pair(3)), x, exact=False))
    rois = m.constant(np.array([[0, 0, 0, 3, 3], [0, 1, 0, 2, 4]], np.float32))
    m.keep(m.raw("MaxRoiPool", [x.name, rois], pooled_shape=[2, 2])[0], (pair(2), x.shape[1], pair(2), pair(2)), x)


@rule
def suppression(m: Maker) -> None:
    """The boxes are of the model, the scores of the data: how many stay is born from them."""
    x = m.data(exact=True)
    flat = m.raw("Reshape", [x.name, m.integers(-1)])[0]
    scores = m.raw("Reshape", [m.raw("Gather", [flat, m.constant(np.zeros(4, np.int64))])[0], m.integers(1, 1, 4)])[0]
    scores = m.raw("Add", [scores, m.constant(np.arange(4, dtype=np.float32).reshape(1, 1, 4) / 8)])[0]
    boxes = m.constant(np.array([[[0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 5, 5], [0, 3, 2, 5]]], np.float32))
    chosen = m.raw("NonMaxSuppression", [boxes, scores, m.constant(np.array([3], np.int64)), m.constant(np.float32([0.5])), m.constant(np.float32([-1]))])[0]
    m.keep(m.raw("ReduceSum", [m.raw("Cast", [chosen], to=FLOAT)[0]], keepdims=0)[0], (), x, 40)


@rule
def places(m: Maker) -> None:
    """A pool that says where its maxima were, and back to there."""
    x = m.image()
    if not x.exact or x.rank != 4 or any(n % 2 for s in x.shape[2:] for n in s):
        raise Refused
    value, place = m.raw("MaxPool", [x.name], 2, kernel_shape=[2, 2], strides=[2, 2])
    m.keep(m.raw("MaxUnpool", [value, place], kernel_shape=[2, 2], strides=[2, 2])[0], x.shape, x)


@rule
def noise(m: Maker) -> None:
    x = m.data()
    op = m.one("RandomNormalLike", "RandomUniformLike", "RandomNormal", "RandomUniform", "Bernoulli", "Multinomial")
    seed = float(m.between(0, 99))
    if op.endswith("Like"):
        return void(m.keep(m.raw(op, [x.name], seed=seed)[0], x.shape, x, 8, False))
    if op == "Bernoulli":
        chances = m.raw("Sigmoid", [m.raw("Floor", [m.data(exact=True).name])[0]])[0]
        like = [t for t in m.tensors if t.name == m.nodes[-2].input[0]][0]
        m.raw(op, [chances], seed=seed)
        return void(m.keep(m.raw("Mul", [like.name, m.constant(np.float32(1))])[0], like.shape, like))
    if op == "Multinomial":
        odds = m.constant(np.zeros((2, 3), np.float32))
        return void(m.keep(m.raw("Cast", [m.raw(op, [odds], sample_size=4, seed=seed)[0]], to=FLOAT)[0], (pair(2), pair(4)), x, 3, True))
    m.keep(m.raw(op, [], shape=[2, 3], seed=seed)[0], (pair(2), pair(3)), x, 8, False)


@rule
def move_about(m: Maker) -> None:
    x = m.data()
    op = m.one("CumProd", "TensorScatter", "ReverseSequence", "CenterCropPad", "Col2Im", "Det")
    if op == "CumProd":
        if not x.rank or max(x.shape[-1]) > 6 or x.bound > 4:
            raise Refused
        return void(m.keep(m.raw(op, [x.name, m.constant(np.int64(-1))])[0], x.shape, x, x.bound ** max(x.shape[-1])))
    if op == "ReverseSequence":
        if x.rank < 2 or not x.fixed(1):
            raise Refused
        lengths = m.constant(np.array([m.between(1, min(x.shape[0])) for _ in range(x.shape[1][0])], np.int64))
        return void(m.keep(m.raw(op, [x.name, lengths], time_axis=0, batch_axis=1)[0], x.shape, x))
    if op == "CenterCropPad":
        if not x.rank:
            raise Refused
        size = m.between(1, 6)
        return void(m.keep(m.raw(op, [x.name, m.integers(size)], axes=[x.rank - 1])[0], (*x.shape[:-1], pair(size)), x))
    if op == "Col2Im":
        columns = m.raw("Reshape", [m.weights(1, 8, 6), m.integers(1, 8, 6)])[0]
        return void(m.keep(m.raw(op, [columns, m.integers(3, 4), m.integers(2, 2)])[0], (pair(1), pair(2), pair(3), pair(4)), x, 16, True))
    if op == "Det":
        matrix = m.weights(2, 3, 3)
        return void(m.keep(m.raw(op, [matrix])[0], (pair(2),), x, 48, False))
    if x.rank != 4 or not all(x.fixed(i) for i in (0, 1, 3)) or min(x.shape[2]) < 2:
        raise Refused
    update = m.weights(x.shape[0][0], x.shape[1][0], 1, x.shape[3][0])
    at = m.constant(np.array([m.between(0, min(x.shape[2]) - 1) for _ in range(x.shape[0][0])], np.int64))
    m.keep(m.raw(op, [x.name, update, at])[0], x.shape, x, max(x.bound, 2))
