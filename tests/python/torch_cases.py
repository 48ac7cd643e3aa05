"""One small use of each ATen overload that the importer of programs takes: the call, and its operands."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import nn

aten = torch.ops.aten


@dataclasses.dataclass
class Case:
    name: str
    make: Callable[[], object]  # a function of the inputs, or a module
    inputs: Callable[[], list[torch.Tensor]]
    tolerance: float = 3e-6
    static_only: bool = False  # PyTorch itself fixes the sizes, or they must be fixed
    names: list[str] | None = None
    call: Callable | None = None  # of an overload and operands, where `make` is that


CASES: list[Case] = []


def use(overload: str, call: Callable, *inputs, label: str = "", tolerance: float = 3e-6, static_only: bool = False):
    """`call` gets the overload, then the operands."""
    name, _, variant = overload.partition(".")
    op = getattr(getattr(aten, name), variant or "default")
    made = [x() if callable(x) else x for x in inputs]
    CASES.append(Case(overload + label, lambda: lambda *given: call(op, *given), lambda: [x.clone() for x in made], tolerance, static_only, call=call))


def reals(*shape):
    return torch.linspace(-2, 2, max(1, int(torch.tensor(shape).prod()) if shape else 1)).roll(3).reshape(shape)


def positive(*shape):
    return reals(*shape).abs() + 0.25


def inside(*shape):
    return reals(*shape) * 0.45


def whole(*shape, low=-5, high=6):
    count = int(torch.tensor(shape).prod()) if shape else 1
    return (torch.arange(count) * 7 % (high - low) + low).reshape(shape)


def noise(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


X = reals(3, 4)

for unary in ("abs acosh alpha_dropout asinh atan bitwise_not ceil cos cosh erf exp exp2 expm1 floor hardsigmoid hardswish isinf isnan "
              "log_sigmoid logical_not mish neg relu relu6 round selu sigmoid sign silu sin sinh square tan tanh trunc hardtanh elu "
              "softplus leaky_relu gelu celu").split():
    if unary == "acosh":
        use(unary, lambda op, x: op(x), positive(3, 4) + 1, tolerance=1e-5)
    elif unary == "bitwise_not":
        use(unary, lambda op, x, y: (op(x), op(y)), whole(3, 4), whole(3, 4) > 0)
    elif unary == "alpha_dropout":
        use(unary, lambda op, x: op(x, 0.5, False) + 1, X)
    else:
        use(unary, lambda op, x: op(x), X, tolerance=1e-5)
for unary in "acos asin atanh".split():
    use(unary, lambda op, x: op(x), inside(3, 4), tolerance=1e-5)
for unary in "log log10 log1p log2 reciprocal rsqrt sqrt".split():
    use(unary, lambda op, x: op(x), positive(3, 4))
use("exp", lambda op, x: op(x), whole(3, 4), label="/integers")
use("floor", lambda op, x: op(x), whole(3, 4), label="/integers")
for dropout in ("dropout", "feature_dropout"):
    use(dropout, lambda op, x: op(x, 0.5, False) + 1, X)
use("elu", lambda op, x: op(x, 0.7, 1.2, 0.9), X, label="/scaled")
use("softplus", lambda op, x: op(x, 2.0, 3.0), X, label="/threshold")
use("gelu", lambda op, x: op(x, approximate="tanh"), X, label="/tanh")
use("glu", lambda op, x: op(x, 1), X)
use("prelu", lambda op, x, w: op(x, w), reals(2, 3, 4), positive(3))
use("clamp", lambda op, x: op(x, -0.5, 1), X)
use("clamp", lambda op, x: op(x, None, 2), whole(3, 4), label="/integers")
use("clamp.Tensor", lambda op, x, a: op(x, a, a + 1), X, inside(4))
use("clamp_min", lambda op, x: op(x, 0.25), X)
use("clamp_max", lambda op, x: op(x, 0.25), X)

for binary in ("add.Tensor sub.Tensor mul.Tensor div.Tensor rsub.Tensor maximum minimum eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor "
               "ge.Tensor remainder.Tensor fmod.Tensor").split():
    use(binary, lambda op, x, y: op(x, y), X, positive(4))
    use(binary, lambda op, x, y: op(x, y), whole(3, 4), positive(4), label="/mixed")
for binary in "add.Scalar sub.Scalar mul.Scalar div.Scalar rsub.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar remainder.Scalar fmod.Scalar".split():
    use(binary, lambda op, x: op(x, 1.5), X)
    use(binary, lambda op, x: op(x, 2), whole(3, 4), label="/integers")
use("add.Tensor", lambda op, x, y: op(x, y, alpha=0.5), X, X.flip(0), label="/alpha")
use("sub.Tensor", lambda op, x, y: op(x, y, alpha=3), whole(3, 4), whole(4), label="/alpha")
use("add.Tensor", lambda op, x: op(x, x.shape[0]), X, label="/size")
use("add.Tensor", lambda op, x, y: op(x, y), X.half(), X.flip(0), label="/f16 and f32", tolerance=1e-3)
use("mul.Tensor", lambda op, x, y: op(x, y), X.half(), torch.tensor(2.5), label="/rank 0", tolerance=1e-3)
for mode in (None, "floor", "trunc"):
    use("div.Tensor_mode", lambda op, x, y, mode=mode: op(x, y, rounding_mode=mode), X, positive(4), label=f"/{mode}")
    use("div.Tensor_mode", lambda op, x, y, mode=mode: op(x, y, rounding_mode=mode), whole(3, 4), torch.tensor([3, -2, 4, 5]), label=f"/{mode}/integers")
    use("div.Scalar_mode", lambda op, x, mode=mode: op(x, 1.5, rounding_mode=mode), X, label=f"/{mode}")
use("floor_divide", lambda op, x, y: op(x, y), X, positive(4))
use("pow.Tensor_Scalar", lambda op, x: (op(x, 2), op(x, 3), op(x, 1), op(x.abs(), 0.5), op(x.abs(), 1.7)), X, tolerance=1e-5)
use("pow.Tensor_Scalar", lambda op, x: op(x, 3), whole(3, 4), label="/integers")
use("pow.Tensor_Tensor", lambda op, x, y: op(x, y), positive(3, 4), X, tolerance=1e-5)
use("pow.Scalar", lambda op, x: op(2.5, x), X, tolerance=1e-5)
for logical in "logical_and logical_or logical_xor".split():
    use(logical, lambda op, x, y: op(x, y), X.round(), whole(4))
for bitwise in "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor".split():
    use(bitwise, lambda op, x, y: op(x, y), whole(3, 4), whole(4))
    use(bitwise, lambda op, x, y: op(x, y), whole(3, 4) > 0, whole(4) > 0, label="/bools")
use("where.self", lambda op, x, y: op(x > 0, x, y), X, whole(4))
use("where.ScalarOther", lambda op, x: op(x > 0, x, 2.0), X)
use("where.ScalarSelf", lambda op, x: op(x > 0, 2.0, x), X)
use("where.Scalar", lambda op, x: op(x > 0, 2.0, 3.0), X)
use("masked_fill.Scalar", lambda op, x: op(x, x > 0, float("-inf")), X)
use("masked_fill.Tensor", lambda op, x, v: op(x, x > 0, v), X, torch.tensor(0.5))
use("addcmul", lambda op, x, y, z: op(x, y, z, value=0.5), X, X + 1, positive(4))
use("addcdiv", lambda op, x, y, z: op(x, y, z, value=0.5), X, X + 1, positive(4))
use("lerp.Scalar", lambda op, x, y: op(x, y, 0.3), X, X + 1)

Y = reals(2, 3, 4)
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
use("cumsum", lambda op, x: op(x, 1), X)
use("topk", lambda op, x: op(x, 2, 1), ((torch.arange(12) * 5) % 12).float().reshape(3, 4))  # no equal elements: which of them comes first is not said
use("sort", lambda op, x: (*op(x, 1), *op(x, 0, True)), X)
for soft in "softmax.int log_softmax.int".split():
    use(soft, lambda op, x: (op(x, 1), op(x, -1, torch.float64)), X)
for soft in "_softmax _log_softmax".split():
    use(soft, lambda op, x: op(x, 1, False), X)

use("matmul", lambda op, x, y: op(x, y), noise(2, 3, 4), noise(4, 5))
use("matmul", lambda op, x, y: op(x, y), noise(4), noise(2, 4, 5), label="/vector")
use("mm", lambda op, x, y: op(x, y), noise(3, 4), noise(4, 5))
use("bmm", lambda op, x, y: op(x, y), noise(2, 3, 4), noise(2, 4, 5))
use("addmm", lambda op, b, x, y: op(b, x, y, beta=0.5, alpha=2), noise(5), noise(3, 4), noise(4, 5))
use("baddbmm", lambda op, b, x, y: op(b, x, y), noise(2, 3, 5), noise(2, 3, 4), noise(2, 4, 5))
use("linear", lambda op, x, w, b: (op(x, w, b), op(x, w)), noise(2, 3, 4), noise(5, 4), noise(5))
ATTENDED = (noise(2, 3, 5, 4), noise(2, 3, 6, 4), noise(2, 3, 6, 7))
use("scaled_dot_product_attention", lambda op, q, k, v: op(q, k, v), *ATTENDED, static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v, m: op(q, k, v, m), *ATTENDED, noise(5, 6), label="/bias", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v, m: op(q, k, v, m > 0), *ATTENDED, reals(5, 6), label="/mask", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v: op(q, k, v, None, 0.0, True, scale=0.3), *ATTENDED, label="/causal", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v: op(q, k, v), noise(3, 5, 4), noise(3, 6, 4), noise(3, 6, 4), label="/rank 3", static_only=True)

STATISTICS = (noise(2, 3, 4, 5), positive(3), reals(3), reals(3), positive(3))
use("batch_norm", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5, False), *STATISTICS)
use("batch_norm", lambda op, x, w, b, m, v: op(x, None, None, m, v, False, 0.1, 1e-5, False) + w[0] + b[0], *STATISTICS, label="/plain")
use("native_batch_norm", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5)[0], *STATISTICS)
use("_native_batch_norm_legit_no_training", lambda op, x, w, b, m, v: op(x, w, b, m, v, 0.1, 1e-5)[0], *STATISTICS)
use("instance_norm", lambda op, x, w, b, m, v: op(x, w, b, None, None, True, 0.1, 1e-5, False) + m[0] + v[0], *STATISTICS, tolerance=1e-5)
use("instance_norm", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5, False), *STATISTICS, label="/statistics")
use("_native_batch_norm_legit.no_stats", lambda op, x, w, b, m, v: op(x, w, b, True, 0.1, 1e-5)[0] + m[0] + v[0], *STATISTICS, tolerance=1e-5)
use("group_norm", lambda op, x, w, b: op(x, 2, w, b), noise(2, 4, 3, 5), positive(4), reals(4), tolerance=1e-5, static_only=True)
use("native_group_norm", lambda op, x, w, b: op(x, w, b, 2, 4, 15, 2, 1e-5)[0], noise(2, 4, 3, 5), positive(4), reals(4), tolerance=1e-5, static_only=True)
use("layer_norm", lambda op, x, w, b: op(x, [3, 5], w, b), noise(2, 3, 5), positive(3, 5), reals(3, 5), tolerance=1e-5, static_only=True)
use("native_layer_norm", lambda op, x, w, b: op(x, [5], w, b, 1e-5)[0], noise(2, 3, 5), positive(5), reals(5), tolerance=1e-5, static_only=True)
use("rms_norm", lambda op, x, w: (op(x, [5], w), op(x, [5], None, 1e-3)), noise(2, 3, 5), positive(5), tolerance=1e-5, static_only=True)
use("_weight_norm", lambda op, v, g: op(v, g, 0), noise(3, 4, 2), positive(3, 1, 1))

for rank, sizes in ((1, (9,)), (2, (9, 8)), (3, (6, 7, 5))):
    images = noise(2, 3, *sizes)
    for pool in ("max", "avg"):
        use(f"{pool}_pool{rank}d", lambda op, x, r=rank: (op(x, [3] * r, [2] * r, [1] * r), op(x, [2]), op(x, [3] * r, [2] * r, [0] * r, ceil_mode=True)), images)
        use(f"{pool}_pool{rank}d", lambda op, x, r=rank: op(x, [2] * r), images[0], label="/unbatched")
    use(f"avg_pool{rank}d", lambda op, x, r=rank: op(x, [3] * r, [2] * r, [1] * r, count_include_pad=False), images, label="/without padding")
    use(f"adaptive_avg_pool{rank}d", lambda op, x, r=rank: (op(x, [1] * r), op(x, [4] * r)), images)
    scales = (2.0, 1.5, 2.0)[:rank]
    larger = [11, 16, 9][:rank]
    linear = {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}[rank]
    for nearest in (f"upsample_nearest{rank}d", f"_upsample_nearest_exact{rank}d"):
        use(nearest, lambda op, x, to=larger: op(x, to), images, static_only=True)
        use(f"{nearest}.vec", lambda op, x, s=scales: op(x, None, s), images)
    for smooth in (linear, *(["upsample_bicubic2d"] if rank == 2 else [])):
        use(smooth, lambda op, x, to=larger: (op(x, to, True), op(x, to, False)), images, static_only=True, tolerance=1e-5)
        use(f"{smooth}.vec", lambda op, x, s=scales: op(x, None, False, s), images, tolerance=1e-5)
        use(f"{smooth}.vec", lambda op, x, to=larger: op(x, to, True, None), images, label="/sizes", static_only=True, tolerance=1e-5)
    use(f"reflection_pad{rank}d", lambda op, x, r=rank: op(x, [2, 1] * r), images)
    use(f"replication_pad{rank}d", lambda op, x, r=rank: op(x, [2, 1] * r), images)
use("upsample_nearest2d", lambda op, x: op(x, [18, 16], 2.0, 2.0), noise(2, 3, 9, 8), label="/scales", static_only=True)
use("max_pool2d", lambda op, x: op(x, [3], [1], [1], [2]), noise(2, 3, 9, 8), label="/dilated")
use("max_pool2d_with_indices", lambda op, x: op(x, [3, 2], [2, 2], [1, 0]), noise(2, 3, 9, 8))
use("max_pool3d_with_indices", lambda op, x: op(x, [3, 2, 2], [2, 2, 1], [1, 0, 1]), noise(2, 3, 6, 7, 5))
use("avg_pool2d", lambda op, x: op(x, [3, 2], [2], [1, 1], False, True, 5), noise(2, 3, 9, 8), label="/divisor")
use("_adaptive_avg_pool2d", lambda op, x: op(x, [3, 5]), noise(2, 3, 9, 8), static_only=True)
use("_adaptive_avg_pool3d", lambda op, x: op(x, [2, 3, 4]), noise(2, 3, 6, 7, 5), static_only=True)
use("constant_pad_nd", lambda op, x: (op(x, [1, 2, -1, 0], 0.5), op(x, [1, 1])), Y)
for mode in "constant reflect replicate circular".split():
    use("pad", lambda op, x, mode=mode: op(x, [1, 2, 2, 1], mode), noise(2, 3, 4, 5), label=f"/{mode}")
GRID = torch.stack([noise(2, 4, 5), noise(2, 5, 4).transpose(1, 2)], -1) * 0.8
for mode in range(3):
    use("grid_sampler", lambda op, x, g, m=mode: op(x, g, m, m, m == 1), noise(2, 3, 6, 7), GRID, label=f"/{mode}", tolerance=1e-5)
use("grid_sampler_2d", lambda op, x, g: op(x, g, 0, 0, False), noise(2, 3, 6, 7), GRID, tolerance=1e-5)
use("grid_sampler_3d", lambda op, x, g: op(x, g, 0, 1, True), noise(1, 2, 4, 5, 3), noise(1, 2, 3, 2, 3) * 0.7, tolerance=1e-5)

for rank in (1, 2, 3):
    image, kernel, stride = noise(2, 4, *[7, 6, 5][:rank]), noise(6, 2, *[3, 2, 3][:rank]), [2, 1, 2][:rank]
    use(f"conv{rank}d", lambda op, x, w, b, s=stride: op(x, w, b, s, [1], [1], 2), image, kernel, reals(6), static_only=True, tolerance=1e-5)
    use(f"conv{rank}d.padding", lambda op, x, w, b: (op(x, w, b, [1], "same", [2], 2), op(x, w, None, [2], "valid", [1], 2)), image, kernel, reals(6), static_only=True, tolerance=1e-5)
    use(f"conv{rank}d", lambda op, x, w, b: op(x, w, b, [1], [0], [1], 2), image[0], kernel, reals(6), label="/unbatched", static_only=True, tolerance=1e-5)
    back = noise(4, 3, *[3, 4, 2][:rank])
    up = f"conv_transpose{rank}d" + ("" if rank == 1 else ".input")
    use(up, lambda op, x, w, b, r=rank: op(x, w, b, [2] * r, [1] * r, [1] * r, 2, [2] * r), image, back, reals(6), static_only=True, tolerance=1e-5)
    use(up, lambda op, x, w, b: op(x, w, None, [3], [0], [2]) + b[0], image[0], back, reals(6), label="/unbatched", static_only=True, tolerance=1e-5)
    use("convolution", lambda op, x, w, b, r=rank: op(x, w, b, [2] * r, [1] * r, [1] * r, True, [1] * r, 2), image, back, reals(6), label=f"/up {rank}", static_only=True, tolerance=1e-5)
    use("convolution", lambda op, x, w, b, r=rank: op(x, w, b, [2] * r, [1] * r, [1] * r, False, [0] * r, 2), image, kernel, reals(6), label=f"/down {rank}", static_only=True, tolerance=1e-5)

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


class Small(nn.Module):
    """What GANs and U-Nets are made of."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.2, inplace=True), nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelShuffle(2))

    def forward(self, x):
        return torch.tanh(self.up(self.down(x)))


