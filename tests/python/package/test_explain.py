"""polyphase.explain, and converters of the user's own."""

from __future__ import annotations

import json

import polyphase
import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.up = nn.ConvTranspose2d(4, 3, 3, 2, 1)

    def forward(self, x):
        y = torch.special.bessel_j0(self.up(torch.relu(self.down(x))))  # not taken
        return self.up(self.down(y).sigmoid())


def test_what_runs_where_and_why(monkeypatch):
    monkeypatch.setattr(polyphase._native, "compile_bytes", None)  # nothing is compiled
    found = polyphase.explain(Mixed().eval(), torch.randn(1, 3, 8, 9))
    assert (found["operators"], found["taken"], found["islands"], found["whole"]) == (7, 6, 2, False)
    [graph] = found["graphs"]
    assert [(row["where"], row["island"]) for row in graph["operators"]] == [("polyphase", 0)] * 3 + [("pytorch", None)] + [("polyphase", 1)] * 3
    refused = graph["operators"][3]
    assert refused["operator"] == "aten.special_bessel_j0.default" and refused["reason"] == "Polyphase has no converter for aten.special_bessel_j0.default."
    assert "@polyphase.torch.converter" in refused["advice"] and refused["line"].endswith(f"test_explain.py:{Mixed.forward.__code__.co_firstlineno + 1}")
    assert all(row["reason"] == "" for row in graph["operators"] if row["where"] == "polyphase")
    assert graph["eager"] is graph["break"] is None
    json.dumps(found)
    text = str(found)
    assert text.startswith("Polyphase runs 6 of 7 operators, in 2 engines; PyTorch runs 1.")
    rows = [line.split("  ")[1].strip() for line in text.splitlines() if line.startswith("  ") and line[2] != " "]
    assert rows == ["engine 0", "PyTorch", "engine 1"]


def test_every_refusal_has_a_reason_and_advice():
    """What the reader itself refuses of an operator that it has, and islands that are too small."""
    def wide(x):
        return torch.relu(x.view(1, 1, 1, 1, 1, 1, 1, 1, 2, -1) + 1).reshape(-1) * 2  # ten axes

    rows = polyphase.explain(wide, torch.randn(2, 3))["graphs"][0]["operators"]
    assert rows and all(row["where"] == "pytorch" and row["reason"].endswith(".") and row["advice"].endswith(".") for row in rows), rows
    assert any("axes" in row["reason"] or "rank" in row["reason"] for row in rows)
    rows = polyphase.explain(lambda x: torch.relu(x) * 2, torch.randn(2, 3))["graphs"][0]["operators"]
    assert [row["reason"] for row in rows] == ["it stands in an island of 2 operators, fewer than 3."] * 2
    assert rows[0]["advice"] == 'Give options={"min_block_size": 2} if the call is worth it.'
    assert polyphase.explain(lambda x: torch.relu(x) * 2, torch.randn(2, 3), options={"min_block_size": 2})["whole"]


def test_graph_breaks_and_training():
    def breaks(x):
        y = torch.relu(x) * 2 + 1
        torch._dynamo.graph_break()
        return torch.sigmoid(y) * 3 - 1

    found = polyphase.explain(breaks, torch.randn(2, 3))
    assert len(found["graphs"]) == 2 and not found["whole"] and found["taken"] == found["operators"] == 6
    assert "graph_break" in found["graphs"][0]["break"]["reason"] and "test_explain.py" in found["graphs"][0]["break"]["line"]
    assert "graph 1" in str(found) and "break" in str(found)
    found = polyphase.explain(nn.Sequential(nn.Linear(3, 3), nn.Dropout()).train(), torch.randn(2, 3))
    assert found["taken"] == 0 and found["graphs"][0]["eager"]["advice"] == "Call net.eval()." and "training mode" in str(found)


def test_arguments_by_name():
    class Named(nn.Module):
        def forward(self, x, *, gain):
            return torch.relu(x * gain) + 1

    assert polyphase.explain(Named(), torch.randn(3), gain=torch.tensor(2.0))["whole"]
    with pytest.raises(polyphase.ArgumentError, match="there is no option 'block'"):
        polyphase.explain(Named(), torch.randn(3), gain=torch.tensor(2.0), options={"block": 1})


