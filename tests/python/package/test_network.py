"""Networks written layer by layer: against PyTorch on random geometries of every rank, whole networks, errors, sizes, types, bodies."""

from __future__ import annotations

import random

import numpy as np
import polyphase
import pytest
import torch
from polyphase import _native
from torch.nn import functional as F

CONVOLUTIONS = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d), 3: (F.conv3d, F.conv_transpose3d)}


def whole(shape, seed=0) -> torch.Tensor:
    """Small whole numbers: their sums are exact in float32, whoever adds them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, tuple(shape), generator=generator).float()


def outputs(net: polyphase.Network, *arrays, **options):
    return net.compile(**options)(*arrays)


def refused(function, *args, **kwargs) -> str:
    with pytest.raises(polyphase.Error) as error:
        function(*args, **kwargs)
    return str(error.value)


# ---------------------------------------------------------------- geometries

def geometry(seed: int, transposed: bool):
    """A drawn convolution: (rank, shapes, PyTorch's arguments)."""
    draw = random.Random(seed)
    rank = draw.choice((1, 2, 3))
    groups = draw.choice((1, 1, 2, 3))
    channels, filters = groups * draw.randint(1, 3), groups * draw.randint(1, 3)
    per_axis = lambda low, high: [draw.randint(low, high) for _ in range(rank)]  # noqa: E731
    settings = {"stride": per_axis(1, 3), "dilation": per_axis(1, 3), "padding": per_axis(0, 2), "groups": groups}
    kernel = per_axis(1, 4)
    if transposed:
        settings["output_padding"] = [draw.randrange(max(s, d)) for s, d in zip(settings["stride"], settings["dilation"])]
    batch = draw.choice(((), (1,), (2,)))
    sizes = per_axis(4, 9) if rank < 3 else per_axis(3, 6)
    weight = (channels, filters // groups, *kernel) if transposed else (filters, channels // groups, *kernel)
    return rank, (*batch, channels, *sizes), weight, filters, settings, draw.random() < 0.5


@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "deconv"])
@pytest.mark.parametrize("seed", range(60))
def test_convolutions_are_pytorchs(seed, transposed):
    rank, shape, weight_shape, filters, settings, has_bias = geometry(seed, transposed)
    x, weight, bias = whole(shape, seed), whole(weight_shape, seed + 1), whole((filters,), seed + 2) if has_bias else None
    function = CONVOLUTIONS[rank][transposed]
    try:
        expected = function(x, weight, bias, **settings)
    except RuntimeError:
        expected = None  # nothing comes out: both refuse
    open_sizes = random.Random(seed).random() < 0.5
    net = polyphase.Network()
    shown = [f"s{i}" if open_sizes and i >= len(shape) - rank else size for i, size in enumerate(shape)]
    given = net.add_input("x", "float32", shown)
    settings["pre_padding"] = settings.pop("padding")
    add = net.add_deconvolution_nd if transposed else net.add_convolution_nd
    if expected is None:
        if not open_sizes:
            assert "node 'layer'" in refused(add, given, weight, bias, **settings, name="layer")
        return
    y = add(given, weight, bias, **settings, name="layer")
    net.mark_output(y, "y")
    found = outputs(net, x)
    assert torch.equal(found, expected)
    if not open_sizes:
        assert y.shape == tuple(expected.shape)


