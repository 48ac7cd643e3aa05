"""torch.compile(net, backend="polyphase") against the network itself: the numbers, what runs where, and how often it compiles."""

from __future__ import annotations

import functools
import gc
import resource
import subprocess
import sys
import time
import warnings

import pytest
import torch
from counted_backend import Call, Counter, Odd, assert_same, deconvolution
from torch import nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)


def test_it_is_found_without_an_import():
    program = """
import torch
net, x = torch.nn.ConvTranspose2d(3, 4, 3, 2, output_padding=1).eval(), torch.randn(1, 3, 5, 6)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(net, backend="polyphase", options={"require_full": True})(x), net(x), atol=1e-5, rtol=1e-5)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_whole_networks():
    net, x = deconvolution(output_padding=1), torch.randn(1, 3, 8, 9)
    with torch.no_grad():
        assert_same(torch.compile(net, backend="polyphase", options={"require_full": True})(x), net(x))
    with torch.inference_mode():
        assert_same(torch.compile(net, backend="polyphase")(x), net(x))


def test_what_is_not_taken_runs_in_pytorch():
    counter, net, x = Counter(), Odd().eval(), torch.randn(1, 3, 8, 9)
    with torch.no_grad():
        assert_same(torch.compile(net, backend=counter)(x), net(x))
    [graph] = counter.graphs
    assert len(graph.plan.partition.islands) == 2 and counter.engines() == 2
    assert [node.name for node in graph.plan.left_to_pytorch] == ["special_bessel_j0"]


def test_require_full_names_what_is_left():
    with torch.no_grad(), pytest.raises(Exception, match="require_full is set, but aten.special_bessel_j0.default runs in PyTorch: .*@polyphase.torch.converter"):
        torch.compile(Odd().eval(), backend="polyphase", options={"require_full": True})(torch.randn(1, 3, 8, 9))


@pytest.mark.parametrize("options", [{"full": True}, {"min_block_size": 0}, {"min_block_size": True}, {"require_full": 1}, {"cache": "no"},
                                     {"torch_executed_ops": "aten.relu.default"}])
def test_options_that_are_not_there(options):
    with torch.no_grad(), pytest.raises(Exception, match="option"):
        torch.compile(deconvolution(), backend="polyphase", options=options)(torch.randn(1, 3, 8, 9))


def test_islands_that_are_too_small():
    x = torch.randn(2, 3)

    def two(x):
        return torch.relu(x) * 2

    lone = nn.ConvTranspose2d(3, 4, 3).eval()
    picture = torch.randn(1, 3, 4, 4)
    for function, given, options, islands in ((two, x, {}, 0), (two, x, {"min_block_size": 2}, 1), (lone, picture, {}, 1), (lone, picture, {"min_block_size": 2}, 0),
                                              (two, x, {"min_block_size": 1, "torch_executed_ops": ["aten.mul.Tensor"]}, 1)):
        torch._dynamo.reset()
        counter = Counter(**options)
        with torch.no_grad():
            assert_same(torch.compile(function, backend=counter)(given), function(given))
        assert len(counter.graphs[0].plan.partition.islands) == islands
    assert [node.name for node in counter.graphs[0].plan.left_to_pytorch] == ["mul"]


def test_marked_sizes_are_compiled_once():
    counter, net = Counter(require_full=True), deconvolution(output_padding=1)
    fast = torch.compile(net, backend=counter)
    with torch.no_grad():
        for size in range(5, 15):
            x = torch.randn(2, 3, size, 2 * size)
            for axis in (2, 3):
                torch._dynamo.mark_dynamic(x, axis)
            assert_same(fast(x), net(x))
    assert len(counter.graphs) == 1 and counter.engines() == 1


@pytest.mark.parametrize("make", [lambda: deconvolution(output_padding=1), lambda: Odd().eval()])
def test_unmarked_sizes_are_compiled_twice_at_most(make):
    counter, net = Counter(), make()
    fast = torch.compile(net, backend=counter)
    with torch.no_grad():
        for size in range(4, 24):
            x = torch.randn(2, 3, size, size + 3)
            assert_same(fast(x), net(x))
    assert len(counter.graphs) <= 2


def test_sizes_that_no_input_of_an_island_has():
    """The second island is given the first one's sizes as numbers."""
    def resized(x, y):
        values = torch.special.bessel_j0(y)
        return torch.nn.functional.interpolate(values.relu() * 2 + 1, size=(x.shape[2] * 2, x.shape[3] + 1)).sigmoid() - 1

    counter = Counter()
    fast = torch.compile(resized, backend=counter, dynamic=True)
    with torch.no_grad():
        for height, width in ((4, 5), (7, 6), (9, 3)):
            x, y = torch.randn(1, 2, height, width), torch.randn(1, 2, width + 2, height)
            assert_same(fast(x, y), resized(x, y))
    assert len(counter.graphs) == 1 and len(counter.graphs[0].plan.partition.islands) == 1


