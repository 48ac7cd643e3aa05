"""Reductions, orders, scans, softmax."""

from __future__ import annotations

import torch

from torch_cases.case import X, Y, noise, positive, reals, use, whole

for fold in "sum mean prod max min all any".split():
    use(fold, lambda op, x: op(x), positive(2, 3))
for fold in "sum.dim_IntList mean.dim amax amin".split():
    use(fold, lambda op, x: (op(x, [1], True), op(x, [0, -1])), Y)
use("sum.dim_IntList", lambda op, x: op(x, None), whole(3, 4), label="/integers")
for fold in "any.dims all.dims".split():
    use(fold, lambda op, x: (op(x, [1, -1]), op(x, [0], True)), Y.round())
for fold in "max.dim min.dim any.dim all.dim prod.dim_int".split():
    use(fold, lambda op, x: op(x, 1), Y)
use("max.dim", lambda op, x: op(x, 0, True), Y, label="/keep")
for fold in "argmax argmin".split():
    use(fold, lambda op, x: (op(x, 1), op(x, 0, True), op(x)), Y)
for spread in "var.correction std.correction var_mean.correction".split():
    use(spread, lambda op, x: op(x, [1, 2], correction=0), noise(2, 3, 4))
    use(spread, lambda op, x: op(x, [1], keepdim=True), noise(2, 3, 4), label="/keep")
use("var.dim", lambda op, x: op(x, [1], False), noise(2, 3, 4))
use("linalg_vector_norm", lambda op, x: (op(x), op(x, 1, [1]), op(x, float("inf"), [0], True), op(x, 3)), X, tolerance=1e-5)
LARGE = (noise(3, 40) * 300).half()  # whose squares f16 does not hold
for spread in "var.correction std.correction var_mean.correction std_mean.correction".split():
    use(spread, lambda op, x: op(x / 8, [1]), LARGE, label="/f16", tolerance=2e-3)
use("std.correction", lambda op, x: op(x, [1]), LARGE, label="/large", tolerance=2e-3)
use("linalg_vector_norm", lambda op, x: (op(x, 3, [1]), op(x, 2, [1]), op(x, 1.5, [0])), LARGE, label="/f16", tolerance=2e-3)
use("cumsum", lambda op, x: op(x, 1), X)
use("topk", lambda op, x: op(x, 2, 1), ((torch.arange(12) * 5) % 12).float().reshape(3, 4))  # no equal elements: which of them comes first is not said
use("sort", lambda op, x: (*op(x, 1), *op(x, 0, True)), X)
use("sort", lambda op, x: op(x > 0, 1)[0], X, label="/bools")
for soft in "softmax.int log_softmax.int".split():
    use(soft, lambda op, x: (op(x, 1), op(x, -1, torch.float64)), X)
    use(soft, lambda op, x: op(x, -1), noise(3, 5003), label="/long rows", tolerance=1e-5)
    use(soft, lambda op, x: op(x, -1), torch.where(noise(41, 37) > 1.5, torch.tensor(-torch.inf), noise(41, 37)), label="/hidden", tolerance=1e-5)
for soft in "_softmax _log_softmax".split():
    use(soft, lambda op, x: op(x, 1, False), X)
use("diff", lambda op, x: (op(x), op(x, 2, 0), op(x, 1, 1, x[:, :1], x), op(x, 0, 1, x)), X)
use("bucketize.Tensor", lambda op, x, b: (op(x, b), op(x, b, right=True)), X.round(), torch.tensor([-1.0, 0, 1]))
use("searchsorted.Tensor", lambda op, b, x: (op(b, x, out_int32=True), op(b, x, side="right")), torch.tensor([-1.0, 0, 1]), X.round())
use("searchsorted.Tensor", lambda op, b, x: op(b, x), reals(3, 4).sort(1).values, X, label="/rows")
use("argsort", lambda op, x: (op(x), op(x, 0, True)), X)
use("argsort.stable", lambda op, x: op(x, stable=True, dim=1), X)
use("sort.stable", lambda op, x: op(x, stable=True, dim=0, descending=True), X)
use("count_nonzero", lambda op, x: (op(x), op(x, 1)), X.round())
use("count_nonzero.dim_IntList", lambda op, x: op(x, [0, 1]), X.round())
use("cumprod", lambda op, x: (op(x, 1), op(x, 0, dtype=torch.float64)), X)
use("logsumexp", lambda op, x: (op(x, [1]), op(x, [0, 1], True)), X)
for spread in "std var".split():
    use(spread, lambda op, x: (op(x), op(x, False)), noise(3, 4))
for spread in "std.dim var_mean.dim std_mean.dim".split():
    use(spread, lambda op, x: op(x, [1], False, True), noise(3, 4))
use("norm.Scalar", lambda op, x: (op(x), op(x, 1)), X)
use("norm.ScalarOpt_dim", lambda op, x: (op(x, None, [1]), op(x, 3, [0], True)), X)
use("std_mean.correction", lambda op, x: op(x, [1], correction=0), noise(3, 4))
NANS = torch.tensor([[1, float("nan"), 3, float("nan"), 5], [2, -float("inf"), float("inf"), 2, 2]])
for running in "cummax cummin".split():
    use(running, lambda op, x: (*op(x, 1), *op(x, 0)), X)
    use(running, lambda op, x: (*op(x, -2), *op(x, 2)), noise(2, 70, 3), label="/long")
    use(running, lambda op, x, y: (*op(x, 1), *op(y, 1), *op(x > 0, 0)), whole(3, 9), whole(3, 9, low=0, high=3).to(torch.uint8), label="/integers")
    use(running, lambda op, x: op(x, 1), NANS, label="/nan")
    use(running, lambda op, x: op(x, 0), torch.tensor(2.5), label="/single")
    use(running, lambda op, x: op(x, 0)[1], noise(9), label="/places")
use("logcumsumexp", lambda op, x: (op(x, 1), op(x, 0), op(x * 200, -1)), X, tolerance=1e-5)
use("logcumsumexp", lambda op, x: op(x, 1), NANS, label="/nan")
use("logcumsumexp", lambda op, x: op(x, 0), torch.tensor(2.5), label="/single")