CASES.append(Case("network", Small, lambda: [noise(2, 3, 12, 10)], 1e-5, names=["x"]))

# Sizes and numbers that data tell, masks, writes.
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

use("einsum", lambda op, x, y: (op("bi,bj->bij", [x, y]), op("...i,ji->...j", [x, x]), op("ij->j", [x])), X, reals(3, 5))
use("broadcast_tensors", lambda op, x, y: tuple(op([x, y])), X, reals(4), static_only=True)
use("broadcast_to", lambda op, x: op(x, [3, 4]), reals(4), static_only=True)
use("meshgrid", lambda op, x, y: tuple(op([x, y])), reals(3), reals(4), static_only=True)
for order in ("ij", "xy"):
    use("meshgrid.indexing", lambda op, x, y, z, how=order: tuple(op([x, y, z], indexing=how)), reals(3), reals(4), reals(2), label=f"/{order}", static_only=True)
use("unfold", lambda op, x: (op(x, 1, 3, 1), op(x, -2, 2, 2)), reals(4, 6))
use("diff", lambda op, x: (op(x), op(x, 2, 0), op(x, 1, 1, x[:, :1], x)), X)
use("mse_loss", lambda op, x, y: (op(x, y), op(x, y, 0), op(x, y, 2)), X, reals(4) + 1)
use("l1_loss", lambda op, x, y: (op(x, y), op(x, y, 0)), X, reals(3, 4) + 1)
for distance in "cdist _cdist_forward".split():
    use(distance, lambda op, x, y: (op(x, y, 2.0, None), op(x, y, 1.0, None), op(x, y, 3.0, None), op(x, y, float("inf"), None)), reals(2, 3, 4), noise(2, 5, 4), tolerance=1e-4)