def test_graph_breaks():
    class Breaks(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = deconvolution(), deconvolution()

        def forward(self, x):
            y = self.first(x)
            torch._dynamo.graph_break()
            return self.second(y)

    counter, net, x = Counter(), Breaks().eval(), torch.randn(1, 3, 6, 6)
    with torch.no_grad():
        assert_same(torch.compile(net, backend=counter)(x), net(x))
    assert counter.engines() == 2


class Writes(nn.Module):
    """In-place writes to an input and a buffer, views of both, one output twice, one that is an input's view."""

    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(3, 3, 3, padding=1)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x, memory):
        self.calls += 1
        memory[:, 1:] = x[:, 1:] * 2
        window = x[:, :, 1:3]
        window.add_(1)
        y = self.conv(x).relu() + self.calls.view(1, 3, 1, 1)
        z = y.view(y.shape[0], -1)
        y.mul_(2)
        return y, z, y, window, memory.permute(0, 2, 3, 1)


def test_writes_views_and_aliases():
    counter, net, other = Counter(), Writes().eval(), Writes().eval()
    other.load_state_dict(net.state_dict())
    fast = torch.compile(other, backend=counter)
    with torch.no_grad():
        for _ in range(5):
            x, memory = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)
            mine, my_memory = x.clone(), memory.clone()
            want, found = net(x, memory), fast(mine, my_memory)
            assert_same(found, want)
            assert_same((mine, my_memory, other.calls), (x, memory, net.calls))
            assert found[0].data_ptr() == found[1].data_ptr() and found[0] is found[2]
            assert found[3].data_ptr() == mine.data_ptr() + want[3].storage_offset() * 4 and found[4].data_ptr() == my_memory.data_ptr()
    assert counter.engines() == len(counter.graphs) == 1  # not one for each value of the buffer


def test_autocast():
    net, x = deconvolution(output_padding=1), torch.randn(1, 3, 8, 9)
    fast = torch.compile(net, backend="polyphase")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found, want = fast(x), net(x)
    assert found.dtype == want.dtype == torch.bfloat16
    torch.testing.assert_close(found, want, atol=0.05, rtol=0.05)
    with torch.no_grad():
        assert_same(fast(x), net(x))


@pytest.mark.parametrize("layout", ["channels_last", "sliced", "transposed", "expanded"])
def test_layouts(layout):
    net, x = deconvolution(output_padding=1), torch.randn(2, 3, 8, 10)
    x = {"channels_last": x.to(memory_format=torch.channels_last), "sliced": torch.randn(2, 4, 16, 10)[:, 1:, ::2], "transposed": x.transpose(2, 3),
         "expanded": x[:1].expand(2, 3, 8, 10)}[layout]
    for dynamic in (False, True):
        with torch.no_grad():
            found, want = torch.compile(net, backend="polyphase", dynamic=dynamic)(x), net(x)
            torch.testing.assert_close(found, want, atol=1e-4, rtol=1e-4)
            assert layout in ("sliced", "expanded") or found.stride() == want.stride()


def peak_growth(work) -> int:
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_an_input_is_not_copied(memory_format):
    """A network whose only large tensor is its input; were it copied, the process would grow by as much."""
    counter, fast_input = Counter(require_full=True), torch.rand(2, 16, 1024, 1024).contiguous(memory_format=memory_format)

    def net(x):
        return torch.sigmoid(x.sum(dim=(1, 2, 3)) * 0.001)

    fast = torch.compile(net, backend=counter, dynamic=True)
    with torch.no_grad():
        fast(torch.rand(2, 16, 8, 8).contiguous(memory_format=memory_format))
        want = net(fast_input)
        grown = peak_growth(lambda: torch.testing.assert_close(fast(fast_input), want))
    assert len(counter.graphs) == 1 and grown < fast_input.nbytes // 4, f"{grown} bytes for an input of {fast_input.nbytes}"


