"""polyphase.compile on modules, exported programs and TorchScript: the numbers of the module, or PyTorch's reason why not."""

from __future__ import annotations

import warnings

import numpy as np
import polyphase
import pytest
import torch
from torch import nn

AUTO = torch.export.Dim.AUTO
OPEN = {2: AUTO, 3: AUTO}


class Skip(nn.Module):
    """As large as the skip connection, which lies in a dict of lists."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(6, 3, 3, stride=2, padding=1)

    def forward(self, x, skips, *, gain=None):
        y = torch.relu(self.down(x))
        z = self.up(y, output_size=skips["first"][0].shape[2:]) + skips["first"][0]
        return {"z": z if gain is None else z * gain, "y": [y]}


@pytest.fixture(scope="module")
def skip() -> tuple[nn.Module, polyphase.Engine]:
    torch.manual_seed(1)
    net, x = Skip().eval(), torch.randn(1, 3, 8, 9)
    shapes = {"x": OPEN, "skips": {"first": [OPEN]}, "gain": None}
    return net, polyphase.compile(net, (x, {"first": [x]}), {"gain": torch.tensor(2.0)}, dynamic_shapes=shapes)


@pytest.mark.parametrize("sizes", [(8, 9), (7, 7), (10, 12), (21, 4)])
def test_one_engine_for_odd_and_even_output_sizes(skip, sizes):
    net, engine = skip
    x, gain = torch.randn(1, 3, *sizes), torch.tensor(0.5)
    want = net(x, {"first": [x]}, gain=gain)
    for found in (engine(x, {"first": [x]}, gain=gain), engine(x=x, skips={"first": (x,)}, gain=gain), engine(x, x, gain),
                  engine(**{"x": x, "skips.first.0": x, "gain": gain}), tuple(engine.session(1).run({"x": x, "skips": {"first": [x]}, "gain": gain}).values())):
        torch.testing.assert_close(found[0], want["z"], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(found[1], want["y"][0], atol=1e-5, rtol=1e-5)


def test_an_output_size_out_of_range_is_refused_in_pytorchs_words(skip):
    net, engine = skip
    x, other = torch.randn(1, 3, 8, 8), torch.randn(1, 3, 12, 12)
    with pytest.raises(ValueError, match="requested an output size") as theirs:
        net(x, {"first": [other]}, gain=torch.tensor(1.0))
    with pytest.raises(polyphase.Error) as ours:
        engine(x, {"first": [other]}, gain=torch.tensor(1.0))
    assert ours.value.code == "shape_mismatch" and "12" in str(theirs.value) and "12" in str(ours.value)


def test_names_and_nesting(skip):
    _, engine = skip
    assert [port.name for port in engine.inputs] == ["x", "skips.first.0", "gain"]
    assert [port.name for port in engine.outputs] == ["output_0", "output_1"]
    x = np.zeros((1, 3, 8, 8), np.float32)
    for arguments, words in (((x, {"second": [x]}), "there is no input 'skips.second.0'."), ((x, {"first": [x, x]}), "there is no input 'skips.first.1'."),
                             ((x, {}), "input 'skips.first.0' is missing."), ((x, [x], x, x), "the engine takes 3 arguments, found 4."),
                             ((x, {"first": [[x]]}), "input 'skips.first.0' is a list, which is no array.")):
        with pytest.raises(polyphase.ArgumentError) as caught:
            engine(*arguments)
        assert caught.value.message == words
    with pytest.raises(polyphase.ArgumentError, match="input 'skips.first.0' is given twice"):
        engine(x, {"first": [x]}, **{"skips.first.0": x})


def test_programs_that_write_in_place_and_share_memory():
    class InPlace(nn.Module):
        def forward(self, x):
            y = x * 2
            view = y[:, :1]
            y.add_(1)
            return view.relu(), y

    x = torch.randn(2, 3)
    for found, want in zip(polyphase.compile(InPlace(), (x,))(x), InPlace()(x)):
        torch.testing.assert_close(found, want)


def test_exported_programs_and_save(tmp_path):
    net, x = nn.Sequential(nn.ConvTranspose2d(3, 4, 3, 2, output_padding=1), nn.BatchNorm2d(4), nn.GELU()).eval(), torch.randn(2, 3, 5, 6)
    engine = polyphase.compile(torch.export.export(net, (x,)))
    engine.save(tmp_path / "net.ppe")
    torch.testing.assert_close(polyphase.load(tmp_path / "net.ppe")(x), net(x), atol=1e-5, rtol=1e-5)
    with pytest.raises(polyphase.ArgumentError, match="inputs are given with a program that is exported already"):
        polyphase.compile(torch.export.export(net, (x,)), (x,))


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 3, 3, 2, 1)

    def forward(self, image):
        if image.shape[0] > 7:
            return self.up(image)
        return torch.relu(self.up(image))


NEW = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)  # before, PyTorch's converter fixed all sizes


@pytest.mark.parametrize("kind", ["script", "trace", "file", pytest.param("open", marks=pytest.mark.skipif(not NEW, reason="PyTorch fixes the sizes"))])
def test_torchscript(tmp_path, kind):
    net, x = Branch().eval(), torch.randn(2, 3, 5, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        model = torch.jit.trace(net, (x,)) if kind == "trace" else torch.jit.script(net)
        if kind == "file":
            model.save(tmp_path / "net.pt")
            with pytest.raises(polyphase.UnsupportedError, match="this is a TorchScript archive"):
                polyphase.compile(tmp_path / "net.pt")
            model = tmp_path / "net.pt"
        engine = polyphase.compile(model, (x,), dynamic_shapes=(OPEN,) if kind == "open" else None)
    assert [port.name for port in engine.inputs] == ["image"]
    for sizes in [(2, 3, 5, 6), (2, 3, 9, 4)] if kind == "open" else [(2, 3, 5, 6)]:
        x = torch.randn(sizes)
        torch.testing.assert_close(engine(x), net(x), atol=1e-5, rtol=1e-5)


class DataDependent(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # the line that is named
            return x
        return -x


def refused(*arguments, kind=polyphase.Error, **named) -> polyphase.Error:
    with pytest.raises(kind) as caught:
        polyphase.compile(*arguments, **named)
    assert caught.value.message.endswith((".", "…")) and caught.value.hint.endswith(".")
    return caught.value


def test_what_pytorch_cannot_export_has_its_reason_and_the_users_line():
    error = refused(DataDependent(), (torch.randn(3),), kind=polyphase.UnsupportedError)
    assert error.message.startswith("PyTorch cannot export the module: ") and "data-dependent" in error.message
    [place] = error.trail
    line = DataDependent.forward.__code__.co_firstlineno + 1
    assert place.startswith(f'in File "{__file__}", line {line}, in forward') and "the line that is named" in place


def test_a_module_that_fails_for_its_inputs():
    error = refused(Skip(), (torch.randn(1, 5, 8, 8), {"first": [torch.randn(1, 3, 8, 8)]}), kind=polyphase.ModelError)
    assert "expected input[1, 5, 8, 8] to have 3 channels" in error.message and "self.down(x)" in error.trail[0]


def test_arguments_that_fit_no_module(tmp_path):
    x = torch.zeros(1)
    (tmp_path / "none.onnx").write_bytes(b"")
    for arguments, words in (((Skip(),), "a module is given without inputs."), ((Skip(), x), "the example inputs are a Tensor."),
                             ((Skip(), (x,), [x]), "the named example inputs are a list."),
                             ((b"", (x,)), "example inputs are given with a bytes that is no module of PyTorch."),
                             ((tmp_path / "none.onnx", (x,)), "example inputs are given with a file that is no module of PyTorch."),
                             ((object(),), "the model is a object.")):
        assert refused(*arguments, kind=polyphase.ArgumentError).message == words


def test_dropout_of_training_is_refused_with_advice():
    error = refused(nn.Sequential(nn.Dropout(), nn.Linear(3, 3)).train(), (torch.zeros(2, 3),), kind=polyphase.UnsupportedError)
    assert "eval()" in error.hint