use("diagonal", lambda op, x: (op(x), op(x, 1), op(x, -1, 1, 2)), reals(3, 4, 5))
use("outer", lambda op, x, y: op(x, y), reals(3), reals(4))
for dot in "dot vdot".split():
    use(dot, lambda op, x, y: op(x, y), reals(4), reals(4) + 1)
use("mv", lambda op, x, y: op(x, y), X, reals(4))
use("atan2", lambda op, y, x: op(y, x), torch.tensor([1.0, -1, 0, -0.0, 0, -0.0, 2, -3, 0.5, float("inf")]), torch.tensor([0.0, 0, 1, -1, -1, 1, -2, -0.5, 3, -float("inf")]))
use("im2col", lambda op, x: (op(x, [2, 3], [1, 2], [1, 0], [2, 1]), op(x[0], [2, 2], [1, 1], [0, 0], [1, 1])), noise(2, 3, 5, 8))
use("channel_shuffle", lambda op, x: op(x, 2), noise(2, 4, 3, 3))
use("isfinite", lambda op, x: (op(x / 0), op(x)), X.round())
use("nan_to_num", lambda op, x: (op(x / 0), op(x / 0, 1.0, 2.0, 3.0)), X.round())
use("threshold", lambda op, x: op(x, 0.1, 20), X)
use("bucketize.Tensor", lambda op, x, b: (op(x, b), op(x, b, right=True)), X.round(), torch.tensor([-1.0, 0, 1]))
use("searchsorted.Tensor", lambda op, b, x: (op(b, x, out_int32=True), op(b, x, side="right")), torch.tensor([-1.0, 0, 1]), X.round())
use("searchsorted.Tensor", lambda op, b, x: op(b, x), reals(3, 4).sort(1).values, X, label="/rows")
for bitwise in "and or xor".split():
    use(f"bitwise_{bitwise}.Scalar", lambda op, x: op(x, 3), whole(3, 4))
    use(f"__{bitwise}__.Scalar", lambda op, x: op(x, 3), whole(3, 4))
    use(f"__{bitwise}__.Tensor", lambda op, x, y: op(x > 0, y > 0), whole(3, 4), whole(4))
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
use("std_mean.correction", lambda op, x: op(x, [1], correction=0), noise(3, 4))
use("norm.Scalar", lambda op, x: (op(x), op(x, 1)), X)
use("norm.ScalarOpt_dim", lambda op, x: (op(x, None, [1]), op(x, 3, [0], True)), X)
use("mul.Tensor", lambda op, x, y: op(x > 0, y > 0), X, reals(4), label="/bools")
use("add.Tensor", lambda op, x, y: op(x > 0, y > 0), X, reals(4), label="/bools")


