"""Sizes and numbers that data tell, masks, writes."""

from __future__ import annotations

import torch

from torch_cases.case import X, reals, use, whole

SOME = torch.tensor([2, 0, 3])
for found in "nonzero argwhere".split():
    use(found, lambda op, x: op(x > 0), X)
for lists in "nonzero_numpy where.default".split():
    use(lists, lambda op, x: tuple(op(x > 0)), X, static_only=True)
use("item", lambda op, x, n: x * op(n) + op(n) * 0.5, X, torch.tensor(2.5), static_only=True)
use("item", lambda op, x, n: torch.arange(op(n)) + x[0, 0], X, torch.tensor(3), label="/size", static_only=True)
use("_local_scalar_dense", lambda op, x, n: x * op(n), X, torch.tensor(3), static_only=True)
use("masked_select", lambda op, x: op(x, x > 0), X)
use("masked_scatter", lambda op, x, y: op(x, x > 0, y), X, reals(20))
use("one_hot", lambda op, i: op(i, 6), whole(3, 2, low=0, high=6))
use("repeat_interleave.self_int", lambda op, x: (op(x, 2, 1), op(x, 3)), X)
use("repeat_interleave.self_Tensor", lambda op, x, r: op(x, r, 0), X, SOME, static_only=True)
use("repeat_interleave.Tensor", lambda op, r: op(r), SOME, static_only=True)
use("index.Tensor", lambda op, x, m: (op(x, [m > 0]), op(x[0], [m[0] > 0]), op(x, [None, m[0] > 0])), reals(3, 4, 2), reals(3, 4), label="/masks", static_only=True)
for put in ("index_put", "_unsafe_index_put"):
    use(put, lambda op, x, i, v: (op(x, [i], v), op(x, [None, i], v[0, 0]), op(x, [i, i], v[0, :3], True), op(x, [x > 0], v[0, 0])), reals(4, 4), SOME, reals(3, 4), static_only=True)
use("scatter.src", lambda op, x, i: op(x, 1, i, x + 1), X, whole(3, 2, low=0, high=4))
use("scatter.value", lambda op, x, i: op(x, 1, i, 2.5), X, whole(3, 2, low=0, high=4))
use("scatter_add", lambda op, x, i: op(x, 1, i, x), X, whole(3, 2, low=0, high=4))
for reduction in "sum prod mean amax amin".split():
    use("scatter_reduce.two", lambda op, x, i, how=reduction: (op(x, 1, i, x + 1, how), op(x, 1, i, x + 1, how, include_self=False)), X, whole(3, 2, low=0, high=4), label=f"/{reduction}")
use("index_add", lambda op, x, i, y: op(x, 0, i, y, alpha=2), X, torch.tensor([2, 0]), reals(2, 4))
use("index_copy", lambda op, x, i, y: op(x, 0, i, y), X, torch.tensor([2, 0]), reals(2, 4))
use("index_fill.int_Scalar", lambda op, x, i: op(x, 1, i, 3), X, torch.tensor([2, 0]))
use("select_scatter", lambda op, x, y: (op(x, y, 0, 1), op(x, y, 0, -1)), X, reals(4))
use("slice_scatter", lambda op, x, y: (op(x, y, 1, 1, 3), op(x, y[:, :1], 1, -1), op(x, y, 1, 0, 4, 2)), X, reals(3, 2), static_only=True)
use("copy", lambda op, x, y: op(x, y), X, whole(4))
use("fill.Scalar", lambda op, x: op(x, 2), X)
use("fill.Tensor", lambda op, x, v: op(x, v), X, torch.tensor(2))
use("zero", lambda op, x: op(x), X)