def test_engines_get_the_callers_memory_and_give_their_own():
    counter, net, x = Counter(), deconvolution(), torch.randn(1, 3, 8, 8)
    fast = torch.compile(net, backend=counter)
    seen = []

    def note(engine, *given):
        seen.append((given[0].data_ptr(), engine(*given)))
        return seen[-1][1]

    with torch.no_grad():
        fast(x)
        current = counter.graphs[0]._current
        current.islands = [functools.partial(note, current.islands[0])]
        y = fast(x)
    assert seen[0][0] == x.data_ptr() and seen[0][1].data_ptr() == y.data_ptr()


def test_training_goes_back_to_pytorch_with_one_warning():
    net, x = deconvolution(), torch.randn(1, 3, 8, 8)
    fast = torch.compile(net, backend="polyphase")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            y = fast(x)
            y.sum().backward()
    assert net[0].weight.grad is not None
    assert [str(one.message)[:58] for one in said if "polyphase" in str(one.message)] == ["polyphase: the network runs in PyTorch, because its call n"]
    with torch.no_grad():
        assert_same(fast(x), net(x))
    net.train()
    running = net[1].running_mean.clone()
    with torch.no_grad(), pytest.warns(UserWarning, match=r"training mode \(a batch normalisation.*net.eval\(\)"):
        fast(x)
    assert not torch.equal(running, net[1].running_mean)
    drop = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.Linear(3, 3))
    with torch.no_grad(), pytest.warns(UserWarning, match="a dropout is active"):
        torch.manual_seed(7)
        found = torch.compile(drop, backend="polyphase")(torch.ones(2, 3))
        torch.manual_seed(7)
        assert_same(found, drop(torch.ones(2, 3)))


def written(self, y):
    y[:, 0] = 0
    y[:, 1, 2:4] *= 2
    y[..., 1::3] += 1
    y[:, :, -3:-1] = y[:, :, :2].clone()
    return y


PICTURE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
FORMS = {
    "constants": (lambda: Call(lambda self, y: y * torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1) + torch.arange(8)), [(PICTURE,)]),
    "attribute": (lambda: Call(lambda self, y: y * self.scale + 1), [(PICTURE,)]),
    "numbers": (lambda: Call(lambda self, y, gain, count: y * gain + count), [(PICTURE, 0.5, 3), (PICTURE, 0.7, 4), (PICTURE, 0.9, 5)]),
    "written": (lambda: Call(written), [(PICTURE,)]),
    "empty": (lambda: Call(lambda self, y: torch.relu(y)), [(PICTURE[:0],), (PICTURE,)]),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, batch_first=True, norm_first=True, activation="gelu"), [(torch.randn(2, 5, 16),)]),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.ConvTranspose2d(3, 4, 3)), [(PICTURE,)]),
    "upsampling": (lambda: Call(lambda self, y: nn.functional.interpolate(y, scale_factor=2)), [(PICTURE,), (PICTURE[:, :, :5, :7],)]),
    "other results": (lambda: Call(lambda self, y: {"sign": y > 0, "place": [y.argmax(1)], "weight": self.conv.weight, "y": y.double()}), [(PICTURE,)]),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_networks(name):
    make, calls = FORMS[name]
    counter, net = Counter(require_full=True), make().eval()
    fast = torch.compile(net, backend=counter)
    with torch.no_grad():
        for arguments in calls:
            torch.testing.assert_close(fast(*arguments), net(*arguments), atol=1e-4, rtol=1e-4)
    assert counter.engines() == len(counter.graphs) <= 2


def test_random_numbers_are_pytorchs():
    counter, net = Counter(), Call(lambda self, y: torch.relu(self.conv(y + torch.randn_like(y)) * torch.rand(1))).eval()
    fast = torch.compile(net, backend=counter)
    with torch.no_grad():
        torch.manual_seed(5)
        want = [net(PICTURE) for _ in range(2)]
        torch.manual_seed(5)
        assert_same([fast(PICTURE) for _ in range(2)], want)
    assert [node.name for node in counter.graphs[0].plan.left_to_pytorch] == ["randn_like", "rand"]