# Complex numbers, inside of a program only: operands and results are real.
def complex_use(overload: str, call: Callable, *shapes, label: str = "/complex", **more):
    """`call` gets the overload, then complex tensors of the shapes; what it gives that is complex is looked at by its parts."""

    def plain(result):
        if isinstance(result, (tuple, list)):
            return tuple(plain(one) for one in result)
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result.resolve_neg()

    def whole(op, *parts):
        return plain(call(op, *map(torch.view_as_complex, parts)))

    use(overload, whole, *(noise(*shape, 2) for shape in shapes), label=label, **more)


Z, ZZ = (3, 4), (2, 3, 4)
for same in "alias clone contiguous detach lift_fresh_copy neg _conj conj _conj_physical conj_physical resolve_conj resolve_neg squeeze".split():
    complex_use(same, lambda op, z: op(z), Z, static_only=same == "squeeze")
complex_use("t", lambda op, z: op(z) * 2, Z)
for parts in "abs angle real imag sgn exp reciprocal square sum mean".split():
    complex_use(parts, lambda op, z: op(z) + 0, Z, tolerance=2e-5)
use("angle", lambda op, x: op(x), X)
use("sgn", lambda op, x: op(x), X)
use("conj_physical", lambda op, x: op(x), X)
use("resolve_conj", lambda op, x: op(x) + 0, X)
use("resolve_neg", lambda op, x: op(x) + 0, X)
use("_neg_view", lambda op, x: op(x).resolve_neg() + 0, X)
complex_use("view_as_real", lambda op, z: op(z) * 2, Z)
use("view_as_complex", lambda op, x: torch.view_as_real(op(x) * 2), noise(3, 4, 2))
use("complex", lambda op, x, y: torch.view_as_real(op(x, y)), X, reals(4))
use("polar", lambda op, x, y: torch.view_as_real(op(x, y)), X, reals(4))
for binary in "add.Tensor sub.Tensor mul.Tensor div.Tensor".split():
    complex_use(binary, lambda op, z, w: (op(z, w), op(z, w.abs()), op(z.real, w), op(z, 2.5), op(z, 1 - 2j), op(z.abs(), 2j)), Z, (4,), tolerance=2e-5)
