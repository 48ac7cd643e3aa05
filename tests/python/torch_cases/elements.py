"""Elementwise: activations, arithmetic, comparisons, logic, types, and their other names."""

from __future__ import annotations

import torch

from torch_cases.case import X, Y, inside, positive, reals, use, whole

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
# What overflows on the way, or is no number.
FAR = torch.tensor([float("inf"), float("-inf"), float("nan"), 0, -0.0, 1, -1, 5, -20, -90, -200, -1e6])
for unary in ("abs acos acosh asin asinh atan atanh ceil celu cos cosh elu erf exp exp2 expm1 floor gelu hardsigmoid hardswish hardtanh isinf isnan leaky_relu log "
              "log10 log1p log2 log_sigmoid mish neg reciprocal relu relu6 round rsqrt selu sgn sigmoid sign silu sin sinh softplus sqrt square tan tanh trunc").split():
    use(unary, lambda op, x: op(x), FAR, label="/far", tolerance=1e-5)
for binary in "atan2 floor_divide fmod.Tensor maximum minimum pow.Tensor_Tensor remainder.Tensor".split():
    use(binary, lambda op, x, y: op(x, y), FAR.repeat_interleave(12), FAR.repeat(12), label="/far", tolerance=1e-5)
for mode in (None, "floor", "trunc"):
    use("div.Tensor_mode", lambda op, x, y, mode=mode: op(x, y, rounding_mode=mode), FAR.repeat_interleave(12), FAR.repeat(12), label=f"/{mode}/far")
use("square", lambda op, x: op(x > 0), X, label="/bools")
use("sign", lambda op, x, y: (op(x > 0), op(y)), X, whole(3, 4), label="/bools")
use("exp", lambda op, x: op(x), whole(3, 4), label="/integers")
use("floor", lambda op, x: op(x), whole(3, 4), label="/integers")
for dropout in ("dropout", "feature_dropout"):
    use(dropout, lambda op, x: op(x, 0.5, False) + 1, X)
use("native_dropout", lambda op, x: op(x, 0.5, False), X)
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

for side in ("left", "right"):
    use(f"__{side[0]}shift__.Scalar", lambda op, x: op(x, 2), whole(3, 4))
    use(f"__{side[0]}shift__.Tensor", lambda op, x, y: op(x, y), whole(3, 4), whole(4, low=0))
    use(f"bitwise_{side}_shift.Tensor", lambda op, x, y: (op(x, y), op(x.to(torch.uint8), y.int()), op(x.int(), y)), whole(3, 4), whole(4, low=0))
    use(f"bitwise_{side}_shift.Tensor_Scalar", lambda op, x: (op(x, 1), op(x.int(), 40)), whole(3, 4))


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
use("atan2", lambda op, y, x: op(y, x), torch.tensor([1.0, -1, 0, -0.0, 0, -0.0, 2, -3, 0.5, float("inf")]), torch.tensor([0.0, 0, 1, -1, -1, 1, -2, -0.5, 3, -float("inf")]))
use("isfinite", lambda op, x: (op(x / 0), op(x)), X.round())
use("nan_to_num", lambda op, x: (op(x / 0), op(x / 0, 1.0, 2.0, 3.0)), X.round())
use("threshold", lambda op, x: op(x, 0.1, 20), X)
for bitwise in "and or xor".split():
    use(f"bitwise_{bitwise}.Scalar", lambda op, x: op(x, 3), whole(3, 4))
    use(f"__{bitwise}__.Scalar", lambda op, x: op(x, 3), whole(3, 4))
    use(f"__{bitwise}__.Tensor", lambda op, x, y: op(x > 0, y > 0), whole(3, 4), whole(4))
use("mul.Tensor", lambda op, x, y: op(x > 0, y > 0), X, reals(4), label="/bools")
use("add.Tensor", lambda op, x, y: op(x > 0, y > 0), X, reals(4), label="/bools")