@pytest.mark.parametrize("seed", range(40))
def test_output_size_is_pytorchs(seed):
    rank, shape, weight_shape, filters, settings, _ = geometry(1000 + seed, True)
    output_padding = [min(p, s - 1) for p, s in zip(settings.pop("output_padding"), settings["stride"])]
    x, weight = whole(shape, seed), whole(weight_shape, seed + 1)
    reach = [(i - 1) * s + d * (k - 1) for i, s, d, k in zip(shape[-rank:], settings["stride"], settings["dilation"], weight.shape[2:])]
    settings["padding"] = [min(p, all_of_it // 2) for p, all_of_it in zip(settings["padding"], reach)]  # something is to come out
    module = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[rank - 1](
        weight.shape[0], filters, weight.shape[2:], bias=False, **settings)
    module.weight.data = weight
    with torch.no_grad():
        least = [(i - 1) * s - 2 * p + d * (k - 1) + 1 for i, s, p, d, k in
                 zip(shape[-rank:], settings["stride"], settings["padding"], settings["dilation"], weight.shape[2:])]
        size = [a + b for a, b in zip(least, output_padding)]
        expected = module(x, output_size=size)
    settings["pre_padding"] = settings.pop("padding")
    net = polyphase.Network()
    given = net.add_input("x", "float32", shape)
    like = net.add_input("like", "float32", [f"o{i}" for i in range(rank)])
    net.mark_output(net.add_deconvolution_nd(given, weight, output_size=size, **settings), "fixed")
    net.mark_output(net.add_deconvolution_nd(given, weight, output_size=like.shape, **settings), "open")
    fixed, opened = outputs(net, x, torch.zeros(size))
    assert torch.equal(fixed, expected) and torch.equal(opened, expected)
    too_large = tuple(a + s for a, s in zip(least, settings["stride"]))
    with pytest.raises(ValueError) as theirs, torch.no_grad():
        module(x, output_size=too_large)
    said = str(theirs.value)
    if len(shape) == rank + 1:  # there PyTorch leaves out a size of the input's
        said = said.partition(" (for an input")[0]
    assert said in refused(net.add_deconvolution_nd, given, weight, output_size=too_large, **settings)


@pytest.mark.parametrize("seed", range(20))
def test_paddings_of_any_sign(seed):
    """Cut off or grown by hand from what PyTorch gives without any."""
    draw = random.Random(seed)
    rank = draw.choice((1, 2, 3))
    x, weight = whole((1, 2, *[5] * rank), seed), whole((2, 3, *[3] * rank), seed + 1)
    bias = whole((3,), seed + 2)
    pre, post = ([draw.randint(-3, 3) for _ in range(rank)] for _ in range(2))
    full = CONVOLUTIONS[rank][1](x, weight, None, stride=2)
    crop = [-amount for a, b in zip(reversed(pre), reversed(post)) for amount in (a, b)]
    expected = F.pad(full, crop) + bias.reshape(1, 3, *[1] * rank)
    net = polyphase.Network()
    given = net.add_input("x", "float32", x.shape)
    net.mark_output(net.add_deconvolution_nd(given, weight, bias, stride=2, pre_padding=pre, post_padding=post), "y")
    forward = net.add_convolution_nd(given, weight.transpose(0, 1).contiguous(), bias, stride=2, pre_padding=[2] * rank, post_padding=[1] * rank)
    net.mark_output(forward, "forward")
    y, again = outputs(net, x)
    assert torch.equal(y, expected)
    padded = F.pad(x, [2, 1] * rank)
    assert torch.equal(again, CONVOLUTIONS[rank][0](padded, weight.transpose(0, 1), bias, stride=2))


@pytest.mark.parametrize("mode", ["same_upper", "same_lower"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_is_onnxs(mode, stride):
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    x, weight = whole((1, 2, 7, 8)), whole((2, 2, 3, 4), 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], auto_pad=mode.upper(), strides=[stride, stride]),
             helper.make_node("ConvTranspose", ["x", "w"], ["b"], auto_pad=mode.upper(), strides=[stride, stride])]
    graph = helper.make_graph(nodes, "same", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 7, 8])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"], [numpy_helper.from_array(weight.numpy(), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x.numpy()})
    net = polyphase.Network()
    given = net.add_input("x", "float32", (1, 2, "H", "W"))
    net.mark_output(net.add_convolution_nd(given, weight, stride=stride, padding_mode=mode), "a")
    net.mark_output(net.add_deconvolution_nd(given, weight, stride=stride, padding_mode=mode), "b")
    for found, wanted in zip(outputs(net, x.numpy()), expected):
        np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- whole networks

class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.down = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.deep = torch.nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.up = torch.nn.ConvTranspose2d(32, 16, 3, stride=2, padding=1)
        self.top = torch.nn.ConvTranspose2d(32, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.GroupNorm(4, 16)
        self.leave = torch.nn.Conv2d(16, 1, 1)

    def forward(self, x):
        a = torch.relu(self.enter(x))
        b = F.silu(self.norm(self.down(a)))
        c = torch.relu(self.deep(b))
        d = torch.cat([self.up(c, output_size=b.shape[2:]), b], 1)
        e = torch.cat([self.top(d, output_size=a.shape[2:]), a], 1)
        return torch.sigmoid(self.leave(e))


def test_a_unet_of_any_size():
    torch.manual_seed(1)
    module = UNet().eval()
    weights = {name: value.detach() for name, value in module.named_parameters()}
    with polyphase.Network("unet") as net:
        w = {name: net.add_constant(value, name) for name, value in weights.items()}
        x = net.add_input("x", "float32", ("N", 3, "H", "W"))
        a = net.relu(net.add_convolution_nd(x, w["enter.weight"], w["enter.bias"], pre_padding=1))
        b = net.silu(net.group_norm(net.add_convolution_nd(a, w["down.weight"], w["down.bias"], stride=2, pre_padding=1), w["norm.weight"], w["norm.bias"], groups=4))
        c = net.relu(net.add_convolution_nd(b, w["deep.weight"], w["deep.bias"], stride=2, pre_padding=1))
        d = net.concat([net.add_deconvolution_nd(c, w["up.weight"], w["up.bias"], stride=2, pre_padding=1, output_size=b.shape), b], axis=1)
        e = net.concat([net.add_deconvolution_nd(d, w["top.weight"], w["top.bias"], stride=2, pre_padding=1, output_size=a.shape), a], axis=1)
        assert str(e.shape[2]) == "H" and str(e.shape[3]) == "W"
        net.mark_output(net.sigmoid(net.add_convolution_nd(e, w["leave.weight"], w["leave.bias"])), "y")
    engine = net.compile(refittable=True)
    for sizes in ((1, 3, 16, 16), (2, 3, 13, 30)):
        image = torch.randn(sizes)
        with torch.no_grad():
            assert torch.allclose(engine(image), module(image), atol=1e-5)
    other = UNet().eval()
    engine.refit(other.state_dict())
    image = torch.randn(1, 3, 17, 9)
    with torch.no_grad():
        assert torch.allclose(engine(image), other(image), atol=1e-5)


def test_a_dcgan():
    torch.manual_seed(2)
    layers = []
    sizes = [16, 32, 16, 8]
    for i, (cin, cout) in enumerate(zip(sizes, sizes[1:])):
        layers += [torch.nn.ConvTranspose2d(cin, cout, 4, 1 if i == 0 else 2, 0 if i == 0 else 1, bias=False), torch.nn.BatchNorm2d(cout), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), torch.nn.Tanh())
    for one in module:
        if isinstance(one, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(one.running_mean), torch.nn.init.uniform_(one.running_var, 0.5, 2)
    module.eval()
    state = module.state_dict()
    net = polyphase.Network("dcgan")
    x = net.add_input("z", "float32", ("N", 16, 1, 1))
    for i in range(0, 12, 3):
        x = net.add_deconvolution_nd(x, state[f"{i}.weight"], stride=1 if i == 0 else 2, pre_padding=0 if i == 0 else 1, name=f"up{i}")
        if i < 9:
            x = net.relu(net.batch_norm(x, *(state[f"{i + 1}.{name}"] for name in ("weight", "bias", "running_mean", "running_var"))))
    net.mark_output(net.tanh(x), "image")
    z = torch.randn(3, 16, 1, 1)
    with torch.no_grad():
        assert torch.allclose(outputs(net, z), module(z), atol=1e-5)


# ---------------------------------------------------------------- methods

def test_every_operator_has_a_method_with_its_words():
    for op in _native.operators():
        if op["bodies"] or op["name"] == "constant":
            continue
        method = getattr(polyphase.Network, op["name"] + ("_" if op["name"] in ("and", "or", "not", "xor") else ""))
        assert op["doc"].split("\n")[0] in method.__doc__
        for part in [*op["operands"], *op["attributes"]]:
            assert f"{part['name']}: " in method.__doc__


def test_layers_of_several_results_and_no_operands():
    net = polyphase.Network()
    x = net.add_input("x", "float32", (2, 5))
    values, indices = net.top_k(x, axis=1, k=2)
    assert (values.dtype, indices.dtype, values.shape) == ("float32", "int64", (2, 2))
    noise = net.random(shape=[2, 5], key=7)
    net.mark_output(net.concat([values, noise], axis=1), "y")
    net.mark_output(indices, "i")
    y, i = outputs(net, np.array([[1, 5, 2, 4, 3], [9, 0, 0, 8, 0]], np.float32))
    np.testing.assert_array_equal(y[:, :2], [[5, 4], [9, 8]])
    np.testing.assert_array_equal(i, [[1, 3], [0, 3]])


@pytest.mark.parametrize("expression", [
    "x + y", "x - 2", "3 - x", "x * y / 2", "x / y", "2 / y", "x @ y.T if torch.is_tensor(x) else x @ transposed(y)", "-x", "abs(x)", "x ** 2", "x % 3",
    "x < y", "x >= 1", "x == y", "x != y", "(x < 1) & (y > 0)", "~(x < y) | (y > 2)", "n / 2", "n // 1 if torch.is_tensor(n) else n", "n + 0.5", "n & 3", "x[0]", "x[:, 1]", "x[..., -1:]",
    "x[1, ::2]", "x[None, :, 1:3]", "x[-1, None]", "x.view(-1)", "x.view(4, -1)", "x.mean()", "x.mean(-1)"])
def test_operators_are_pytorchs(expression):
    arrays = {"x": whole((2, 6)), "y": whole((2, 6), 5) + 5, "n": torch.arange(-3, 3, dtype=torch.int32)}
    expected = eval(expression, {"torch": torch, **arrays})
    net = polyphase.Network()
    tensors = {name: net.add_input(name, array.dtype, array.shape) for name, array in arrays.items()}
    tensors["transposed"] = lambda value: net.transpose(value, order=[1, 0])
    result = eval(expression, {"torch": torch, **tensors})
    net.mark_output(result if result.name not in arrays else net.identity(result), "result")
    found = outputs(net, *arrays.values())
    assert found.dtype == expected.dtype and torch.equal(found, expected)
    assert result.shape == tuple(expected.shape)


def test_a_tensor_says_what_it_is():
    net = polyphase.Network()
    x = net.add_input("x", "bfloat16", (1, "C", "2*H"))
    assert (x.name, x.dtype, x.ndim, x.rank, x.size(0), str(x.size(-1))) == ("x", "bfloat16", 3, 3, 1, "2*H")
    assert x.shape == (1, polyphase.Size("C"), polyphase.Size("2*H")) and x.size() == x.shape
    assert repr(x) == "Tensor('x', bfloat16, [1, Size('C'), Size('2*H')])"
    assert x.set_name("image").name == "image"
    assert str(net.reshape(x, shape=[x.size(1) * x.size(2) // 2 + 0 - 0]).shape[0]) == "C*H"
    assert refused(bool, x) == "tensor 'image' has no value while the network is written. Choose with add_if or where."
    assert refused(x.size, 3) == "tensor 'image' has no axis 3; its rank is 3. Axes count from 0, or from the end: -1 is the last."


# ---------------------------------------------------------------- types

@pytest.mark.parametrize("first", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool"])
def test_promotion_is_pytorchs(first):
    net = polyphase.Network()
    for i, second in enumerate(("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")):
        for j, (a, b) in enumerate((((2,), (2,)), ((2,), ()), ((), (2,)), ((), ()))):
            expected = torch.result_type(torch.zeros(a, dtype=getattr(torch, first)), torch.zeros(b, dtype=getattr(torch, second)))
            if expected == torch.bool:
                continue  # PyTorch adds bools, the operator does not
            made = net.add(net.add_input(f"x{i}{j}", first, a), net.add_input(f"y{i}{j}", second, b))
            assert f"torch.{made.dtype}" == str(expected), (first, second, a, b)
    for number in (2, 0.5):
        expected = torch.result_type(torch.zeros(2, dtype=getattr(torch, first)), number)
        if first != "bool" or not isinstance(number, bool):
            assert f"torch.{net.add(net.add_input(f'n{number}', first, (2,)), number).dtype}" == str(expected)


def test_precision_scopes_name_their_casts():
    with polyphase.Network() as net:
        x = net.add_input("x", "float32", (2, 4))
        w = net.add_constant(whole((4, 4)), "w")
        with polyphase.precision("bfloat16"):
            low = net.relu(net.matmul(x, w, name="low"))
            with polyphase.precision(torch.float32):
                inner = net.softmax(low, axis=1, name="exact")
        assert (low.dtype, inner.dtype, (low + x).dtype) == ("bfloat16", "float32", "float32")
        net.mark_output(low, "low")
    for cast in ("low/cast_a", "low/cast_b", "exact/cast_x"):
        assert f'"{cast}" = cast' in net.text()
    values = whole((2, 4), 3)
    assert torch.equal(outputs(net, values), torch.relu(values.bfloat16() @ whole((4, 4)).bfloat16()))
    assert refused(polyphase.precision("bfloat16").__enter__) == "a precision scope is opened outside of a network. Open it inside of `with Network() as net:`."


def test_strongly_typed_networks_cast_nothing():
    net = polyphase.Network(strongly_typed=True)
    x, half = net.add_input("x", "float32", (2,)), net.add_input("half", "float16", (2,))
    assert refused(net.add, x, half, name="sum") == (
        "node 'sum': operand 'x' is f32[2] and operand 'y' is f16[2]: operator add takes one dtype, and a strongly typed network casts nothing by itself. "
        "Add a layer `cast` for one of them, or build the network without strongly_typed.")
    assert net.add(x, net.cast(half, to="float32")).dtype == "float32" and (half * 2).dtype == "float16"
    assert "strongly typed" in refused(net.precision("bfloat16").__enter__)


# ---------------------------------------------------------------- bodies

def test_branches_and_loops():
    net = polyphase.Network()
    x, flag, count = net.add_input("x", "float32", ("n",)), net.add_input("flag", "bool", ()), net.add_input("count", "int64", ())
    chosen = net.add_if(flag, lambda: x * 2, lambda: x - 1)

    def body(iteration, total):
        after = total + net.cast(iteration, to="float32")
        return None, [after], [after.mean()]

    total, means = net.add_loop(body, [chosen], trip_count=count)
    net.mark_output(total, "total")
    net.mark_output(means, "means")
    engine = net.compile()
    for yes, trips in ((True, 3), (False, 0)):
        found, rows = engine(np.array([1, 2], np.float32), np.array(yes), np.array(trips))
        start = np.array([2, 4] if yes else [0, 1], np.float32)
        np.testing.assert_array_equal(found, start + sum(range(trips)))
        np.testing.assert_array_equal(rows, [start.mean() + sum(range(i + 1)) for i in range(trips)])


def test_what_a_body_raises_comes_through():
    net = polyphase.Network()
    flag = net.add_input("flag", "bool", ())

    def fails():
        net.relu(net.add_constant([1.0]), name="inside")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        net.add_if(flag, fails, fails)
    with pytest.raises(polyphase.Error, match="returned a int"):
        net.add_loop(lambda iteration: 3, [], trip_count=2)
    made = net.add_if(flag, lambda: net.relu(net.add_constant([1.0]), name="inside"), lambda: net.add_constant([2.0]))
    net.mark_output(made, "y")
    assert outputs(net, np.array(False)).tolist() == [2.0]


# ---------------------------------------------------------------- errors

def test_errors_come_from_their_call():
    net, other = polyphase.Network(), polyphase.Network("other")
    x = net.add_input("x", "float32", (1, 2, 4))
    with pytest.raises(polyphase.Error) as error:
        net.add_deconvolution_nd(x, whole((3, 1, 3)), name="up1")
    assert (error.value.node, error.value.code) == ("up1", "invalid_model")
    assert "expected input[1, 2, 4] to have 3 channels, but got 2 channels instead" in str(error.value)
    assert refused(other.relu, x, name="act") == (
        "node 'act': the operand is tensor 'x' of another network, 'network'. Use tensors that add_input, add_constant and layers of this network gave.")
    assert refused(net.relu, "x", name="act") == "an operand of layer 'act' is a str. Give a tensor, a number or an array."
    assert refused(net.softmax, x, dim=1, name="soft") == "layer 'soft' of operator softmax has no setting 'dim'. It has: axis."
    assert refused(net.softmax, x, axis="last", name="soft") == (
        "node 'soft': attribute 'axis' of operator softmax is a word; expected an integer. docs/operators.md lists the attributes of each operator.")
    assert refused(net.softmax, x, axis=2**70, name="soft") == "attribute 'axis' does not fit into 64 bits. Give a smaller integer."
    assert refused(net.concat, x, axis=0, name="joined") == "operand 'x' of layer 'joined' is a Tensor. Give a list of tensors."
    assert refused(net.add, x, x, x, name="sum") == "layer 'sum' of operator add is given an operand twice, or too many. It takes: x, y."
    assert refused(net.mark_output, 3) == "the output is a int. Give a Tensor that the network gave."
    assert refused(net.compile) == "the network has no output. Mark the tensors that it gives: mark_output."
    assert refused(net.add_input, "y", "float31", (1,)) == "there is no dtype 'float31'. Use NumPy's names: float32, bfloat16, int64, bool."
    assert refused(net.add_input, "y", "float32", (1.5,)) == "an entry of the shape of input 'y' is 1.5. Sizes are integers, names such as 'H', or sizes of tensors."
    assert refused(net.add_convolution_nd, x, whole((1, 2, 3)), padding_mode="same") == (
        "padding_mode is 'same'. It is 'explicit', 'valid', 'same_upper' or 'same_lower'.")
    assert refused(net.add_constant, "weights") == "constant '' is a str, which is no array. Give an array of NumPy or PyTorch, as of numpy.asarray(...)."
    assert refused(lambda: x[0, 0, 4]) == "tensor 'x' is indexed at 4 of axis 2, which has 4 places. Places count from 0, or from the end: -1 is the last."
    assert refused(lambda: x[0, 0, 0, 0]).startswith("tensor 'x' of rank 3 is indexed with 4 entries")
    assert refused(x.view, -1, -1).startswith("the shape [-1, -1] leaves more than one size open.")
    assert refused(net.relu, "x") == "an operand of a layer is a str. Give a tensor, a number or an array."
    assert refused(net.relu, x, alpha=1) == "a layer of operator relu has no setting 'alpha'. It has: none."
    assert refused(net.add_input, "y", "float32", 5) == "the shape of input 'y' is a int. Give a list of sizes: (1, 3, 'H', 'W')."
    assert refused(net.add_input, "y", "float32", "NCHW").startswith("the shape of input 'y' is a str.")
    for call in (lambda: net.relu(x, name=5), lambda: net.add_input(5, "float32", ()), lambda: net.add_constant([1.0], 5), lambda: net.mark_output(x, 5),
                 lambda: x.set_name(5), lambda: net.add_convolution_nd(x, whole((1, 2, 3)), name=5)):
        assert refused(call) == "a name is a int. Give a str."
    assert refused(x.size, 3).startswith("tensor 'x' has no axis 3") and refused(x.size, "H").startswith("dim is 'H'")


def test_equal_sizes_are_equal():
    net = polyphase.Network()
    x = net.add_input("x", "float32", (1, 3, "H", "W"))
    up = net.add_deconvolution_nd(x, whole((3, 4, 3, 3)), stride=2)
    h = x.size(2)
    assert up.size(2) == h * 2 + 1 == 1 + 2 * h == h + h + 1 != h * 2 and hash(up.size(2)) == hash(h + h + 1)
    assert [str(one) for one in (h * 2 + 1, h - 1, 3 - h, (h + 1) // 2, 12 // h)] == ["2*H + 1", "H - 1", "-H + 3", "(H + 1)//2", "12//H"]
    assert h - h == 0 and (h * 4) // (h * 2 - h) == (h * 4) // h and h * 0 + 7 == 7
    for wrong in (lambda: h + 1.5, lambda: h * None):
        with pytest.raises(TypeError):
            wrong()


def test_methods_of_a_tensor_are_the_functions():
    net = polyphase.Network()
    x = net.add_input("x", "float32", ("N", 3, 4))
    assert x.view(0, 12).shape == x.view([0, -1]).shape == x.view(0, -1).shape == (x.size(0), 12)
    assert x.mean(dim=1).shape == (x.size(0), 4) and x.mean(dim=(-1, 0), keepdim=True).shape == (1, 3, 1) and x.size(dim=-1) == 4
    assert refused(x.view, 0, 0, 0, 0).startswith("the shape [0, 0, 0, 0] copies the size of axis 3")
    empty = net.add_input("empty", "float32", (0, 3))
    assert empty.view(3, 0, zero_is_placeholder=False).shape == (3, 0)


def test_the_operators_of_convolution_take_layouts():
    net = polyphase.Network()
    x, w = net.add_input("x", "float32", (1, 5, 6, 3)), whole((3, 4, 3, 3))
    up = net.conv_transpose(x, w, stride=[2, 2], pre=[1, 1], post=[0, 0], data_layout="NHWC", out_layout="NCHW", name="up")
    down = net.conv(x, whole((3, 3, 3, 8)), stride=[2, 2], data_layout="NHWC", kernel_layout="HWIO", name="down")
    assert up.shape == (1, 4, 10, 12) and down.shape == (1, 2, 2, 8)
    assert refused(net.conv, x, w, data_layout="NHWC", products="bf16", name="c").startswith("layer 'c' of operator conv has no setting 'products' beside layouts.")
    assert refused(net.conv_transpose, x, w, data_layout="NHW", name="c").startswith("node 'c': data_layout is 'NHW', which is no layout of the axes NCHW.")
    net.mark_output(up, "up")
    given = np.random.default_rng(0).integers(-3, 4, (1, 5, 6, 3)).astype(np.float32)
    theirs = torch.nn.functional.conv_transpose2d(torch.from_numpy(given).permute(0, 3, 1, 2), torch.as_tensor(w), stride=2, padding=1, output_padding=1)
    np.testing.assert_array_equal(net.compile()(given), theirs.numpy())


def test_constants_are_read_when_the_network_is_compiled():
    """And never after: the engine has what it needs of them."""
    table = np.arange(4, dtype=np.float32)
    net = polyphase.Network()
    net.mark_output(net.add_input("x", "float32", (4,)) + net.add_constant(table, "table"), "y")
    table[3] = 30
    engine = net.compile()
    table[:] = -1
    assert engine(np.zeros(4, np.float32)).tolist() == [0, 1, 2, 30]


def test_sizes_are_given_with_compile(tmp_path):
    net = polyphase.Network()
    x = net.add_input("x", "float32", (1, "H", "2*H"))
    net.mark_output(net.reduce_sum(x, axes=[2], keep=False), "y")
    assert net.compile(dims={"H": 3}).outputs[0].shape == (1, 3)
    assert net.compile(shapes={"x": (1, 5, 10)}).outputs[0].shape == (1, 5)
    assert "where the network has 2*H, which is 10" in refused(net.compile, shapes={"x": (1, 5, 11)})
    file = tmp_path / "net.ppe"
    net.mark_output(net.matmul(x, net.add_constant(np.ones((16, 3), np.float32))) + np.arange(3, dtype=np.float32), "z")
    written = net.compile(engine_file=file, dims={"H": (8, 8)})
    for engine in (written, polyphase.load(file)):
        y, z = engine(np.ones((1, 8, 16), np.float32))
        assert y.tolist() == [[16] * 8] and z.tolist() == [[[16, 17, 18]] * 8]