for binary in "add.Scalar sub.Scalar mul.Scalar div.Scalar rsub.Scalar".split():
    complex_use(binary, lambda op, z: (op(z, 2.5), op(z, 1 - 2j)), Z, tolerance=1e-5)
complex_use("add.Tensor", lambda op, z, w: op(z, w, alpha=0.5), Z, (4,), label="/complex alpha")
complex_use("rsub.Tensor", lambda op, z, w: op(z, w), Z, (4,))
complex_use("pow.Tensor_Scalar", lambda op, z: (op(z, 1), op(z, 2), op(z, 3)), Z, tolerance=1e-5)
complex_use("mul.Tensor", lambda op, z: torch.exp(op(z.real, 1j)), Z, label="/phase")
for product, shapes in {"mm": (Z, (4, 5)), "bmm": (ZZ, (2, 4, 5)), "matmul": (ZZ, (4, 5)), "mv": (Z, (4,))}.items():
    complex_use(product, lambda op, z, w: op(z, w), *shapes, tolerance=1e-5)
complex_use("einsum", lambda op, z, w: (op("bix,iox->box", [z, w]), op("bix->bi", [z])), ZZ, (3, 5, 4), tolerance=1e-5)
for where in "where.self where.ScalarOther where.ScalarSelf".split():
    complex_use(where, lambda op, z, name=where: op(z.real > 0, *{"r": (z, 2.0), "f": (2.0, z), "s": (z, z.conj())}[name[-1] if name[-1] in "rf" and name != "where.self" else "s"]), Z)
for fill in (0.5, 2 + 1j):
    complex_use("masked_fill.Scalar", lambda op, z, fill=fill: op(z, z.real > 0, fill), Z, label=f"/complex {fill}")
complex_use("masked_fill.Tensor", lambda op, z: op(z, z.real > 0, torch.tensor(0.5)), Z)
for to in "_to_copy to.dtype_layout".split():
    use(to, lambda op, x: torch.view_as_real(op(x, dtype=torch.complex128) * 1j), X, label="/complex")
use("to.dtype", lambda op, x: torch.view_as_real(op(x, torch.complex64) * 1j), X, label="/complex")
use("to.device", lambda op, x: torch.view_as_real(op(x, torch.device("cpu"), torch.complex64) * 1j), X, label="/complex")
for to in "to.other type_as".split():
    complex_use(to, lambda op, z: (op(z.real, z), op(z.abs().double(), z)), Z)

complex_use("view", lambda op, z: op(z, [z.shape[0], -1]), ZZ)
complex_use("_unsafe_view", lambda op, z: op(z, [-1, z.shape[2]]), ZZ)
complex_use("reshape", lambda op, z: op(z, [-1]), ZZ)
complex_use("flatten.using_ints", lambda op, z: (op(z, 1), op(z, 0, 1), op(z, -2)), ZZ)
complex_use("unflatten.int", lambda op, z: op(z, -1, [2, -1]), ZZ)
complex_use("squeeze.dim", lambda op, z: op(z, -1), (2, 3, 1), static_only=True)
complex_use("squeeze.dims", lambda op, z: op(z, [1, -1]), (2, 1, 3, 1), static_only=True)
complex_use("unsqueeze", lambda op, z: (op(z, 0), op(z, -1)), Z)
complex_use("permute", lambda op, z: op(z, [2, 0, -2]), ZZ)
complex_use("transpose.int", lambda op, z: op(z, 0, -1), ZZ)
complex_use("swapaxes", lambda op, z: op(z, 0, -1), ZZ)
complex_use("swapdims", lambda op, z: op(z, -1, 0), ZZ)
complex_use("movedim.int", lambda op, z: op(z, -1, 0), ZZ)
complex_use("movedim.intlist", lambda op, z: op(z, [0, -1], [-1, 0]), ZZ)
complex_use("expand", lambda op, z: op(z.unsqueeze(1), [2, -1, 3, -1]), Z)
complex_use("broadcast_to", lambda op, z: op(z, [3, 4]), (4,), static_only=True)
complex_use("broadcast_tensors", lambda op, z, w: tuple(op([z, w])), Z, (4,), static_only=True)
complex_use("repeat", lambda op, z: op(z, [2, 1, 3]), Z)
complex_use("tile", lambda op, z: op(z, [2]), Z)
complex_use("repeat_interleave.self_int", lambda op, z: (op(z, 2, 1), op(z, 2)), Z)
complex_use("cat", lambda op, z, w: (op([z, w], -1), op([z, w.real], 1)), Z, (3, 2))
complex_use("concat", lambda op, z, w: op([z, w]), Z, (2, 4))
complex_use("stack", lambda op, z: op([z, z * 2, z.real], -1), Z)
complex_use("split.Tensor", lambda op, z: tuple(op(z, 2, -1)), (3, 5), static_only=True)
complex_use("chunk", lambda op, z: tuple(op(z, 3, -1)), (3, 7), static_only=True)
complex_use("split_with_sizes", lambda op, z: tuple(op(z, [1, 3], -1)), Z, static_only=True)
complex_use("unbind.int", lambda op, z: tuple(op(z, -1)), Z, static_only=True)
complex_use("select.int", lambda op, z: (op(z, 1, 2), op(z, -1, -1)), ZZ)
complex_use("slice.Tensor", lambda op, z: (op(z, 1, 1, 3), op(z, -1, -3, -1)), ZZ)
complex_use("narrow", lambda op, z: op(z, -1, 1, 2), ZZ)
complex_use("index_select", lambda op, z: op(z, -1, torch.tensor([3, 0, 0])), Z)
for index in ("index.Tensor", "_unsafe_index.Tensor"):
    complex_use(index, lambda op, z: op(z, [None, torch.tensor([1, 0, 1])]), ZZ)
