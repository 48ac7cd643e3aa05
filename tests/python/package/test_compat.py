"""polyphase.compat: operator configurations of a module, one by one against PyTorch; of a file, what the program says."""

from __future__ import annotations

import json

import numpy as np
import polyphase
import pytest
import small_models
import torch
from torch import nn

AUTO = torch.export.Dim.AUTO


class Net(nn.Module):
    """Transposed convolutions (weight-normed, dilated), writes in place, a skip connection, sizes as arguments, a condition."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.up = nn.utils.parametrizations.weight_norm(nn.ConvTranspose2d(4, 3, 3, 2, 1))
        self.wide = nn.ConvTranspose2d(3, 4, 2, (1, 2), dilation=(2, 1), groups=1)
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout()

    def forward(self, x, *, flag):
        y = self.drop(self.norm(self.up(self.down(x).relu_(), output_size=x.shape[2:])))
        z = self.wide(y).reshape(x.shape[0], -1)
        return torch.cond(flag.sum() > 0, lambda t: t + 1, lambda t: t.sin(), (z,)), torch.cat([y, x, x], 1)


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net().eval()


@pytest.fixture
def polyphase_program(request):
    return request.getfixturevalue("polyphase")


def inputs():
    generator = torch.Generator().manual_seed(2)
    return torch.randn(2, 3, 9, 8, generator=generator), torch.ones(3)


def by_operation(found):
    return {row["operation"]: row for row in found.rows}


def test_every_call_of_a_module_is_a_row(net):
    x, flag = inputs()
    found = polyphase.compat(net, (x,), {"flag": flag})
    assert found.ok, found
    rows = by_operation(found)
    assert {"aten.conv2d.default", "aten.conv_transpose2d.input", "aten.relu_.default", "aten.batch_norm.default", "aten.cat.default", "cond", "aten.add.Tensor"} <= set(rows)
    deconvolution = [row for row in found.rows if row["operation"] == "aten.conv_transpose2d.input"]
    assert len(deconvolution) == 2 and "dilation=[2, 1]" in deconvolution[1]["attributes"]
    assert [operand["constant"] for operand in deconvolution[1]["operands"]] == [False, True, True]
    [case] = deconvolution[1]["cases"]
    assert case["operands"][0] == [2, 3, 9, 8] and case["kernel"] and 0 < case["error"] <= case["tolerance"]
    text = str(found)
    assert "aten.conv_transpose2d.input" in text and text.endswith(" s") and "nothing is wrong" in repr(found)


def test_open_sizes_and_layouts(net):
    x, flag = inputs()
    found = polyphase.compat(net, (x.to(memory_format=torch.channels_last),), {"flag": flag}, dynamic_shapes={"x": {0: AUTO, 2: AUTO, 3: AUTO}, "flag": None})
    assert found.ok, found
    row = by_operation(found)["aten.conv2d.default"]
    assert row["operands"][0]["layout"] == "channels_last" and row["operands"][0]["sizes"][1] == "3" and not row["operands"][0]["sizes"][2].isdigit()
    heights = [case["operands"][0][2] for case in row["cases"]]
    assert len(heights) == len(set(heights)) >= 3 and {height % 2 for height in heights} == {0, 1}


def test_sizes_that_are_given(net):
    x, flag = inputs()
    program = torch.export.export(net, (x,), {"flag": flag}, dynamic_shapes={"x": {2: AUTO}, "flag": None})
    [name] = [str(symbol) for symbol in program.range_constraints]
    found = polyphase.compat(program, sizes={name: (12, 15)}, only="conv2d")
    assert [row["operation"] for row in found.rows] == ["aten.conv2d.default"]
    assert [case["sizes"] for case in found.rows[0]["cases"]] == [{name: 9}, {name: 12}, {name: 15}]
    with pytest.raises(polyphase.ArgumentError, match=f"The open sizes are {name}"):
        polyphase.compat(program, sizes={"H": (4,)})
    with pytest.raises(polyphase.ArgumentError, match="no call of 'gelu'"):
        polyphase.compat(program, only="gelu")


def test_a_wrong_converter_is_found():
    """What it says of x is not what PyTorch says."""
    overload = torch.ops.aten.special_bessel_j0.default

    def net(x):
        return torch.special.bessel_j0(torch.relu(x))

    class Wrapped(nn.Module):
        def forward(self, x):
            return net(x)

    x = torch.randn(3, 4)
    lacking = by_operation(polyphase.compat(Wrapped(), (x,)))
    assert lacking[str(overload)]["outcome"] == "missing" and "converters" in lacking[str(overload)]["reason"]

    @polyphase.torch.converter(overload)
    def wrong(x):
        return x * 0.99

    try:
        found = polyphase.compat(Wrapped(), (x,))
    finally:
        polyphase.torch.remove_converter(overload)
    rows = by_operation(found)
    assert not found.ok and rows[str(overload)]["outcome"] == "wrong" and "an element is off by" in rows[str(overload)]["reason"]
    assert rows["aten.relu.default"]["outcome"] == "right" and "WRONG" in str(found)

    @polyphase.torch.converter(torch.ops.aten.relu.default, take_over=True)
    def wrong_shape(x):
        return x[:1]

    try:
        rows = by_operation(polyphase.compat(Wrapped(), (x,)))
    finally:
        polyphase.torch.remove_converter(torch.ops.aten.relu.default)
    assert rows["aten.relu.default"]["outcome"] == "wrong" and "the shape is [1, 4], not [3, 4]" in rows["aten.relu.default"]["reason"]


def test_a_tolerance_of_nothing_and_seeds(net):
    x, flag = inputs()
    strict = polyphase.compat(net, (x,), {"flag": flag}, tolerance=0, only="aten.conv_transpose2d.input")
    assert not strict.ok and {row["outcome"] for row in strict.rows} == {"wrong"}


@pytest.mark.parametrize("layer, shape", [
    (nn.ConvTranspose1d(4, 6, 4, 2, 1), (2, 4, 9)), (nn.ConvTranspose1d(4, 6, 3, 3, 1, 2, dilation=2), (4, 9)), (nn.ConvTranspose2d(4, 6, (3, 5), (2, 3), (1, 0), (0, 2)), (2, 4, 6, 7)),
    (nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=8, bias=False), (2, 8, 6, 7)), (nn.ConvTranspose2d(4, 6, 2, 3, 0, 1).bfloat16(), (2, 4, 6, 7)),
    (nn.ConvTranspose3d(3, 4, 2, (1, 2, 2), dilation=(2, 1, 3)), (2, 3, 4, 5, 3)), (nn.ConvTranspose2d(4, 6, 4, 2, 1).half(), (4, 6, 7))])
def test_transposed_convolutions(layer, shape):
    x = torch.randn(shape, dtype=layer.weight.dtype)
    found = polyphase.compat(nn.Sequential(layer, nn.Tanh()).eval(), (x,))
    assert found.ok and [row["outcome"] for row in found.rows] == ["right", "right"], found


def test_loops_and_random_numbers():
    class Looping(nn.Module):
        def forward(self, x):
            from torch._higher_order_ops.while_loop import while_loop

            y = while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, torch.sin(y) + 0.1), (torch.tensor(0), x))[1]
            return y, y + torch.rand(3, 6)

    found = polyphase.compat(Looping(), (torch.randn(3, 6),))
    rows = by_operation(found)
    assert rows["while_loop"]["outcome"] == "right" and rows["aten.sin.default"]["outcome"] == "right", found
    assert "aten.rand.default" not in rows or rows["aten.rand.default"]["outcome"] == "not run"


def test_a_file_says_what_the_program_says(polyphase_program, tmp_path):
    model = small_models.up(tmp_path / "up.onnx")
    found = polyphase.compat(model, seed=3, sizes={"H": (5, 6)})
    polyphase_program("compat", model, "--seed", "3", "--sizes", "H=5,6", "--json", tmp_path / "cli.json")
    ours, theirs = json.loads(found.json()), json.loads((tmp_path / "cli.json").read_text())
    for report in (ours, theirs):
        report.pop("seconds")
    assert ours == theirs and found.ok
    assert polyphase.compat(model.read_bytes()).rows == polyphase.compat(model).rows
    assert not polyphase.compat(model, tolerance=0).ok
    told = []
    polyphase.compat(model, progress=lambda stage, done: told.append((stage, done)))
    assert told[0] == ("import", 0) and all(0 <= done <= 1 for _, done in told)


def test_files_are_whole_or_not_there(tmp_path):
    found = polyphase.compat(small_models.up(tmp_path / "up.onnx"))
    found.save(tmp_path / "c.json")
    found.save(str(tmp_path / "c.md"))
    report = json.loads((tmp_path / "c.json").read_text())
    assert report["schema"] == 1 and report["ok"] and report["counts"]["right"] == 2
    assert "| conv\\_transpose |" in (tmp_path / "c.md").read_text()
    with pytest.raises(polyphase.ArgumentError, match="neither JSON nor Markdown"):
        found.save(tmp_path / "c.txt")
    with pytest.raises(polyphase.FileError, match="cannot write"):
        found.save(tmp_path / "no" / "c.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.json", "c.md", "up.onnx"]


@pytest.mark.parametrize("options, words", [
    ({"seed": -1}, "the seed is -1"), ({"tolerance": -1}, "the tolerance is -1"), ({"tolerance": float("nan")}, "the tolerance is nan"), ({"only": 3}, "only is a int"),
    ({"sizes": {"H": "12"}}, "the sizes of 'H'"), ({"sizes": {"H": []}}, "the sizes of 'H'"), ({"sizes": {"Q": [4]}}, "no open size"), ({"progress": 3}, "progress is a int"),
    ({"target": "gpu"}, "no target 'gpu'")])
def test_what_is_refused(options, words, tmp_path):
    with pytest.raises(polyphase.ArgumentError, match=words):
        polyphase.compat(small_models.up(tmp_path / "up.onnx"), **options)


def test_what_is_refused_of_modules(net, tmp_path):
    x, flag = inputs()
    with pytest.raises(polyphase.Error, match="without inputs"):
        polyphase.compat(net)
    with pytest.raises(polyphase.ArgumentError, match="no module of PyTorch"):
        polyphase.compat(np.zeros(3), (x,))
    with pytest.raises(polyphase.ArgumentError, match="with a module"):
        polyphase.compat(net, (x,), {"flag": flag}, dims={"H": 3})
    with pytest.raises(polyphase.ModelError, match="the module fails for the inputs"):
        polyphase.compat(net, (x[:, :2],), {"flag": flag})
    with pytest.raises(polyphase.Error):
        polyphase.compat(tmp_path / "none.onnx")