def test_complex_numbers_stay_inside_of_islands():
    def inside(x):
        z = torch.fft.rfftn(torch.relu(x), dim=(-2, -1))
        return torch.fft.irfftn(z * torch.exp(1j * z.abs()), dim=(-2, -1)) + 1

    def determinants(x):
        return torch.linalg.det(torch.fft.fft(x.sin().cos().tanh())).abs().exp() * 2 + 1

    x = torch.randn(2, 3, 6, 6)
    cases = ((inside, {"require_full": True}), (lambda x: torch.fft.fft(torch.relu(x) * 2 + 1), {}), (determinants, {"min_block_size": 1}))
    for function, options in cases:
        torch._dynamo.reset()
        with torch.no_grad():
            assert_same(torch.compile(function, backend="polyphase", options=options)(x), function(x))


def test_a_call_costs_little():
    """Beside what Dynamo itself takes, measured with a backend that gives one tensor back: a ratio, for machines differ."""
    net, x = nn.ConvTranspose2d(1, 1, 1).eval(), torch.randn(1, 1, 2, 2)
    answer = [torch.zeros(1, 1, 2, 2)]
    functions = [torch.compile(net, backend=one) for one in (lambda graph, given: lambda *_: answer, "polyphase")]

    def seconds(function) -> float:
        start = time.perf_counter()
        for _ in range(20):
            function(x)
        return (time.perf_counter() - start) / 20

    with torch.no_grad():
        best = [min(times) for times in zip(*[[seconds(function) for function in functions] for _ in range(400)])]
    assert best[1] < 3.2 * best[0], f"{best[0] * 1e6:.1f} µs of Dynamo, {best[1] * 1e6:.1f} with an engine"


class ExchangesItsWeights(nn.Module):
    """As networks do that fold their branches into one convolution on the way."""

    def __init__(self):
        super().__init__()
        self.deep, self.folded = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)

    def forward(self, x):
        self.folded.weight.data = self.deep.weight * 2
        return self.folded(x)


class Strided(nn.Module):
    """Elements by their places in memory, of a result and of an input."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        return torch.relu(y.as_strided((y.shape[0], 3, 4, 3), y.stride(), 1)) + 1, x.as_strided((3, 2), (2, 1), 1) * 2 + 1


@pytest.mark.parametrize("given", ["row-major", "channels_last", "sliced"])
def test_as_strided_counts_in_pytorchs_memory(given):
    x = torch.randn(2, 2, 6, 5)
    x = x.contiguous(memory_format=torch.channels_last) if given == "channels_last" else torch.randn(2, 4, 6, 5)[:, 1:3] if given == "sliced" else x
    torch._dynamo.reset()
    counter, net = Counter(min_block_size=1), Strided().eval()
    with torch.no_grad():
        assert_same(torch.compile(net, backend=counter)(x), net(x))
    [graph] = counter.graphs
    # Of an input that is a part of something else an engine does not see all memory.
    assert [str(node.target) for node in graph.plan.left_to_pytorch] == (["aten.as_strided.default"] if given == "sliced" else [])


def test_what_pytorch_cannot_take_apart_runs_in_pytorch():
    net, x = ExchangesItsWeights().eval(), torch.randn(1, 3, 6, 6)
    with torch.no_grad():
        with pytest.warns(UserWarning, match="PyTorch cannot take its graph apart"):
            found = torch.compile(net, backend="polyphase")(x)
        assert torch.equal(found, net(x))
        torch._dynamo.reset()
        with pytest.raises(Exception, match="PyTorch cannot take its graph apart"):
            torch.compile(net, backend="polyphase", options={"require_full": True})(x)


def test_numbers_that_change_between_calls():
    """Dynamo first keeps such a number open, and traces again with the number where PyTorch cannot: stochastic depth asks whether it is 0."""
    conv, x = nn.Conv2d(3, 4, 3).eval(), torch.randn(1, 3, 8, 8)

    def call(x, p):
        return conv(x) * p if p > 0.7 else torch.relu(conv(x))

    counter = Counter(min_block_size=1)
    compiled = torch.compile(call, backend=counter)
    with torch.no_grad():
        for p in (0.0, 0.1, 0.2, 1.5, 2.5):
            assert_same(compiled(x, p), call(x, p))
    assert counter.graphs and not any(graph.plan.left_to_pytorch for graph in counter.graphs)