complex_use("index_put", lambda op, z, w: (op(z, [torch.tensor([2, 0])], w), op(z, [z.real > 0], w[0, 0])), Z, (2, 4), static_only=True)
complex_use("gather", lambda op, z: op(z, 1, torch.tensor([[3, 0], [1, 1], [0, 2]])), Z)
complex_use("flip", lambda op, z: op(z, [0, -1]), ZZ)
complex_use("roll", lambda op, z: (op(z, [1, -1], [0, 2]), op(z, [5])), ZZ)
complex_use("diagonal", lambda op, z: op(z, 1), Z)
complex_use("unfold", lambda op, z: op(z, -1, 3, 1), (4, 6))
complex_use("cumsum", lambda op, z: op(z, -1), Z)
complex_use("sum.dim_IntList", lambda op, z: (op(z, [1], True), op(z, [0, -1])), ZZ)
complex_use("mean.dim", lambda op, z: (op(z, [1], True), op(z, [0, -1])), ZZ)
complex_use("constant_pad_nd", lambda op, z: op(z, [1, 2, -1, 0]), ZZ)
complex_use("pad", lambda op, z: (op(z, [1, 2, 2, 1]), op(z, [1, 1, 2, 0], "reflect")), (2, 3, 4, 5))
complex_use("copy", lambda op, z, w: op(z, w), Z, (4,))
complex_use("select_scatter", lambda op, z, w: op(z, w, -1, -1), (4, 3), (4,))
complex_use("slice_scatter", lambda op, z, w: op(z, w, -1, 1, 3), Z, (3, 2), static_only=True)
complex_use("new_zeros", lambda op, z: op(z, [2, z.shape[0]]) + z[0, 0], Z)
complex_use("zeros_like", lambda op, z: op(z) + z, Z)
complex_use("full", lambda op, z: op([z.shape[1]], 1 + 2j) + z, Z)
complex_use("full_like", lambda op, z: (op(z, 1 + 2j) + z, op(z, 3) + z), Z)
complex_use("scalar_tensor", lambda op, z: op(2j, dtype=torch.complex64) + z, Z)
complex_use("zeros", lambda op, z: op([z.shape[1]], dtype=torch.complex64) + z, Z)

for inverse in ("", "i"):
    for norm in (None, "backward", "ortho", "forward"):
        complex_use(f"fft_{inverse}fft", lambda op, z, norm=norm: (op(z, norm=norm), op(z, 6, 0, norm)), (5, 9), label=f"/{norm}", tolerance=1e-5)
        complex_use(f"fft_{inverse}fft2", lambda op, z, norm=norm: (op(z, norm=norm), op(z, [6, 4], [0, -1], norm)), (5, 3, 8), label=f"/{norm}", tolerance=1e-5)
        complex_use(f"fft_{inverse}fftn", lambda op, z, norm=norm: (op(z, norm=norm), op(z, [4], norm=norm), op(z, [6, -1], [1, 0], norm)), (5, 3, 8), label=f"/{norm}", tolerance=1e-5)
    use(f"fft_{inverse}fft", lambda op, x: torch.view_as_real(op(x).resolve_conj()), noise(3, 8), label="/real", tolerance=1e-5)
    use(f"fft_{inverse}fft2", lambda op, x: torch.view_as_real(op(x).resolve_conj()), whole(3, 8, 5), label="/integers", tolerance=1e-5)
    use(f"fft_{inverse}fftn", lambda op, x: torch.view_as_real(op(x).resolve_conj()), noise(3, 7), label="/real", tolerance=1e-5)
    complex_use(f"fft_{inverse}fftshift", lambda op, z: (op(z), op(z, [-1])), (4, 5))
    use(f"fft_{inverse}fftshift", lambda op, x: (op(x), op(x, [0])), noise(4, 5))
for norm in (None, "ortho", "forward"):
    use("fft_rfft", lambda op, x, norm=norm: tuple(map(torch.view_as_real, (op(x, norm=norm), op(x, 5, 0, norm), op(x, 12, -1, norm)))), noise(6, 9), label=f"/{norm}", tolerance=1e-5)
    use("fft_rfft2", lambda op, x, norm=norm: tuple(map(torch.view_as_real, (op(x, norm=norm), op(x, [4, 6], [0, 2], norm)))), noise(5, 6, 7), label=f"/{norm}", tolerance=1e-5)
    use("fft_rfftn", lambda op, x, norm=norm: tuple(map(torch.view_as_real, (op(x, norm=norm), op(x, None, [2, 1], norm)))), noise(5, 6, 7), label=f"/{norm}", tolerance=1e-5)
    complex_use("fft_irfft", lambda op, z, norm=norm: (op(z, norm=norm), op(z, 5, 0, norm), op(z, 9, -1, norm)), (6, 5), label=f"/{norm}", tolerance=1e-5)
    complex_use("fft_irfft2", lambda op, z, norm=norm: (op(z, norm=norm), op(z, [4, 7], [0, 2], norm)), (5, 6, 5), label=f"/{norm}", tolerance=1e-5)
    complex_use("fft_irfftn", lambda op, z, norm=norm: (op(z, norm=norm), op(z, None, [2, 1], norm)), (5, 6, 4), label=f"/{norm}", tolerance=1e-5)
