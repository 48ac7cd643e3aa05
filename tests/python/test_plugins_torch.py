"""Operators of plugins behind torch.compile(backend="polyphase") and polyphase.compile of modules, against the same operators in PyTorch."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
import upfirdn2d
from conftest import ROOT

import polyphase

sys.path.insert(0, str(ROOT / "tests/python/package"))
from counted_backend import Counter  # noqa: E402

BLUR = torch.from_numpy(np.outer([1, 3, 3, 1], [1, 3, 3, 1]).astype(np.float32) / 64)


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()


@pytest.fixture(scope="module", autouse=True)
def plugin():
    upfirdn2d.torch_operator()
    return upfirdn2d.library()


def changed(tmp_path, name: str, *changes: tuple[str, str]):
    """The plugin built from its source with these replacements."""
    text = upfirdn2d.SOURCE.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (tmp_path / f"{name}.c").write_text(text)
    return upfirdn2d.build(tmp_path / f"{name}.c", tmp_path / f"{name}.so")


class Synthesis(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.register_buffer("filter", BLUR)

    def forward(self, x):
        y = torch.nn.functional.leaky_relu(self.conv(x), 0.2)
        return torch.tanh(torch.ops.stylegan.upfirdn2d(y, self.filter, [2, 2], [1, 1], [2, 1, 2, 1], gain=4.0))


class Alone(torch.nn.Module):
    def forward(self, x):
        return torch.ops.stylegan.upfirdn2d(x, None, [3], [2], [1], False, 2.0)


@pytest.mark.parametrize("dynamic", [False, True])
def test_one_engine_with_the_operator(plugin, dynamic):
    net, count = Synthesis().eval(), Counter(plugins=[plugin], require_full=True)
    compiled = torch.compile(net, backend=count, dynamic=dynamic)
    with torch.no_grad():
        for size in (12, 10, 7) if dynamic else (12,):
            x = torch.randn(2, 3, size, size + 1)
            torch.testing.assert_close(compiled(x), net(x), atol=1e-5, rtol=1e-5)
    assert count.engines() == 1 and len(count.graphs) == 1
    steps = count.graphs[0]._sets[0].engines[0].engine.info()["steps"]
    assert [step["rows"] for step in steps if step["operation"] == "stylegan.upfirdn2d"] == [["plugin"]]


def test_through_the_entry_point_and_alone(plugin):
    x = torch.randn(2, 3, 6, 7)
    compiled = torch.compile(Alone(), backend="polyphase", options={"plugins": [str(plugin)], "require_full": True})
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), Alone()(x))


def test_it_is_an_island_of_its_own_worth(plugin):
    """One operator beside what PyTorch runs; without the plugin PyTorch runs it all."""

    class Between(torch.nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(Alone()(torch.special.bessel_j0(x)))

    x = torch.randn(1, 2, 5, 5)
    with torch.no_grad():
        for options, engines in (({"plugins": [plugin]}, 1), ({}, 0), ({"plugins": [plugin], "torch_executed_ops": ["stylegan.upfirdn2d.default"]}, 0), ({"plugins": [plugin], "min_block_size": 2}, 0)):
            torch._dynamo.reset()
            count = Counter(**options)
            torch.testing.assert_close(torch.compile(Between(), backend=count)(x), Between()(x))
            assert count.engines() == engines, options
    told = polyphase.explain(Between(), x, options={"plugins": [plugin]})
    assert told["taken"] == 1 and polyphase.explain(Between(), x)["taken"] == 0


def test_engines_on_disk_are_those_of_the_plugin(plugin, tmp_path):
    """The next process takes the engine; another library of the same operator and version gets its own."""
    net, x = Synthesis().eval(), torch.randn(1, 3, 8, 8)
    louder = changed(tmp_path, "louder", ("(float)(sum * gain)", "(float)(sum * gain * 2)"))

    def run(library):
        torch._dynamo.reset()
        with torch.no_grad():
            return torch.compile(net, backend="polyphase", options={"plugins": [library]})(x)

    files = tmp_path / "cache"
    first = run(plugin)
    assert len(list(files.glob("*.ppe"))) == 1 and torch.equal(run(plugin), first) and len(list(files.glob("*.ppe"))) == 1
    other = run(louder)
    assert len(list(files.glob("*.ppe"))) == 2
    with torch.no_grad():
        y = torch.nn.functional.leaky_relu(net.conv(x), 0.2)
        torch.testing.assert_close(other, torch.tanh(2 * torch.ops.stylegan.upfirdn2d(y, net.filter, [2, 2], [1, 1], [2, 1, 2, 1], gain=4.0)), atol=1e-5, rtol=1e-5)


def test_new_weights(plugin):
    net, x = Synthesis().eval(), torch.randn(1, 3, 8, 8)
    compiled = torch.compile(net, backend="polyphase", options={"plugins": [plugin], "require_full": True})
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), net(x), atol=1e-5, rtol=1e-5)
            net.conv.weight.mul_(0.5)
            net.filter.mul_(2)


def test_an_operator_of_aten_that_polyphase_lacks(tmp_path):
    """The claim decides, also before PyTorch's own decomposition: this plugin gives its operand back."""
    library = changed(tmp_path, "bessel", ('"stylegan::upfirdn2d.default"', '"aten::special_bessel_j0"'), ('{{"x", 0}', '{{"self", 0}'))

    class Bessel(torch.nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x.relu()) + 1

    x = torch.randn(1, 2, 5, 6)
    with torch.no_grad():
        found = torch.compile(Bessel(), backend="polyphase", options={"plugins": [library], "require_full": True})(x)
    assert torch.equal(found, x.relu() + 1)
    assert torch.equal(polyphase.compile(Bessel(), (x,), plugins=[library])(x), x.relu() + 1)