def test_asking_leaves_no_traces():
    """Dynamo compiles a function only so many times; an explanation does not count, however often one asks."""
    net, x = nn.Conv2d(3, 4, 3).eval(), torch.randn(1, 3, 8, 8)
    times = torch._dynamo.config.recompile_limit + 2
    assert all(polyphase.explain(net, x)["whole"] for _ in range(times))
    seen = []

    def backend(graph, example_inputs):
        seen.append(graph)
        return graph.forward

    torch.compile(net, backend=backend)(x)
    assert len(seen) == 1


def test_numbers_that_change_between_calls():
    """Dynamo gives its first try up, in which the number is open."""
    conv, x = nn.Conv2d(3, 4, 3).eval(), torch.randn(1, 3, 8, 8)

    def call(x, p):
        return conv(x) * p if p > 0.7 else conv(x)

    compiled = torch.compile(call, backend="eager")
    for p in (0.0, 0.1, 0.2):
        compiled(x, p)
    found = polyphase.explain(call, x, 0.3)
    assert found["whole"] and len(found["graphs"]) == 1 and found["operators"] == 1


@torch.library.custom_op("polyphasetest::snake", mutates_args=())
def snake(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    return x + torch.sin(alpha * x) ** 2 / alpha


@snake.register_fake
def _(x, alpha):
    return torch.empty_like(x)


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose1d(3, 4, 4, 2, 1)
        self.alpha = nn.Parameter(torch.rand(4, 1) + 0.5)

    def forward(self, x):
        return torch.ops.polyphasetest.snake(self.up(x), self.alpha)


OVERLOAD = torch.ops.polyphasetest.snake.default


@pytest.fixture
def registered():
    called = []

    @polyphase.torch.converter(OVERLOAD)
    def convert(x, alpha):
        called.append(tuple(x.shape))
        return x + torch.sin(alpha * x) ** 2 / alpha

    yield called
    polyphase.torch.remove_converter(OVERLOAD)


def test_an_operator_of_ones_own(registered):
    net, x = Vocoder().eval(), torch.randn(2, 3, 10)
    with torch.no_grad():
        want = net(x)
        torch.testing.assert_close(polyphase.compile(net, (x,))(x), want, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(polyphase.compile(torch.export.export(net, (x,)))(x), want, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(torch.compile(net, backend="polyphase", options={"require_full": True})(x), want, atol=1e-5, rtol=1e-5)
    assert polyphase.explain(net, x)["whole"] and (2, 4, 20) in registered


def test_without_it_the_operator_is_missing():
    net, x = Vocoder().eval(), torch.randn(2, 3, 10)
    with pytest.raises(polyphase.UnsupportedError, match="polyphasetest.snake.default"):
        polyphase.compile(net, (x,))
    assert [row["operator"] for row in polyphase.explain(net, x)["graphs"][0]["operators"] if row["where"] == "pytorch"] == ["polyphasetest.snake.default"]


def test_taking_over_one_of_ours():
    net, x = nn.Sequential(nn.Conv1d(3, 4, 3), nn.GELU()).eval(), torch.randn(2, 3, 10)
    gelu = torch.ops.aten.gelu.default
    with pytest.raises(polyphase.ArgumentError, match="Polyphase has a converter for aten.gelu.default"):
        polyphase.torch.converter(gelu)

    @polyphase.torch.converter(gelu, take_over=True)
    def quick(x, approximate="none"):
        return x * torch.sigmoid(1.702 * x)

    try:
        with torch.no_grad():
            want = quick(net[0](x))
            torch.testing.assert_close(polyphase.compile(net, (x,))(x), want, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(torch.compile(net, backend="polyphase")(x), want, atol=1e-5, rtol=1e-5)
    finally:
        polyphase.torch.remove_converter(gelu)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(net, backend="polyphase")(x), net(x), atol=1e-5, rtol=1e-5)


def test_what_is_no_overload():
    for given in ("aten.gelu", torch.ops.aten.gelu, torch.relu):
        with pytest.raises(polyphase.ArgumentError, match="Give an overload"):
            polyphase.torch.converter(given)
    with pytest.raises(polyphase.ArgumentError, match="no converter of yours is registered for aten.relu.default"):
        polyphase.torch.remove_converter(torch.ops.aten.relu.default)