use("fft_irfft", lambda op, x: op(x), noise(3, 5), label="/real", tolerance=1e-5)
for norm in range(3):
    use("_fft_r2c", lambda op, x, norm=norm: (torch.view_as_real(op(x, [0, 1], norm, True)), torch.view_as_real(op(x, [1], norm, False))), noise(4, 7), label=f"/{norm}", tolerance=1e-5)
    complex_use("_fft_c2r", lambda op, z, norm=norm: op(z, [0, 1], norm, 7), (4, 4), label=f"/{norm}", tolerance=1e-5, static_only=True)
    complex_use("_fft_c2c", lambda op, z, norm=norm: (op(z, [0, 1], norm, True), op(z, [1], norm, False)), (4, 6), label=f"/{norm}", tolerance=1e-5)
for frequencies in ("fft_fftfreq", "fft_rfftfreq"):
    use(frequencies, lambda op, x: op(8) + x[0, 0], X)
    use(frequencies, lambda op, x: op(7, 0.5) + x[0, 0], X, label="/odd")
for window in ("hann_window", "hamming_window"):
    use(window, lambda op, x: op(4) * x, X)
    use(f"{window}.periodic", lambda op, x: op(4, False) * x, X)
use("hamming_window.periodic_alpha", lambda op, x: op(4, True, 0.6) * x, X)
use("hamming_window.periodic_alpha_beta", lambda op, x: op(4, False, 0.6, 0.3) * x, X)

SIGNAL, WINDOW = noise(2, 90), torch.hann_window(12) + 0.1
use("stft", lambda op, x: torch.view_as_real(op(x, 16, return_complex=True)), SIGNAL, tolerance=1e-5)
use("stft", lambda op, x: torch.view_as_real(op(x[0], 15, 4, 12, WINDOW, True, return_complex=True)), SIGNAL, label="/window", tolerance=1e-5)
use("stft", lambda op, x: torch.view_as_real(op(x, 16, 5, onesided=False, return_complex=True)), SIGNAL, label="/two sides", tolerance=1e-5)
use("stft", lambda op, x: op(x, 16, 5, return_complex=False), SIGNAL, label="/pairs", tolerance=1e-5)
complex_use("stft", lambda op, z: op(z, 12, 5, None, WINDOW, return_complex=True), (2, 50), tolerance=1e-5)
for mode in ("reflect", "constant"):
    use("stft.center", lambda op, x, mode=mode: torch.view_as_real(op(x, 16, 4, 12, WINDOW, True, mode, return_complex=True)), SIGNAL, label=f"/{mode}", tolerance=1e-5)
# In istft PyTorch squares the window in its own type: one of FP32 would bring its rounding into FP64.
complex_use("istft", lambda op, z: op(z, 16, 4, 12, WINDOW.to(z.real.dtype)), (2, 9, 20), tolerance=1e-5)
complex_use("istft", lambda op, z: op(z[0], 16, 4, 12, WINDOW.to(z.real.dtype), normalized=True, length=60), (2, 9, 20), label="/length", tolerance=1e-5)
complex_use("istft", lambda op, z: op(z, 16, 4, None, None, False, onesided=False), (2, 16, 20), label="/two sides", tolerance=1e-5)
complex_use("istft", lambda op, z: op(z, 600, 250, None, None, True), (1, 301, 5), label="/long", tolerance=1e-5)
complex_use("istft", lambda op, z: op(z, 512, 128, None, torch.hann_window(512, dtype=z.real.dtype), True, length=600), (1, 257, 6), label="/long length", tolerance=1e-5)

# Recurrences.
def recurrent(overload: str, gates: int, states: int, label: str, layers: int = 1, both: bool = False, batch_first: bool = False, bias: bool = True, **more):
    """x, the states, then the weights as PyTorch orders them."""
    features, hidden, directions = 3, 4, 2 if both else 1
    x, start = noise(2, 5, features) if batch_first else noise(5, 2, features), [noise(layers * directions, 2, hidden) * (i + 1) for i in range(states)]
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            wide = features if layer == 0 else hidden * directions
            weights += [noise(gates * hidden, wide) * 0.5, noise(gates * hidden, hidden) * 0.5]
            weights += [reals(gates * hidden), noise(gates * hidden)] if bias else []

    def call(op, x, *given):
        hx = list(given[:states]) if states == 2 else given[0]
        return op(x, hx, [w.clone() for w in weights], bias, layers, 0.5, False, both, batch_first)

    use(overload, call, x, *start, label=label, tolerance=1e-5, **more)


for overload, gates, states in (("lstm.input", 4, 2), ("gru.input", 3, 1), ("rnn_tanh.input", 1, 1), ("rnn_relu.input", 1, 1)):
    recurrent(overload, gates, states, "")
    recurrent(overload, gates, states, "/both", 2, True, True)
    recurrent(overload, gates, states, "/no bias", 2, False, False, False)