def test_an_operator_that_pytorch_would_take_apart(tmp_path):
    """Written in others by its author (CompositeImplicitAutograd), or decomposed by PyTorch's tables: the claim comes first."""
    library = changed(tmp_path, "composed", ('"stylegan::upfirdn2d.default"', '"composed::twice", "aten::frac"'), (".torch_claim_count = 1", ".torch_claim_count = 2"), ('{{"x", 0}', '{{"self", 0}'))
    made = torch.library.Library("composed", "DEF")
    made.define("twice(Tensor self) -> Tensor")
    made.impl("twice", lambda self: self * 2, "CompositeImplicitAutograd")

    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.ops.composed.twice(x.relu()) + torch.frac(x)

    x = torch.randn(1, 2, 5, 6)
    options = {"plugins": [library], "require_full": True}
    with torch.no_grad():
        assert torch.equal(torch.compile(Net(), backend="polyphase", options={"require_full": True})(x), x.relu() * 2 + x.frac())
        torch._dynamo.reset()
        assert torch.equal(torch.compile(Net(), backend="polyphase", options=options)(x), x.relu() + x)
    assert torch.equal(polyphase.compile(Net(), (x,), plugins=[library])(x), x.relu() + x)


def test_a_converter_of_the_users_gives_way(plugin):
    overload = torch.ops.stylegan.upfirdn2d.default
    polyphase.torch.converter(overload)(lambda x, f, up, down, padding, flip_filter=False, gain=1.0: x * 0)
    try:
        x = torch.randn(1, 2, 5, 5)
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(Alone(), backend="polyphase", options={"plugins": [plugin], "require_full": True})(x), Alone()(x))
        torch.testing.assert_close(polyphase.compile(Alone(), (x,), plugins=[plugin])(x), Alone()(x))
    finally:
        polyphase.torch.remove_converter(overload)


def test_compat_tests_it(plugin):
    x = torch.randn(1, 2, 6, 6)
    found = polyphase.compat(Alone(), (x,), plugins=[plugin])
    assert found.ok and [row["outcome"] for row in found.rows] == ["right"]
    assert not polyphase.compat(Alone(), (x,)).ok


def test_what_is_wrong_with_the_option(plugin, tmp_path):
    from polyphase.torch._settings import Settings

    with pytest.raises(polyphase.ArgumentError, match="plugins is '.*upfirdn2d.so'. Give a list of the paths"):
        Settings.of({"plugins": str(plugin)}, {})
    with pytest.raises(polyphase.Error, match="there is no plugin file '/nowhere.so'"):
        Settings.of({"plugins": ["/nowhere.so"]}, {})
    ours = changed(tmp_path, "ours", ('"stylegan::upfirdn2d.default"', '"aten::relu"'))
    with pytest.raises(polyphase.ArgumentError, match="a plugin claims aten.relu.default, which Polyphase converts itself"):
        Settings.of({"plugins": [ours]}, {})
    again = changed(tmp_path, "again", ('.name = "stylegan"', '.name = "other"'))
    with pytest.raises(polyphase.ArgumentError, match="stylegan.upfirdn2d.default is claimed twice by the plugins"):
        Settings.of({"plugins": [plugin, again]}, {})
