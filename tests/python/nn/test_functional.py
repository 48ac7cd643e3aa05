"""polyphase.nn.functional against torch: results on arrays, the same layers in a network, errors, and the signatures of the original."""

from __future__ import annotations

import inspect

import numpy as np
import polyphase
import polyphase.nn.functional as F
import pytest
import torch

T = torch.nn.functional


def data(*sizes, seed=0) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def in_network(function, *arrays, **settings):
    """The function on a network's inputs instead of arrays; other arguments as they are."""
    net = polyphase.Network()
    given = [net.add_input(f"x{i}", one.dtype, tuple(one.shape)) if isinstance(one, torch.Tensor) else one for i, one in enumerate(arrays)]
    made = function(*given, **settings)
    made = made if isinstance(made, tuple) else (made,)
    for i, one in enumerate(made):
        net.mark_output(one, f"y{i}")
    results = net.compile()(*[one for one in arrays if isinstance(one, torch.Tensor)])
    return results if isinstance(results, (list, tuple)) else [results]


def same(found, want, *, atol=1e-5, rtol=1e-5):
    found, want = torch.as_tensor(found), torch.as_tensor(want)
    assert found.shape == want.shape and found.dtype == want.dtype, (found.shape, found.dtype, want.shape, want.dtype)
    torch.testing.assert_close(found, want, atol=atol, rtol=rtol)


def check(function, want, *arrays, atol=1e-5, **settings):
    """At once and in a network."""
    at_once = function(*arrays, **settings)
    wanted = want if isinstance(want, (tuple, list)) else (want,)
    for one, right in zip(at_once if isinstance(at_once, tuple) else (at_once,), wanted, strict=True):
        same(one, right, atol=atol)
    for one, right in zip(in_network(function, *arrays, **settings), wanted, strict=True):
        same(one, right, atol=atol)


