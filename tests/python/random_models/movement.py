"""Operators that move elements, cut and join tensors or change their shapes."""
from __future__ import annotations

import numpy as np
from onnx import helper

from .maker import BOOL, FLOAT, INT64, LIMIT, Maker, Refused, count, pair, rule
from .elementwise import void


@rule(weight=2)
def reshape(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 2)
    axis = m.between(0, x.rank - 2)
    joined = tuple(a * b for a, b in zip(x.shape[axis], x.shape[axis + 1]))
    kind = m.between(0, 3)
    if kind == 0:
        sizes = [0] * axis + [-1] + [s[0] for s in x.shape[axis + 2:]]
        if any(not x.fixed(i) for i in range(axis + 2, x.rank)):
            raise Refused
        name, shape = m.raw("Reshape", [x.name, m.integers(*sizes)])[0], (*x.shape[:axis], joined, *x.shape[axis + 2:])
    elif kind == 1:
        name = m.raw("Flatten", [x.name], axis=axis + 1)[0]
        shape = tuple(tuple(int(np.prod([s[r] for s in part])) for r in (0, 1)) for part in (x.shape[:axis + 1], x.shape[axis + 1:]))
    elif kind == 2:
        name, shape = m.raw("Unsqueeze", [x.name, m.integers(axis)])[0], (*x.shape[:axis], pair(1), *x.shape[axis:])
    else:
        ones = [i for i, s in enumerate(x.shape) if s == (1, 1)]
        if not ones:
            raise Refused
        at = m.one(*ones)
        name, shape = m.raw("Squeeze", [x.name, m.integers(at)])[0], (*x.shape[:at], *x.shape[at + 1:])
    m.keep(name, shape, x)


@rule
def reshape_by_shape(m: Maker) -> None:
    """The clutter of exporters: Gather, Concat, Reshape and back."""
    x = m.pick(lambda t: t.rank >= 3)
    sizes = m.raw("Shape", [x.name])[0]
    first = m.raw("Gather", [sizes, m.integers(0)])[0]
    flat = m.raw("Reshape", [x.name, m.raw("Concat", [first, m.integers(-1)], axis=0)[0]])[0]
    rest = tuple(int(np.prod([s[r] for s in x.shape[1:]])) for r in (0, 1))
    if m.chance(2):
        m.keep(m.raw("Reshape", [flat, sizes])[0], x.shape, x)
    else:
        m.keep(flat, (x.shape[0], rest), x)
    if m.chance(3):
        whole = m.raw("Cast", [m.raw("Size", [x.name])[0]], to=FLOAT)[0]
        m.keep(whole, (), x, count(x.shape), True, FLOAT)


@rule(weight=2)
def transpose(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 2)
    order = list(range(x.rank))
    m.random.shuffle(order)
    m.keep(m.raw("Transpose", [x.name], perm=order)[0], tuple(x.shape[i] for i in order), x)


@rule
def grow_shape(m: Maker) -> None:
    x = m.data()
    if m.chance(2):
        repeats = [m.between(1, 2) for _ in range(x.rank)]
        if not repeats:
            raise Refused
        return void(m.keep(m.raw("Tile", [x.name, m.integers(*repeats)])[0], tuple((a * r, b * r) for (a, b), r in zip(x.shape, repeats)), x))
    target = [m.between(1, 3)] + [1] * x.rank
    m.keep(m.raw("Expand", [x.name, m.integers(*target)])[0], (pair(target[0]), *x.shape), x)


