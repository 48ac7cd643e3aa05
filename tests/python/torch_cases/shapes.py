"""Views, moves of elements, new tensors."""

from __future__ import annotations

import torch

from torch_cases.case import X, Y, reals, use, whole

use("_to_copy", lambda op, x: op(x, dtype=torch.float64), X)
use("to.dtype", lambda op, x: op(x, torch.int32), X)
use("to.device", lambda op, x: op(x, torch.device("cpu"), torch.float64), X)
use("to.dtype_layout", lambda op, x: op(x, dtype=torch.float16), X, tolerance=1e-3)
use("to.other", lambda op, x, y: op(x, y), X, whole(2))
use("type_as", lambda op, x, y: op(x, y), X, whole(2))
for same in "alias clone contiguous detach lift_fresh_copy".split():
    use(same, lambda op, x: op(x) + 1, X)
use("view", lambda op, x: op(x, [x.shape[0], -1]), Y)
use("_unsafe_view", lambda op, x: op(x, [-1, x.shape[2]]), Y)
use("reshape", lambda op, x: op(x, [-1]), Y)
use("flatten.using_ints", lambda op, x: (op(x, 1), op(x, 0, 1), op(x)), Y)
use("unflatten.int", lambda op, x: op(x, 2, [2, -1]), Y)
use("squeeze", lambda op, x: op(x), reals(2, 1, 3, 1), static_only=True)
use("squeeze.dim", lambda op, x: op(x, 1), reals(2, 1, 3), static_only=True)
use("squeeze.dims", lambda op, x: op(x, [1, -1]), reals(2, 1, 3, 1), static_only=True)
use("unsqueeze", lambda op, x: (op(x, 0), op(x, -1)), X)
use("permute", lambda op, x: op(x, [2, 0, -2]), Y)
use("transpose.int", lambda op, x: op(x, 0, -1), Y)
use("t", lambda op, x: op(x), X)
use("movedim.int", lambda op, x: op(x, 0, 2), Y)
use("movedim.intlist", lambda op, x: op(x, [0, 2], [2, 0]), Y)
use("expand", lambda op, x: op(x.unsqueeze(1), [2, -1, 3, -1]), X)
use("expand_as", lambda op, x, y: op(x, y), reals(4), X)
use("repeat", lambda op, x: op(x, [2, 1, 3]), X)
use("tile", lambda op, x: op(x, [2]), X)
use("cat", lambda op, x, y: (op([x, y], 1), op([x, y], -1)), X, whole(3, 2))
use("concat", lambda op, x, y: op([x, y]), X, reals(2, 4))
use("stack", lambda op, x, y: op([x, y], -1), X, X + 1)
use("split.Tensor", lambda op, x: tuple(op(x, 2, 1)), reals(3, 5), static_only=True)
use("chunk", lambda op, x: tuple(op(x, 3, 1)), reals(3, 7), static_only=True)
use("split_with_sizes", lambda op, x: tuple(op(x, [1, 3], 1)), X, static_only=True)
use("unbind.int", lambda op, x: tuple(op(x, 0)), X, static_only=True)
use("select.int", lambda op, x: (op(x, 1, 2), op(x, 0, -1)), Y)
use("slice.Tensor", lambda op, x: (op(x, 1, 1, 3), op(x, 2, -3, -1), op(x, 2, 0, 9223372036854775807, 2), op(x, 0, 1, 100)), Y)
use("narrow", lambda op, x: op(x, 2, 1, 2), Y)
use("index_select", lambda op, x, i: op(x, 1, i), X, torch.tensor([3, 0, 0]))
for index in ("index.Tensor", "_unsafe_index.Tensor"):
    use(index, lambda op, x, i, j: (op(x, [None, i]), op(x, [None, i.unsqueeze(1), j]), op(x, [i, None, j]), op(x, [i % 2, j])), Y,
        torch.tensor([1, 0, 1]), torch.tensor([2, -1, 0]))
use("gather", lambda op, x, i: op(x, 1, i), X, whole(3, 2, low=0, high=4))
use("embedding", lambda op, w, i: op(w, i), X, whole(2, 3, low=0, high=3))
use("flip", lambda op, x: op(x, [0, -1]), Y)
use("roll", lambda op, x: (op(x, [1, -1], [0, 2]), op(x, [5])), Y)
use("pixel_shuffle", lambda op, x: op(x, 2), reals(2, 8, 3, 2))
use("pixel_shuffle", lambda op, x: op(x, 2), reals(8, 3, 2), label="/unbatched")
use("pixel_unshuffle", lambda op, x: op(x, 2), reals(2, 2, 4, 6))


for turns in range(-1, 4):
    use("rot90", lambda op, x, k=turns: op(x, k, [1, -1]), Y, label=f"/{turns}")

use("arange", lambda op, x: x + op(4), X)
use("arange.start", lambda op, x: x + op(1, 5), X)
use("arange.start_step", lambda op, x: x + op(7, -1, -2), X)
use("arange.start_step", lambda op, x: x + op(0.5, 2.5, 0.5), X, label="/reals")
use("arange", lambda op, x: op(x.shape[1]) + x, X, label="/size")
for fill in "zeros ones".split():
    use(fill, lambda op, x: x + op([x.shape[1]]), X)
    use(f"{fill}_like", lambda op, x: x + op(x, dtype=torch.float64), X)
    use(f"new_{fill}", lambda op, x: op(x, [2, x.shape[0]]), X)
use("full", lambda op, x: x + op([x.shape[1]], 2.5), X)
use("full_like", lambda op, x: x + op(x, 3), X)
use("new_full", lambda op, x: op(x, [2, x.shape[0]], 1.5), X)
use("scalar_tensor", lambda op, x: x + op(2.5), X)
for half in "tril triu".split():
    use(half, lambda op, x: (op(x), op(x, 1)), Y)
use("broadcast_tensors", lambda op, x, y: tuple(op([x, y])), X, reals(4), static_only=True)
use("broadcast_to", lambda op, x: op(x, [3, 4]), reals(4), static_only=True)
use("meshgrid", lambda op, x, y: tuple(op([x, y])), reals(3), reals(4), static_only=True)
for order in ("ij", "xy"):
    use("meshgrid.indexing", lambda op, x, y, z, how=order: tuple(op([x, y, z], indexing=how)), reals(3), reals(4), reals(2), label=f"/{order}", static_only=True)
use("unfold", lambda op, x: (op(x, 1, 3, 1), op(x, -2, 2, 2)), reals(4, 6))
use("diagonal", lambda op, x: (op(x), op(x, 1), op(x, -1, 1, 2)), reals(3, 4, 5))
for empty in "empty_like".split():
    use(empty, lambda op, x: op(x).fill_(0) + x, X)
use("empty.memory_format", lambda op, x: op([3, 4]).fill_(0) + x, X, static_only=True)
use("empty_permuted", lambda op, x: op([3, 4], [1, 0]).fill_(0) + x, X, static_only=True)
use("new_empty", lambda op, x: op(x, [4]).fill_(0) + x, X)
use("eye", lambda op, x: op(4) + x[0], X)
use("eye.m", lambda op, x: op(3, 4) + x, X)
use("linspace", lambda op, x: (op(0, 1, 7) + x[0, 0], op(-3.0, 2, 6, dtype=torch.float64)), X)
use("swapaxes", lambda op, x: op(x, 0, 2), Y)
use("swapdims", lambda op, x: op(x, 0, -1), Y)
