"""Images lie as their callers and models have them, and nothing is transposed that need not be."""

from __future__ import annotations

import itertools
import json
import pathlib
import random

import nhwc_models
import numpy as np
import onnx
import polyphase
import pytest
import torch

from conftest import wants_full
from export import EXPORTERS, export_onnx
from networks import FAMILIES

LAYERS = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)


@pytest.mark.parametrize(("kernel", "sizes"), [(12, (700,)), (4, (31, 44)), (4, (20, 18, 25))])
def test_depthwise_layer_turns_no_image(kernel: int, sizes: tuple[int, ...]) -> None:
    """Vectors along the pixels pay only where both images lie channels-first: neither alone is worth it."""
    layer = LAYERS[len(sizes) - 1](54, 54, kernel, stride=2, groups=54).eval()
    engine = polyphase.compile(layer, (torch.randn(1, 54, *sizes),), target="avx2")
    assert [step["rows"] for step in engine.info()["steps"]] == [["conv_transpose_pixels"]]


@pytest.mark.parametrize("target", ["scalar", "avx2", "native"])
@pytest.mark.parametrize(("mode", "sizes"), [("nearest", (9,)), ("bilinear", (7, 5)), ("bilinear", (130, 3)), ("bicubic", (6, 11)), ("trilinear", (3, 4, 5))])
def test_resized_tokens_become_an_image(mode: str, sizes: tuple[int, ...], target: str) -> None:
    """Tokens of a transformer, whose channels lie beside each other, resized into a channels-first image: no step but the resize."""

    class Tokens(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            image = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], *sizes)
            corners = None if mode == "nearest" else False
            return torch.nn.functional.interpolate(image, scale_factor=2.0, mode=mode, align_corners=corners)

    x = torch.randn(2, int(np.prod(sizes)), 37)
    engine = polyphase.compile(Tokens(), (x,), target=target)
    assert operations(engine) == ["resize"]
    found = next(iter(engine.session().run([x.numpy()]).values()))
    np.testing.assert_allclose(found, Tokens()(x).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["scalar", "avx2", "native"])