@rule(weight=2)
def cut(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 1 and t.dtype in (FLOAT, BOOL))
    axis = m.between(0, x.rank - 1)
    size = x.shape[axis]
    if min(size) < 2:
        raise Refused
    kind = m.between(0, 3)
    rest = lambda new: (*x.shape[:axis], new, *x.shape[axis + 1:])
    if kind == 0:
        name = m.raw("Slice", [x.name, m.integers(1), m.integers(2**62), m.integers(axis)])[0]
        m.keep(name, rest((size[0] - 1, size[1] - 1)), x)
    elif kind == 1:
        step = m.between(1, 2)
        name = m.raw("Slice", [x.name, m.integers(-1), m.integers(-2**62), m.integers(axis), m.integers(-step)])[0]
        m.keep(name, rest(((size[0] + step - 1) // step, (size[1] + step - 1) // step)), x)
    elif kind == 2:
        if not x.fixed(axis):
            raise Refused
        names = m.raw("Split", [x.name, m.integers(1, size[0] - 1)], 2, axis=axis)
        m.keep(names[0], rest(pair(1)), x)
        m.keep(names[1], rest(pair(size[0] - 1)), x)
    else:
        name = m.raw("Slice", [x.name, m.integers(0), m.integers(-1), m.integers(axis)])[0]
        m.keep(name, rest((size[0] - 1, size[1] - 1)), x)


@rule(weight=2)
def concat(m: Maker) -> None:
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    alike = lambda t: t.dtype == FLOAT and t.rank == x.rank and all(a == b for i, (a, b) in enumerate(zip(t.shape, x.shape)) if i != axis)
    others = [m.pick(alike) for _ in range(m.between(1, 2))]
    size = tuple(sum(t.shape[axis][r] for t in (x, *others)) for r in (0, 1))
    shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
    m.keep(m.raw("Concat", [t.name for t in (x, *others)], axis=axis)[0], shape, x, max(t.bound for t in (x, *others)), all(t.exact for t in (x, *others)))


@rule
def sequence(m: Maker) -> None:
    """A list that is built, changed and put together again."""
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    alike = lambda t: t.dtype == FLOAT and t.rank == x.rank and all(a == b for i, (a, b) in enumerate(zip(t.shape, x.shape)) if i != axis)
    y, z = m.pick(alike), m.pick(alike)
    held = m.raw("SequenceInsert", [m.raw("SequenceConstruct", [x.name, y.name])[0], z.name, m.constant(np.array(m.between(-2, 2)))])[0]
    kept = (x, y, z)
    if m.chance(2):
        held = m.raw("SequenceInsert", [m.raw("SequenceErase", [held])[0], x.name])[0]
        name = m.raw("SequenceAt", [held, m.constant(np.array(-1))])[0]
        m.keep(name, x.shape, x)
        return
    size = tuple(sum(t.shape[axis][r] for t in kept) for r in (0, 1))
    m.keep(m.raw("ConcatFromSequence", [held], axis=axis)[0], (*x.shape[:axis], size, *x.shape[axis + 1:]), x, max(t.bound for t in kept), all(t.exact for t in kept))


@rule
def list_of_parts(m: Maker) -> None:
    """A tensor cut into a list; one piece goes through another list and an optional, and is multiplied by the list's length."""
    x = m.data()
    axes = [axis for axis in range(x.rank) if x.fixed(axis) and x.shape[axis][0] >= 2]
    if not axes or 2 * x.bound > LIMIT:
        raise Refused
    axis = m.random.choice(axes)
    size = x.shape[axis][0]
    first = m.between(1, size - 1)
    held = m.raw("SplitToSequence", [x.name, m.constant(np.array([first, size - first]))], axis=axis)[0]
    length = m.raw("Cast", [m.raw("SequenceLength", [held])[0]], to=FLOAT)[0]
    piece = m.raw("SequenceAt", [held, m.constant(np.array(1))])[0]
    alone = m.raw("SequenceAt", [m.raw("SequenceInsert", [m.raw("SequenceEmpty", [])[0], piece])[0], m.constant(np.array(0))])[0]
    perhaps = m.raw("Optional", [alone])[0]
    there = m.raw("OptionalGetElement", [perhaps])[0]
    chosen = m.raw("Where", [m.raw("OptionalHasElement", [perhaps])[0], there, m.raw("Neg", [there])[0]])[0]
    shape = (*x.shape[:axis], pair(size - first), *x.shape[axis + 1:])
    m.keep(m.raw("Mul", [chosen, length])[0], shape, x, 2 * x.bound, x.exact)


@rule
def pad(m: Maker) -> None:
    x = m.image()
    pads = [0, 0] + [m.between(0, 1) for _ in range(x.rank - 2)] + [0, 0] + [m.between(-1, 1) for _ in range(x.rank - 2)]
    mode = m.one("constant", "constant", "reflect", "edge", "wrap")
    if mode != "constant":
        pads = [max(p, 0) for p in pads]
    operands = [x.name, m.integers(*pads)] + ([m.constant(np.float32(m.between(0, 2)))] if mode == "constant" and m.chance(2) else [])
    m.keep(m.raw("Pad", operands, mode=mode)[0], tuple((a + pads[i] + pads[i + x.rank], b + pads[i] + pads[i + x.rank]) for i, (a, b) in enumerate(x.shape)), x, x.bound + 2)


@rule(weight=2)
def gather(m: Maker) -> None:
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    low = min(x.shape[axis])
    kind = m.between(0, 2)
    if kind == 0:
        picks = [m.between(-low, low - 1) for _ in range(m.between(1, 4))]
        name = m.raw("Gather", [x.name, m.integers(*picks)], axis=axis)[0]
        return void(m.keep(name, (*x.shape[:axis], pair(len(picks)), *x.shape[axis + 1:]), x))
    if any(not x.fixed(i) for i in range(x.rank)) or count(x.shape) > 500:
        raise Refused
    sizes = [s[0] for s in x.shape]
    if kind == 1:
        sizes[axis] = m.between(1, 3)
        picks = np.array([m.between(-low, low - 1) for _ in range(int(np.prod(sizes)))], np.int64).reshape(sizes)
        name = m.raw("GatherElements", [x.name, m.constant(picks)], axis=axis)[0]
        return void(m.keep(name, tuple(pair(s) for s in sizes), x))
    depth = m.between(1, x.rank)
    picks = np.array([[m.between(-s, s - 1) for s in sizes[:depth]] for _ in range(3)], np.int64)
    m.keep(m.raw("GatherND", [x.name, m.constant(picks)])[0], (pair(3), *x.shape[depth:]), x)


@rule(weight=2)
def scatter(m: Maker) -> None:
    x = m.data()
    if not x.rank or x.rank > 4:
        raise Refused
    low = min(x.shape[0])
    if m.chance(2):
        rows = m.random.sample(range(low), min(low, 2))
        if any(not x.fixed(i) for i in range(1, x.rank)):
            raise Refused
        updates = m.weights(len(rows), *[s[0] for s in x.shape[1:]])
        reduction = m.one("none", "add", "max", "min")
        name = m.raw("ScatterND", [x.name, m.constant(np.array(rows, np.int64)[:, None]), updates], reduction=reduction)[0]
        return void(m.keep(name, x.shape, x, x.bound + 2))
    axis = m.between(0, x.rank - 1)
    shape = [1] * x.rank
    picks = m.constant(np.full(shape, m.between(0, min(x.shape[axis]) - 1), np.int64))
    m.keep(m.raw("ScatterElements", [x.name, picks, m.weights(*shape)], axis=axis, reduction=m.one("none", "add", "mul"))[0], x.shape, x, x.bound * 2 + 2)


@rule
def depth_and_space(m: Maker) -> None:
    x = m.image()
    if x.rank != 4:
        raise Refused
    n, c, h, w = x.shape
    if c[0] % 4 == 0 and m.chance(2):
        name = m.raw("DepthToSpace", [x.name], blocksize=2, mode=m.one("DCR", "CRD"))[0]
        return void(m.keep(name, (n, pair(c[0] // 4), (h[0] * 2, h[1] * 2), (w[0] * 2, w[1] * 2)), x))
    if any(s % 2 for s in (*h, *w)):
        raise Refused
    m.keep(m.raw("SpaceToDepth", [x.name], blocksize=2)[0], (n, pair(c[0] * 4), (h[0] // 2, h[1] // 2), (w[0] // 2, w[1] // 2)), x)


@rule
def resize(m: Maker) -> None:
    x = m.image()
    spatial = x.rank - 2
    mode = m.one("nearest", "linear", "cubic") if spatial == 2 else m.one("nearest", "linear")
    where = m.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes = dict(nearest_mode="floor") if mode == "nearest" else {}
    if mode == "nearest":
        where = "asymmetric"
    if where == "align_corners" and min(min(s) for s in x.shape[2:]) < 2:
        raise Refused
    scale = m.constant(np.array([1, 1] + [2] * spatial, np.float32))
    name = m.raw("Resize", [x.name, "", scale], mode=mode, coordinate_transformation_mode=where, **attributes)[0]
    m.keep(name, (*x.shape[:2], *((a * 2, b * 2) for a, b in x.shape[2:])), x, x.bound * 2, x.exact and mode == "nearest")


@rule
def triangle(m: Maker) -> None:
    x = m.data()
    if x.rank < 2:
        raise Refused
    m.keep(m.raw("Trilu", [x.name, m.constant(np.int64(m.between(-1, 1)))], upper=m.between(0, 1))[0], x.shape, x)


@rule
def one_hot(m: Maker) -> None:
    x = m.data(exact=True)
    if x.bound > 100 or x.rank > 4:
        raise Refused
    indices = m.raw("Cast", [x.name], to=INT64)[0]
    m.keep(m.raw("OneHot", [indices, m.constant(np.int64(5)), m.constant(np.array([0, 1], np.float32))], axis=-1)[0], (*x.shape, pair(5)), x, 1)


@rule
def made_from_nothing(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 1)
    sizes = m.raw("Shape", [x.name])[0]
    if m.chance(3) and x.rank == 2:
        return void(m.keep(m.raw("EyeLike", [x.name], dtype=FLOAT)[0], x.shape, x, 1, True, FLOAT))
    if m.chance(2):
        value = helper.make_tensor("v", FLOAT, [1], [float(m.between(-2, 2))])
        return void(m.keep(m.raw("ConstantOfShape", [sizes], value=value)[0], x.shape, x, 2, True, FLOAT))
    length = m.raw("Gather", [sizes, m.constant(np.int64(0))])[0]
    steps = m.raw("Range", [m.constant(np.int64(0)), length, m.constant(np.int64(1))])[0]
    m.keep(m.raw("Cast", [steps], to=FLOAT)[0], (x.shape[0],), x, max(x.shape[0]), True, FLOAT)