for overload, gates in (("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
    use(overload, lambda op, x, h, w, r, b: (op(x, h, w, r), op(x, h, w, r, b, b)), noise(2, 3), noise(2, 4), noise(4 * gates, 3), noise(4 * gates, 4), noise(4 * gates), tolerance=1e-5, static_only=True)
use("lstm_cell", lambda op, x, h, w, r, b: (*op(x, [h, h * 2], w, r), *op(x, [h, h], w, r, b, b)), noise(2, 3), noise(2, 4), noise(16, 3), noise(16, 4), noise(16), tolerance=1e-5, static_only=True)


class Recurrent(nn.Module):
    """An encoder and a decoder over time, with lengths and batches of any size."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True)
        self.decoder = nn.GRU(10, 4, batch_first=True)
        self.step = nn.LSTMCell(4, 3)

    def forward(self, x):
        y, (h, c) = self.encoder(x)
        z, last = self.decoder(y)
        h2, c2 = self.step(last[0])
        return z, h + c, h2 * c2, self.encoder(x[0])[0]


CASES.append(Case("recurrent network", Recurrent, lambda: [noise(3, 7, 6)], 1e-5, names=["x"]))

# Windows, turns, shifts.
for rank, sizes in ((1, (9,)), (2, (9, 8)), (3, (6, 7, 5))):
    images = noise(2, 3, *sizes)
    use(f"adaptive_max_pool{rank}d", lambda op, x, r=rank: (op(x, [1] * r)[0], op(x, [4] * r)[0], op(x[0], [3] * r)[0]), images)
for smooth in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    use(smooth, lambda op, x: (op(x, [5, 4], False), op(x, [12, 3], False), op(x, [4, 7], False, 0.5, 0.5)), noise(2, 3, 9, 14), tolerance=1e-5, static_only=True)
    use(f"{smooth}.vec", lambda op, x: (op(x, [5, 4], False, None), op(x, None, False, [0.5, 1.5])), noise(2, 3, 8, 14), tolerance=1e-5, static_only=True)
    use(f"{smooth}.vec", lambda op, x: op(x, None, False, [0.5, 1.5]), noise(2, 3, 8, 14), label="/scales", tolerance=1e-5)
use("col2im", lambda op, x: (op(x, [5, 8], [2, 3], [1, 2], [1, 0], [2, 1]), op(x[0], [7, 6], [2, 3], [1, 1], [0, 0], [2, 1])), noise(2, 12, 12), static_only=True)
use("col2im", lambda op, x: op(x, [4, x.shape[2] + 2], [4, 3], [1, 1], [0, 0], [1, 1]), noise(2, 24, 7), label="/open")
use("max_unpool2d", lambda op, x: op(*aten.max_pool2d_with_indices(x, [2, 2]), [6, 8]), noise(2, 3, 6, 8), static_only=True)
use("max_unpool2d", lambda op, x: op(*aten.max_pool2d_with_indices(x[0], [2, 2]), [x.shape[2], x.shape[3]]), noise(2, 3, 6, 9), label="/unbatched")
use("max_unpool3d", lambda op, x: op(*aten.max_pool3d_with_indices(x, [2, 2, 2]), [4, 6, 8], [2, 2, 2], [0, 0, 0]), noise(2, 3, 4, 6, 8), static_only=True)
for turns in range(-1, 4):
    use("rot90", lambda op, x, k=turns: op(x, k, [1, -1]), Y, label=f"/{turns}")
complex_use("rot90", lambda op, z: op(z, 1, [0, -1]), Z)
for side in ("left", "right"):
    use(f"__{side[0]}shift__.Scalar", lambda op, x: op(x, 2), whole(3, 4))
    use(f"__{side[0]}shift__.Tensor", lambda op, x, y: op(x, y), whole(3, 4), whole(4, low=0))
    use(f"bitwise_{side}_shift.Tensor", lambda op, x, y: (op(x, y), op(x.to(torch.uint8), y.int()), op(x.int(), y)), whole(3, 4), whole(4, low=0))
    use(f"bitwise_{side}_shift.Tensor_Scalar", lambda op, x: (op(x, 1), op(x.int(), 40)), whole(3, 4))

# Other names.
for alias in "absolute arcsinh arctan fix negative special_erf special_exp2 special_expit special_expm1".split():
    use(alias, lambda op, x: op(x), X, tolerance=1e-5)
for alias in "arccos arcsin arctanh".split():
    use(alias, lambda op, x: op(x), inside(3, 4), tolerance=1e-5)
use("arccosh", lambda op, x: op(x), positive(3, 4) + 1, tolerance=1e-5)
use("special_log1p", lambda op, x: op(x), positive(3, 4))
use("clip", lambda op, x: op(x, -0.5, 1), X)
use("clip.Tensor", lambda op, x, a: op(x, a, a + 1), X, inside(4))
use("concatenate", lambda op, x, y: op([x, y], 1), X, whole(3, 2))
use("moveaxis.int", lambda op, x: op(x, 0, 2), Y)
use("moveaxis.intlist", lambda op, x: op(x, [0, 2], [2, 0]), Y)
for alias in "special_softmax special_log_softmax special_logsumexp".split():
    use(alias, lambda op, x: op(x, 1), X)
for alias in "multiply subtract divide true_divide greater greater_equal less less_equal not_equal".split():
    use(f"{alias}.Tensor", lambda op, x, y: op(x, y), X, positive(4))
    use(f"{alias}.Scalar", lambda op, x: op(x, 1.5), X)
use("arctan2", lambda op, x, y: op(x, y), X, positive(4), tolerance=1e-5)
use("divide.Tensor_mode", lambda op, x, y: op(x, y, rounding_mode="floor"), X, positive(4))
use("divide.Scalar_mode", lambda op, x: op(x, 1.5, rounding_mode="trunc"), X)


class Fourier(nn.Module):
    """A convolution of spectra as inpainting networks have it, and a vocoder's head: spectrogram, mask, phases, inverse."""

    def __init__(self):
        super().__init__()
        self.spectra = nn.Conv2d(6, 6, 1)
        self.mask = nn.Conv1d(18, 18, 3, padding=1)
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("turns", torch.polar(torch.ones(9, 1), torch.arange(9.0)[:, None]))

    def forward(self, x, signal):
        f = torch.fft.rfftn(x, dim=(-2, -1), norm="ortho")
        f = torch.stack((f.real, f.imag), -1).permute(0, 1, 4, 2, 3).contiguous().view(x.shape[0], -1, *f.shape[2:])
        f = torch.relu(self.spectra(f)).view(x.shape[0], -1, 2, *f.shape[-2:]).permute(0, 1, 3, 4, 2).contiguous()
        image = x + torch.fft.irfftn(torch.complex(f[..., 0], f[..., 1]), s=x.shape[-2:], dim=(-2, -1), norm="ortho")
        z = torch.stft(signal, 16, 4, window=self.window, return_complex=True) * self.turns
        size, phase = self.mask(torch.cat([z.abs(), z.imag], 1)).chunk(2, 1)
        sound = torch.istft(size.exp().clip(max=10) * torch.exp(1j * phase), 16, 4, window=self.window)
        low = torch.fft.fft2(x)
        low[..., 1:3, 1:3] *= 0.5
        return image, sound, torch.fft.ifft2(low).real + 0


CASES.append(Case("fourier network", Fourier, lambda: [noise(2, 3, 6, 9), noise(2, 64)], 1e-5, names=["x", "signal"]))