@pytest.mark.parametrize("channels", [3, 8, 20, 64])
@pytest.mark.parametrize("ending", ["none", "relu", "sum", "alpha"])
def test_norms_between_convolutions(channels: int, ending: str, target: str) -> None:
    """Channels-last norms of few and many channels, with what ends them by lines or, where it reads one number for each channel, by pixels."""

    class Norms(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Conv2d(3, channels, 3, padding=1), torch.nn.Conv2d(channels, 5, 3, padding=1)
            self.norm = torch.nn.InstanceNorm2d(channels, affine=True)
            self.alpha = torch.nn.PReLU(channels)
            torch.nn.init.normal_(self.norm.weight)
            torch.nn.init.normal_(self.alpha.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x)
            z = self.norm(y)
            return self.b({"none": z, "relu": torch.relu(z), "sum": torch.relu(z + y), "alpha": self.alpha(z)}[ending])

    net, x = Norms().eval(), torch.randn(2, 3, 19, 83)
    engine = polyphase.compile(net, (x,), target=target)
    found = next(iter(engine.session(threads=2).run([x.numpy()]).values()))
    np.testing.assert_allclose(found, net.double()(x.double()).detach().numpy(), rtol=1e-4, atol=1e-4)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "family" in metafunc.fixturenames:
        names = list(FAMILIES)
        if not wants_full(metafunc.config):
            names = random.Random(metafunc.config.getoption("--slice-seed")).sample(names, 3)
        metafunc.parametrize("family", names)
    if "form" in metafunc.fixturenames:
        forms = list(itertools.product(FAMILIES, EXPORTERS, (False, True)))
        if not wants_full(metafunc.config):  # four families, each in one of its four forms
            rng = random.Random(metafunc.config.getoption("--slice-seed"))
            forms = [rng.choice([form for form in forms if form[0] == name]) for name in rng.sample(list(FAMILIES), 4)]
        metafunc.parametrize("form", forms, ids=["-".join([n, e, "dynamic" if d else "static"]) for n, e, d in forms])


def operations(engine: polyphase.Engine) -> list[str]:
    return sorted(step["operation"] for step in engine.info()["steps"])


def transposes(engine: polyphase.Engine) -> list[str]:
    return [step["node"] for step in engine.info()["steps"] if step["kind"] == "copy" or step["operation"] in {"identity", "transpose"}]


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_channels_first_network_is_transposed_at_its_ends_alone(family: str, target: str, tmp_path: pathlib.Path) -> None:
    engine = polyphase.compile(export_onnx(FAMILIES[family](), tmp_path / "m.onnx", "torchscript", True), target=target)
    steps = engine.info()["steps"]
    moving = [i for i, step in enumerate(steps) if step["kind"] == "copy" or step["operation"] in {"identity", "transpose"}]
    assert set(moving) <= {0, len(steps) - 1}


def test_channels_last_network_keeps_no_transpose(form: tuple[str, str, bool], tmp_path: pathlib.Path) -> None:
    """Written with transposes around every convolution and all the rest on (N, spatial..., C): the steps are those of the network as PyTorch has it."""
    family, exporter, dynamic = form
    network = FAMILIES[family]()
    model = export_onnx(network, tmp_path / "first.onnx", exporter, dynamic)
    turned = nhwc_models.channels_last(onnx.load(model))
    assert sum(node.op_type == "Transpose" for node in turned.graph.node) > 10
    onnx.save(turned, tmp_path / "last.onnx")
    first, last = polyphase.compile(model), polyphase.compile(tmp_path / "last.onnx")
    assert transposes(last) == []
    assert [each for each in operations(last) if each != "identity"] == [each for each in operations(first) if each != "identity"]
    for given in (network.inputs, network.other_inputs) if dynamic else (network.inputs,):
        arrays = {name: value.numpy() for name, value in given.items()}
        right = next(iter(first.session().run(arrays).values()))
        found = next(iter(last.session().run({name: nhwc_models.to_last(array) for name, array in arrays.items()}).values()))
        scale = np.sqrt(np.mean(np.square(right, dtype=np.float64)))
        np.testing.assert_allclose(found, nhwc_models.to_last(right), rtol=0, atol=1e-5 * scale)


class ChannelsLast(torch.nn.Module):
    """Images of (N, H, W, C) between the layers, as networks ported from channels-last frameworks have them."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.ConvTranspose2d(3, 8, 4, stride=2, padding=1)
        self.head = torch.nn.Conv2d(16, 2, 3, padding=1)
        self.scale = torch.nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up = self.up(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        gated = torch.nn.functional.leaky_relu(up * self.scale, 0.1)
        both = torch.cat([gated, torch.tanh(up)], dim=-1)
        both = torch.nn.functional.pad(both, (0, 0, 1, 2, 0, 1))
        return self.head(both.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).amax(dim=(1, 2)) + both.mean()


def test_a_module_full_of_permutes() -> None:
    torch.manual_seed(1)
    net, x = ChannelsLast().eval(), torch.randn(2, 5, 6, 3)
    engine = polyphase.compile(net, (x,), dynamic_shapes={"x": {1: torch.export.Dim.AUTO}})
    assert transposes(engine) == []
    for size in (5, 9):
        x = torch.randn(2, size, 6, 3)
        np.testing.assert_allclose(next(iter(engine.session().run([x]).values())), net(x).detach(), rtol=1e-5, atol=1e-5)


EXIT_USER = 1
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
SIZES = {1: (7,), 2: (5, 4), 3: (3, 4, 2)}


def data_layouts(rank: int) -> list[str]:
    axes = SPATIAL[rank]
    return [f"NC{axes}", f"N{axes}C", f"NC{axes}8c", f"NC{axes}16c"]


def kernel_layouts(rank: int) -> list[str]:
    axes = SPATIAL[rank]
    return [f"IO{axes}", f"OI{axes}", f"{axes}IO", f"{axes}OI"]


def in_layout(array: np.ndarray, plain: str, layout: str) -> np.ndarray:
    """By numpy, from the letters alone."""
    axes = layout.rstrip("c0123456789")
    array = array.transpose([plain.index(axis) for axis in axes])
    if axes == layout:
        return np.ascontiguousarray(array)
    block = int(layout[len(axes) : -1])
    at = axes.index("C")
    array = np.pad(array, [(0, -array.shape[at] % block if axis == at else 0) for axis in range(array.ndim)])
    array = array.reshape(*array.shape[:at], -1, block, *array.shape[at + 1 :])
    return np.ascontiguousarray(np.moveaxis(array, at + 1, -1))


def check_combination(transposed: bool, rank: int, data: str, kernel: str, out: str | None, groups: int, dynamic: bool = False) -> None:
    rng = np.random.default_rng([rank, groups])
    channels, results = (20, 20) if groups == 20 else (20, 12)
    plain, own = f"NC{SPATIAL[rank]}", ("IO" if transposed else "OI") + SPATIAL[rank]
    x = rng.integers(-4, 5, (2, channels, *SIZES[rank])).astype(np.float32)
    shape = (channels, results // groups) if transposed else (results, channels // groups)
    weight = rng.integers(-3, 4, (*shape, *(2,) * rank)).astype(np.float32)
    network = polyphase.Network()
    given = in_layout(x, plain, data)
    sizes = [f"s{i}" if dynamic and letter in SPATIAL[rank] else size for i, (letter, size) in enumerate(zip(data, given.shape, strict=False))]
    sizes += given.shape[len(sizes) :]
    add = network.add_deconvolution_nd if transposed else network.add_convolution_nd
    y = add(network.add_input("x", "float32", sizes), in_layout(weight, own, kernel), stride=2, groups=groups, data_layout=data, kernel_layout=kernel, out_layout=out)
    network.mark_output(network.relu(y), "y")
    engine = network.compile()
    run = getattr(torch.nn.functional, f"conv{'_transpose' if transposed else ''}{rank}d")
    right = torch.relu(run(torch.from_numpy(x), torch.from_numpy(weight), stride=2, groups=groups)).numpy()
    np.testing.assert_array_equal(engine.session().run({"x": given})["y"], in_layout(right, plain, out or data))
    ends = [data, out or data]
    at_most = 0 if all(layout == f"N{SPATIAL[rank]}C" for layout in ends) else len(ends)
    assert len(transposes(engine)) <= at_most, (transposes(engine), engine.info()["steps"])


@pytest.mark.parametrize("groups", [1, 4, 20])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [True, False])
def test_every_combination_of_layouts(transposed: bool, rank: int, groups: int) -> None:
    for data, kernel, out in itertools.product(data_layouts(rank), kernel_layouts(rank), data_layouts(rank)):
        check_combination(transposed, rank, data, kernel, out, groups)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_any_order_of_the_letters_and_open_sizes(rank: int) -> None:
    rng = random.Random(rank)
    for _ in range(40):
        letters = [rng.sample(f"NC{SPATIAL[rank]}", rank + 2) for _ in range(2)]
        data, out = ("".join(each) + rng.choice(["", "", "8c", "3c"]) for each in letters)
        kernel = "".join(rng.sample(f"IO{SPATIAL[rank]}", rank + 2))
        check_combination(rng.random() < 0.7, rank, data, kernel, rng.choice([out, None]), rng.choice([1, 4, 20]), dynamic=rng.random() < 0.5)


def upsampler(folder: pathlib.Path) -> tuple[pathlib.Path, torch.nn.Module]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.ConvTranspose2d(3, 20, 4, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(20, 5, 3, padding=1)).eval()
    torch.onnx.export(net, (torch.zeros(1, 3, 8, 8),), folder / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False, dynamic_axes={"x": {0: "N", 2: "H", 3: "W"}})
    return folder / "net.onnx", net


@pytest.mark.parametrize(("given", "wanted"), [("NHWC", "NHWC"), ("NCHW", "NHWC"), ("NHWC", "NCHW16c"), ("NCHW8c", "CHWN"), ("NHWC:NCHW", "NCHW")])
def test_layouts_at_the_borders(given: str, wanted: str, tmp_path: pathlib.Path) -> None:
    path, net = upsampler(tmp_path)
    x = torch.randn(2, 3, 6, 9)
    right = in_layout(net(x).detach().numpy(), "NCHW", wanted)
    array = in_layout(x.numpy(), "NCHW", given.split(":")[0])
    engine = polyphase.compile(path, input_layouts={"x": given}, output_layouts={"y": wanted})
    np.testing.assert_allclose(engine.session().run({"x": array})["y"], right, rtol=1e-5, atol=1e-5)
    assert len(transposes(engine)) <= sum(layout != "NHWC" for layout in (given, wanted))
    engine.save(tmp_path / "net.ppe")
    np.testing.assert_allclose(polyphase.load(tmp_path / "net.ppe").session().run({"x": array})["y"], right, rtol=1e-5, atol=1e-5)


def test_a_channels_last_model_for_a_channels_first_caller(tmp_path: pathlib.Path) -> None:
    path, net = upsampler(tmp_path)
    onnx.save(nhwc_models.channels_last(onnx.load(path)), tmp_path / "last.onnx")
    engine = polyphase.compile(tmp_path / "last.onnx", input_layouts={"x": "NCHW:NHWC"}, output_layouts={"y_last": "NCHW:NHWC"}, shapes={"x": (1, 3, "A", "B")})
    x = torch.randn(1, 3, 5, 7)
    np.testing.assert_allclose(engine.session().run({"x": x.numpy()})["y_last"], net(x).detach().numpy(), rtol=1e-5, atol=1e-5)


BAD_BORDERS = [
    ({"input_layouts": {"z": "NHWC"}}, "the layout given for input 'z' is of no input of the model."),
    ({"output_layouts": {"x": "NHWC"}}, "the layout given for output 'x' is of no output of the model."),
    ({"input_layouts": {"x": "NHW"}}, "the layout given for input 'x' is 'NHW' and the model's is 'NCHW'; the tensor has 4 axes in the model."),
    ({"input_layouts": {"x": "NHWC:NDHWC"}}, "the layout given for input 'x' is 'NHWC' and the model's is 'NDHWC'; the tensor has 4 axes in the model."),
    ({"input_layouts": {"x": "NHWC:NCHW8c"}}, "the layout given for input 'x' is 'NHWC' and the model's is 'NCHW8c'; the tensor has 4 axes in the model."),
    ({"input_layouts": {"x": "NHHC"}}, "the layout 'NHHC' names the axis H twice."),
    ({"input_layouts": {"x": "NCHW16q"}}, "the layout 'NCHW16q' divides an axis that it does not name."),
    ({"input_layouts": {"x": "NCHW99999999999999999999c"}}, "the layout 'NCHW99999999999999999999c' does not end behind its axes, nor behind one block."),
    ({"input_layouts": {"x": "NCHW1c"}}, "the layout 'NCHW1c' has a block that is not of 2 to 1024 elements."),
    ({"input_layouts": {"x": ""}}, "the layout given for tensor 'x' is ''."),
    ({"input_layouts": {"x": "NCHW8c"}, "shapes": {"x": (1, 1, 8, 8, 8)}}, "sizes are given for input 'x' in the layout 'NCHW8c', which do not tell how many channels there are."),
    ({"input_layouts": {"x": 4}}, "the layout of 'x' is 4."),
]


@pytest.mark.parametrize(("options", "message"), BAD_BORDERS)
def test_layouts_that_make_no_sense(options: dict, message: str, tmp_path: pathlib.Path) -> None:
    path, _ = upsampler(tmp_path)
    with pytest.raises(polyphase.ArgumentError) as caught:
        polyphase.compile(path, **options)
    assert message in str(caught.value)


BAD_SETTINGS = [
    ({"data_layout": "NHW"}, "data_layout is 'NHW', which is no layout of the axes NCHW."),
    ({"data_layout": "NCHW8n"}, "data_layout is 'NCHW8n', which is no layout of the axes NCHW."),
    ({"data_layout": "NCHW8c"}, "data_layout is 'NCHW8c', which has 5 axes, but the operand is f32[1, 4, 5, 5]."),
    ({"kernel_layout": "IOHW16i"}, "kernel_layout is 'IOHW16i', which is no layout of the axes IOHW."),
    ({"kernel_layout": "ÄÖ"}, "kernel_layout: the layout '????' names no axis."),
    ({"out_layout": "NCWH8"}, "out_layout: the layout 'NCWH8' does not end behind its axes, nor behind one block."),
    ({"out_layout": ""}, "out_layout is ''."),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS)
def test_settings_that_make_no_sense(settings: dict, message: str) -> None:
    network = polyphase.Network()
    with pytest.raises(polyphase.ArgumentError) as caught:
        network.add_deconvolution_nd(network.add_input("x", "float32", (1, 4, 5, 5)), np.ones((4, 2, 3, 3), np.float32), name="up", **settings)
    assert message in str(caught.value)
    assert "Legal is" in str(caught.value) or "Give" in str(caught.value) or "must be there" in str(caught.value)


BAD_PAIRS = [
    ("NCW", "NWC", "from 'NCW' to 'NWC' takes 3 axes, the operand is f32[1, 8, 6, 6]. Legal is a layout of 4 axes, such as NCHW, NHWC and NCW16c."),
    ("NCHW16c", "NCHW", "from 'NCHW16c' to 'NCHW' takes 5 axes, the operand is f32[1, 8, 6, 6]. Legal is a layout of 4 axes"),
    ("NCHW", "NCDHW", "from 'NCHW' to 'NCDHW' is not the same axes. Legal is any order of the axes NCHW, one of them in blocks or none: NCHW, NCHW16c."),
    ("NCHW", "NCHWc", "from 'NCHW' to 'NCHWc': the layout 'NCHWc' has a block that is not of 2 to 1024 elements. A layout has a capital letter for each axis"),
    ("", "NHWC", "from '' to 'NHWC': the layout '' names no axis. A layout has a capital letter for each axis"),
]


@pytest.mark.parametrize(("first", "second", "said"), BAD_PAIRS)
def test_pairs_of_layouts_that_make_no_sense(first: str, second: str, said: str) -> None:
    network = polyphase.Network()
    with pytest.raises(polyphase.Error) as caught:
        network.layout_transform(network.add_input("x", "float32", (1, 8, 6, 6)), from_layout=first, to_layout=second, name="turn")
    assert str(caught.value).startswith(f"node 'turn': layout_transform: {said}")


def test_inspect_says_what_is_transposed_and_why(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> None:
    program = request.getfixturevalue("polyphase")
    path, _ = upsampler(tmp_path)
    last = program("inspect", path, "--input-layout", "x=NHWC", "--output-layout", "y=NHWC")
    assert "transposes: none" in last.stdout
    assert "f32 NxHxWx3" in last.stdout
    blocks = json.loads(program("inspect", path, "--output-layout", "y=NCHW4c", "--target", "avx2", "--json").stdout)
    assert [each["why"] for each in blocks["transposes"]] == ["'y.layout' (pad) gives what the caller takes with its axes in another order"]
    assert "--input-layout 'NHWC' names no tensor." in program("inspect", path, "--input-layout", "NHWC", expect=EXIT_USER).stderr
    program("compile", path, "-o", tmp_path / "net.ppe")
    assert "--input-layout is read when a model is compiled" in program("inspect", tmp_path / "net.ppe", "--input-layout", "x=NHWC", expect=EXIT_USER).stderr


def test_a_model_that_onnx_runtime_has_optimised(tmp_path: pathlib.Path) -> None:
    """In its own blocked layouts it is refused, with what to do; and that does it."""
    import onnxruntime

    net = torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.ConvTranspose2d(16, 16, 2, stride=2)).eval()
    x = torch.randn(1, 16, 8, 8)
    torch.onnx.export(net, (x,), tmp_path / "m.onnx", dynamo=False)
    for level in ("ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(tmp_path / f"{level}.onnx")
        options.log_severity_level = 3
        onnxruntime.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
    torch.testing.assert_close(torch.as_tensor(polyphase.compile(tmp_path / "ORT_ENABLE_EXTENDED.onnx")(x)), net(x), atol=1e-4, rtol=1e-4)
    if any(node.domain == "com.microsoft.nchwc" for node in onnx.load(tmp_path / "ORT_ENABLE_ALL.onnx").graph.node):
        with pytest.raises(polyphase.UnsupportedError, match="com.microsoft.nchwc.Conv .* save the optimised model again with graph_optimization_level ORT_ENABLE_EXTENDED or lower"):
            polyphase.compile(tmp_path / "ORT_ENABLE_ALL.onnx")