SIGNATURES = {
    "cast": "(input, dtype)",
    "clip": "(input, alpha, beta)",
    "view": "(input, shape, zero_is_placeholder=True)",
    "expand_dims": "(input, dim)",
    "gather": "(input, dim, indices)",
    "concat": "(inputs, dim=0)",
    "slice": "(input, starts, sizes)",
    "split": "(tensor, split_size_or_sections, dim=0)",
    "chunk": "(tensor, chunks, dim=0)",
    "flip": "(input, dims)",
    "expand": "(input, expand_shape)",
    "permute": "(input, dims)",
    "transpose": "(input, dim0, dim1)",
    "einsum": "(einsum_eq, inputs)",
    "softmax": "(input, dim=None)",
    "mean": "(input, dim, keepdim=False)",
    "max": "(input, dim, keepdim=False)",
    "argmax": "(input, dim, keepdim=False)",
    "where": "(condition, input, other)",
    "select": "(input, dim, index)",
    "index_select": "(input, dim, index)",
    "shape": "(input, dim=None)",
    "matmul": "(input, mat2, transa=False, transb=False)",
    "embedding": "(input, weight)",
    "interpolate": "(input, size=None, scale_factor=None, mode='nearest', align_corners=False, recompute_scale_factor=False, antialias=False)",
    "layer_norm": "(input, normalized_shape, weight=None, bias=None, eps=1e-05, use_diff_of_squares=True)",
    "rms_norm": "(input, normalized_shape, weight=None, eps=1e-06)",
    "group_norm": "(input, num_groups, weight=None, bias=None, eps=1e-05)",
    "silu": "(input)",
    "mish": "(input)",
    "conv2d": "(input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)",
    "conv_transpose2d": "(input, weight, bias=None, stride=(1, 1), padding=(0, 0), output_padding=(0, 0), dilation=(1, 1), groups=1)",
    "avg_pool2d": "(input, kernel_size, stride=None, padding=(0, 0), ceil_mode=False, count_include_pad=True)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_of_the_original(name):
    signature = inspect.signature(getattr(F, name))
    plain = signature.replace(parameters=[p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()], return_annotation=inspect.Signature.empty)
    assert str(plain) == SIGNATURES[name]


def test_every_function_says_what_it_does():
    for name in F.__all__:
        assert (getattr(F, name).__doc__ or "").strip(), name


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_convolutions(spatial, seed):
    random = np.random.default_rng(100 * spatial + seed)
    groups = int(random.choice([1, 1, 2, 3]))
    cin, cout = groups * int(random.integers(1, 5)), groups * int(random.integers(1, 5))
    kernel = [int(random.integers(1, 4)) for _ in range(spatial)]
    stride, dilation = ([int(random.integers(1, 4)) for _ in range(spatial)] for _ in range(2))
    padding = [int(random.integers(0, 3)) for _ in range(spatial)]
    sizes = [int(random.integers(7, 10)) for _ in range(spatial)]
    x = data(*([2] if seed % 3 else []), cin, *sizes, seed=seed)
    bias = data(cout, seed=3) if seed % 2 else None
    settings = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    w = data(cout, cin // groups, *kernel, seed=1)
    check(getattr(F, f"conv{spatial}d"), getattr(T, f"conv{spatial}d")(x, w, bias, **settings), x, w, bias, **settings, atol=1e-4)
    w = data(cin, cout // groups, *kernel, seed=2)
    padding = [min(p, d * (k - 1)) for p, d, k in zip(padding, dilation, kernel)]
    settings = dict(stride=stride, padding=padding, output_padding=[int(random.integers(0, max(s, d))) for s, d in zip(stride, dilation)], groups=groups, dilation=dilation)
    check(getattr(F, f"conv_transpose{spatial}d"), getattr(T, f"conv_transpose{spatial}d")(x, w, bias, **settings), x, w, bias, **settings, atol=1e-4)


def test_the_originals_own_case_with_dilation():
    """TensorRT-LLM 0.5 ignored the dilation of this very case, and its test expected that."""
    x, w = data(20, 16, 50, 100), data(16, 33, 3, 5)
    found = F.conv_transpose2d(x, w, stride=(2, 1), padding=(4, 2), dilation=(3, 1))
    assert found.shape == (20, 33, 97, 100)
    same(found, T.conv_transpose2d(x, w, stride=(2, 1), padding=(4, 2), dilation=(3, 1)), atol=1e-3)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("kernel, stride, padding", [(3, 2, 1), ((2, 3), None, (1, 0)), (4, 3, 2), (2, (3, 1), 0)])
def test_pools(kernel, stride, padding, ceil_mode, count_include_pad):
    for sizes in ((2, 3, 9, 10), (3, 7, 8)):
        x = data(*sizes)
        want = T.avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad)
        check(F.avg_pool2d, want, x, kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


@pytest.mark.parametrize("mode, spatial", [("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3)])
def test_interpolation(mode, spatial):
    x = data(2, 3, *range(5, 5 + spatial))
    sizes = [9, 4, 13][:spatial]
    check(F.interpolate, T.interpolate(x, size=sizes, mode=mode), x, size=sizes, mode=mode, atol=1e-4)
    check(F.interpolate, T.interpolate(x, scale_factor=1.7, mode=mode), x, scale_factor=1.7, mode=mode, atol=1e-4)
    check(F.interpolate, T.interpolate(x, scale_factor=1.7, mode=mode, recompute_scale_factor=True), x, scale_factor=1.7, mode=mode, recompute_scale_factor=True, atol=1e-4)
    if not mode.startswith("nearest"):
        check(F.interpolate, T.interpolate(x, size=sizes, mode=mode, align_corners=True), x, size=sizes, mode=mode, align_corners=True, atol=1e-4)
    if mode in ("bilinear", "bicubic"):
        check(F.interpolate, T.interpolate(x, size=[3, 4], mode=mode, antialias=True), x, size=[3, 4], mode=mode, antialias=True, atol=1e-4)


# ---------------------------------------------------------------- normalisations


def test_normalisations():
    x, w, b = data(4, 6, 5, 8), data(6, seed=1), data(6, seed=2)
    check(F.group_norm, T.group_norm(x, 3, w, b), x, 3, w, b)
    check(F.group_norm, T.group_norm(x, 2), x, 2)
    check(F.group_norm, T.group_norm(x[:, :, 0], 2, w), x[:, :, 0].contiguous(), 2, w)
    check(F.instance_norm, T.instance_norm(x, weight=w, bias=b), x, w, b)
    w, b = data(5, 8, seed=1), data(5, 8, seed=2)
    for flag in (True, False):
        check(F.layer_norm, T.layer_norm(x, (5, 8), w, b), x, (5, 8), w, b, use_diff_of_squares=flag)
    check(F.layer_norm, T.layer_norm(x, (8,)), x, 8)
    check(F.rms_norm, T.rms_norm(x, (8,), w[0], 1e-6), x, 8, w[0].contiguous())
    check(F.rms_norm, T.rms_norm(x, (8,), None, 1e-6), x, 8)


@pytest.mark.parametrize("flag", [True, False])
def test_layer_norm_far_from_zero(flag):
    """mean / std = 1e5: what E[x²] - E[x]² loses."""
    x = (data(16, 64).double() + 1e5).float()
    want = T.layer_norm(x.double(), (64,))
    found = torch.as_tensor(F.layer_norm(x, 64, use_diff_of_squares=flag)).double()
    assert (found - want).abs().max() <= 1e-5 * want.abs().max()


@pytest.mark.parametrize("sizes", [(2, 12, 33), (1, 12, 16, 50), (2, 36, 1500)])
def test_group_and_instance_norm_far_from_zero(sizes):
    x = (data(*sizes).double() + 1e5).float()
    for found, want in ((F.group_norm(x, 3), T.group_norm(x.double(), 3)), (F.instance_norm(x), T.instance_norm(x.double()))):
        assert (torch.as_tensor(found).double() - want).abs().max() <= 1e-5 * want.abs().max()
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 1), torch.nn.GroupNorm(3, 12)).eval()  # channels-last inside
    with torch.no_grad():
        net[0].bias += 1e4
        x = data(1, 3, 40, 41)
        want = net.double()(x.double())
        found = torch.as_tensor(polyphase.compile(net.float(), (x,))(x)).double()
    assert (found - want).abs().max() <= 2e-3, "the convolution rounds its result at 1e4 to 1e-3"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_normalisations_compute_in_fp32(dtype):
    x, w = (data(4, 6, 16) * 30).to(dtype), data(16, seed=1).to(dtype)
    wide = T.layer_norm(x.float(), (16,)).to(dtype)
    same(F.layer_norm(x, 16, w), wide * w, atol=2e-2, rtol=2e-2)
    rms = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(dtype)
    same(F.rms_norm(x, 16, w), rms * w, atol=2e-2, rtol=2e-2)
    g = data(6, seed=2).to(dtype)
    same(F.group_norm(x, 3, g), T.group_norm(x.float(), 3).to(dtype) * g[:, None], atol=2e-2, rtol=2e-2)


# ---------------------------------------------------------------- shapes and pieces


def test_shapes():
    x = data(2, 6, 4)
    check(F.view, x.reshape(12, 4), x, (-1, 4))
    check(F.view, x.reshape(2, 24), x, (0, 24))
    check(F.view, x.reshape(2, 3, 8), x, (0, -1, 8))
    empty = torch.zeros(0, 3)
    assert F.view(empty, (3, 0), zero_is_placeholder=False).shape == (3, 0)
    check(F.expand_dims, x[:, None], x, 1)
    check(F.expand_dims, x[None, :, :, :, None], x, (0, 4))
    check(F.expand_dims, x[..., None], x, -1)
    check(F.expand, data(1, 6, 1).expand(3, 6, 5), data(1, 6, 1), (3, -1, 5))
    check(F.expand, x.expand(3, 2, 6, 4), x, (3, -1, -1, -1))
    check(F.permute, x.permute(2, 0, 1), x, (-1, 0, 1))
    check(F.transpose, x.transpose(0, -1), x, 0, -1)
    check(F.flip, x.flip(0, 2), x, (0, -1))
    check(F.slice, x[1:2, 2:5, 0:4], x, (1, 2, 0), (1, 3, 4))
    check(F.split, x.split(2, 1), x, 2, dim=1)
    check(F.split, x.split([1, 3, 2], 1), x, [1, 3, 2], dim=1)
    check(F.chunk, x.chunk(3, 1), x, 3, dim=1)
    check(F.shape, torch.tensor([2, 6, 4]), x)
    check(F.shape, torch.tensor(4), x, -1)
    check(F.select, x.select(1, -2), x, 1, -2)
    check(F.select, x.select(1, 4), x, 1, torch.tensor([4]))
    check(F.index_select, x.index_select(2, torch.tensor([3, 0, 3])), x, 2, torch.tensor([3, 0, 3]))
    index = torch.tensor([[[1], [0]], [[5], [3]]])
    check(F.gather, x.gather(1, index), x, 1, index)
    assert torch.equal(torch.as_tensor(F.gather(x, 0, 1)), x[1:2, 0:1, 0:1])
    for pads, mode in (((1, 2), "constant"), ((1, -1, 2, 0), "constant"), ((2, 1, 1, 1), "reflect"), ((2, 3, 1, 0), "replicate"), ((1, 2, 3, 0), "circular")):
        y = data(2, 3, 5, 6)
        check(F.pad, T.pad(y, pads, mode), y, pads, mode)


def test_concat():
    x, y = torch.tensor([3, 4], dtype=torch.int32), torch.tensor(5, dtype=torch.int32)
    assert torch.as_tensor(F.concat([x, y, 7])).tolist() == [3, 4, 5, 7]
    a, b = data(2, 3), data(2, 1)
    same(F.concat([a, b], dim=-1), torch.cat([a, b], -1))
    net = polyphase.Network()
    h = net.add_input("x", "float32", (1, "C", "H"))
    net.mark_output(F.concat([F.shape(h, 1), 4, F.shape(h, 2)]), "sizes")
    assert net.compile()(data(1, 5, 7)).tolist() == [5, 4, 7]


def test_a_view_of_a_shape_that_a_run_tells():
    net = polyphase.Network()
    x = net.add_input("x", "float32", ("N",))
    s = net.add_input("s", "int64", (2,))
    net.mark_output(F.view(x, s), "y")
    engine = net.compile()
    values = data(12)
    assert torch.equal(torch.as_tensor(engine(values, torch.tensor([3, 4]))), values.view(3, 4))
    assert torch.equal(torch.as_tensor(engine(values, torch.tensor([2, 6]))), values.view(2, 6))
    assert torch.equal(torch.as_tensor(engine(values, torch.tensor([-1, 6]))), values.view(2, 6))
    assert torch.equal(torch.as_tensor(engine(values, torch.tensor([0, -1]))), values.view(12, 1))
    for wrong in ([-1, -1], [5, -1], [-2, -6]):
        with pytest.raises(polyphase.Error):
            engine(values, torch.tensor(wrong))
    empty = F.view(np.zeros((0, 3), np.float32), np.array([3, 0]), zero_is_placeholder=False)
    assert empty.shape == (3, 0) and F.view(np.zeros((2, 3), np.float32), np.array([0, -1], np.int32)).shape == (2, 3)
    with pytest.raises(polyphase.ArgumentError, match="Give a vector of integers, of known length"):
        F.view(values, np.array([1.0, 12.0], np.float32))


def test_arange():
    with polyphase.Network() as net:
        x = net.add_input("x", "float32", ("N", 3))
        net.mark_output(F.arange(2, x.size(0)), "a")
        net.mark_output(F.arange(0, 4, "float32"), "b")
    a, b = net.compile()(data(6, 3))
    assert a.tolist() == [2, 3, 4, 5] and b.tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------- arithmetic


def test_reductions_and_products():
    x, y = data(3, 4, 5), data(3, 5, 2, seed=1)
    check(F.softmax, x.softmax(-1), x)
    check(F.softmax, x.softmax(1), x, 1)
    check(F.mean, x.mean(1), x, 1)
    check(F.mean, x.mean((0, 2), keepdim=True), x, (0, -1), keepdim=True)
    check(F.max, x.amax(2), x, 2)
    check(F.argmax, x.argmax(1), x, 1)
    check(F.argmax, x.argmax(-1, keepdim=True), x, -1, keepdim=True)
    check(F.matmul, x @ y, x, y)
    check(F.matmul, x.transpose(1, 2) @ y.transpose(1, 2).transpose(1, 2)[:, :4], x, y[:, :4].contiguous(), transa=True)
    check(F.matmul, x @ y, x, y.transpose(1, 2).contiguous(), transb=True)
    w, b = data(7, 5), data(7, seed=3)
    check(F.linear, T.linear(x, w, b), x, w, b)
    indices = torch.tensor([[1, 0], [6, 6]])
    check(F.embedding, T.embedding(indices, w), indices, w)


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij->ji", [(3, 4)]), ("ij->", [(3, 4)]),
    ("i,j->ij", [(3,), (4,)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("abc,cd->dab", [(2, 3, 4), (4, 5)]), ("ij,ij->i", [(3, 4), (3, 4)]), ("ij,jk", [(3, 4), (4, 5)]),
    ("abc,b->ac", [(2, 3, 4), (3,)])])
def test_einsum(equation, shapes):
    xs = [data(*shape, seed=i) for i, shape in enumerate(shapes)]
    same(F.einsum(equation, xs), torch.einsum(equation, *xs))


def test_activations():
    x = data(200) * 10
    for name in ("mish", "silu", "relu", "sigmoid", "tanh"):
        check(getattr(F, name), getattr(torch, name, getattr(T, name, None))(x), x)
    for name in ("exp", "sin", "cos", "abs", "round"):
        check(getattr(F, name), getattr(torch, name)(x), x, atol=1e-4)
    check(F.sqrt, x.abs().sqrt(), x.abs())
    check(F.log, x.abs().log(), x.abs())
    check(F.gelu, T.gelu(x, approximate="tanh"), x)
    check(F.gelu, T.gelu(x), x, approximate="none")
    for beta, threshold in ((1, 20), (2, 5), (0.5, 20)):
        check(F.softplus, T.softplus(x, beta, threshold), x, beta, threshold)
    check(F.clip, x.clamp(-1, 2), x, -1, 2)
    y = data(200, seed=1)
    for name, want in {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "gt": x > y, "lt": x < y, "minimum": torch.minimum(x, y), "maximum": torch.maximum(x, y)}.items():
        check(getattr(F, name), want, x, y, atol=1e-3)
    check(F.pow, x.abs() ** y, x.abs(), y, atol=1e-2)
    check(F.where, torch.where(x > 0, x, y), x > 0, x, y)
    check(F.op_and, (x > 0) & (y > 0), x > 0, y > 0)
    check(F.op_or, (x > 0) | (y > 0), x > 0, y > 0)
    check(F.add, x + 2, x, 2)


def test_cast_to_int8_quantises():
    x = torch.tensor([1.5, 2.5, -2.5, 130.0, -129.0, 126.6, float("nan"), float("inf"), -float("inf"), 0.4])
    want = torch.tensor([2, 2, -2, 127, -127, 127, 0, 127, -127, 0], dtype=torch.int8)
    check(F.cast, want, x, "int8")
    same(F.cast(x[:6].half(), "int8"), want[:6])
    same(F.cast(torch.tensor([300, -300, 5], dtype=torch.int32), "int8"), torch.tensor([127, -127, 5], dtype=torch.int8))
    for unsigned in (np.uint8, np.uint16, np.uint32, np.uint64):
        assert F.cast(np.array([0, 5, 127, 128, np.iinfo(unsigned).max], unsigned), "int8").tolist() == [0, 5, 127, 127, 127]
    assert F.cast(np.array([0.5 + 1e-12, 1.5 - 1e-12, 1e300, -1e300]), "int8").tolist() == [1, 1, 127, -127]  # rounded once
    check(F.cast, want.float(), want, "float32")
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.bool):
        same(F.cast(torch.tensor([0.0, 1.0, -3.0]), dtype), torch.tensor([0.0, 1.0, -3.0]).to(dtype))


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("call, message", [
    (lambda x: F.cast(x, "float64"), "dtype is 'float64'. cast takes float32, float16, bfloat16, bool, int32, int8."),
    (lambda x: F.view(x, (-1, -1)), "leaves more than one size open"),
    (lambda x: F.view(x, (2, 3, 4, 0)), "copies the size of axis 3"),
    (lambda x: F.split(x, 4, dim=1), "split size 4 does not divide axis 1"),
    (lambda x: F.split(x, [1, 2], dim=1), "expects split_sizes to sum exactly to 6"),
    (lambda x: F.chunk(x, 4, dim=1), "4 chunks do not divide axis 1"),
    (lambda x: F.conv_transpose1d(x, data(6, 2, 3), stride=2, output_padding=2), "output padding must be smaller than either stride or dilation"),
    (lambda x: F.conv2d(x[None, None], data(2, 1, 3, 3)), "Expected 3D \\(unbatched\\) or 4D \\(batched\\) input to conv2d"),
    (lambda x: F.avg_pool2d(x, 2, padding=2), "pad should be at most half"),
    (lambda x: F.avg_pool2d(x, 0), "stride should not be zero"),
    (lambda x: F.avg_pool2d(x, 2, (1, 0)), "stride should not be zero"),
    (lambda x: F.pad(x, (4, 0), "reflect"), "got: padding \\(4, 0\\) at dimension 2 of input \\[2, 6, 4\\]"),
    (lambda x: F.pad(x, (0, 5), "circular"), "wrapping around more than once"),
    (lambda x: F.group_norm(x, 4), "divisible by num_groups"),
    (lambda x: F.layer_norm(x, 5), "Given normalized_shape=\\[5\\], expected input with shape \\[\\*, 5\\], but got input of size\\[2, 6, 4\\]"),
    (lambda x: F.interpolate(x), "either size or scale_factor should be defined"),
    (lambda x: F.interpolate(x, size=3, mode="bilinear"), "Got 3D input, but bilinear mode needs 4D input"),
    (lambda x: F.gather(x, 0, torch.tensor([0])), "same number of dimensions"),
    (lambda x: F.transpose(x, 0, 3), "dim1 is 3, but tensor .* has rank 3"),
    (lambda x: F.einsum("ijj->i", [x]), "Words are letters, each once"),
    (lambda x: F.einsum("ij->i", [x]), "has 2 letters, but its operand has rank 3"),
    (lambda x: F.conv1d(x, data(2, 6, 3), stride=(1, 2)), "stride has 2 entries for 1 spatial axes"),
], ids=range(22))
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(data(2, 6, 4))


def test_a_function_needs_tensors_or_arrays():
    with pytest.raises(polyphase.ArgumentError, match="neither tensors nor arrays"):
        F.arange(0, 3)
