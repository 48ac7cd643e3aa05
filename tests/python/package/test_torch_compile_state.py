"""torch.compile(net, backend="polyphase") over time: weights that change, equal blocks, threads, forks, engines on disk."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import polyphase
import pytest
import torch
from counted_backend import Call, Counter, Odd, assert_same, deconvolution
from polyphase.torch import _cache


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)


@pytest.mark.parametrize("change", ["load_state_dict", "in place", "data", "assign", "optimizer", "buffer"])
def test_new_weights_are_seen_at_the_next_call(change):
    net, x = deconvolution(), torch.randn(1, 3, 6, 6)
    fast = torch.compile(net, backend="polyphase")
    with torch.no_grad():
        assert_same(fast(x), net(x))
        if change in ("load_state_dict", "assign"):
            net.load_state_dict(deconvolution().state_dict(), assign=change == "assign")
        elif change == "in place":
            net[0].weight.mul_(-2)
        elif change == "data":
            net[0].weight.data = torch.randn_like(net[0].weight)
        elif change == "buffer":
            net[1].running_mean += 3
        else:
            net[3].weight.grad = torch.ones_like(net[3].weight)
            torch.optim.SGD(net.parameters(), lr=0.5).step()
        assert_same(fast(x), net(x))


def test_weights_that_change_again_are_taken_without_compiling(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path))
    compiled = []
    monkeypatch.setattr(polyphase._native, "compile_bytes", lambda *given, real=polyphase._native.compile_bytes: compiled.append(1) or real(*given))
    net, x = Odd().eval(), torch.randn(1, 3, 6, 6)
    fast = torch.compile(net, backend="polyphase")
    counts = []
    with torch.no_grad():
        for step in range(5):
            assert_same(fast(x), net(x))
            counts.append(len(compiled))
            for weight in net.parameters():
                weight.mul_(-0.9)
    assert counts == [2, 4, 4, 4, 4]  # two islands, compiled anew once, to take what comes after
    assert len(list(tmp_path.glob("*.ppe"))) == 2


def test_equal_blocks_share_a_graph_and_keep_their_engines():
    blocks = [Call(lambda self, y: torch.relu(y) + 1).eval() for _ in range(3)]
    counter, x = Counter(), torch.randn(1, 3, 6, 6)
    for block in blocks:
        block.compile(backend=counter)
    with torch.no_grad():
        for _ in range(3):
            for block in blocks:
                assert_same(block(x), block.forward(x))
    assert len(counter.graphs) <= 3 and counter.engines() == 3


def test_weights_of_inference_mode():
    """They do not count their changes."""
    with torch.inference_mode():
        net = deconvolution()
        fast = torch.compile(net, backend="polyphase")
        x = torch.randn(1, 3, 6, 6)
        for _ in range(3):
            assert_same(fast(x), net(x))
            net[0].weight.mul_(-1.5)


def test_a_forked_child_goes_on_with_threads_of_its_own():
    program = """
import os, torch, warnings
warnings.simplefilter("ignore")
net, x = torch.nn.ConvTranspose2d(3, 4, 3, 2).eval(), torch.randn(1, 3, 5, 6)
torch.set_num_threads(1)
fast = torch.compile(net, backend="polyphase")
with torch.no_grad():
    want = fast(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(fast(x), want) else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tasks = len(os.listdir("/proc/self/task"))
    torch.compile(torch.nn.Sequential(net, torch.nn.ReLU()).eval(), backend="polyphase")(x)
    assert len(os.listdir("/proc/self/task")) == tasks  # one thread is PyTorch's number, and it is the caller's
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_calls_from_many_threads():
    net = deconvolution()
    fast = torch.compile(net, backend="polyphase")

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            drawn = [torch.randn(1, 3, 6, 6, generator=generator) for _ in range(20)]
            return all(torch.allclose(fast(x), net(x), atol=1e-4) for x in drawn)

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(work, range(6)))


def test_compiled_islands_are_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path / "islands"))
    compiled = []
    monkeypatch.setattr(polyphase._native, "compile_bytes", lambda *given, real=polyphase._native.compile_bytes: compiled.append(1) or real(*given))

    def run(net, **options):
        torch._dynamo.reset()
        with torch.no_grad():
            x = torch.randn(1, 3, 6, 6)
            assert_same(torch.compile(net, backend="polyphase", options=options)(x), net(x))
        return len(compiled)

    net = deconvolution()
    assert [run(net, cache=False), run(net), run(net)] == [1, 2, 2]
    assert run(deconvolution()) == 3  # other weights
    [first, second] = (tmp_path / "islands").glob("*.ppe")
    first.write_bytes(b"damaged")
    second.write_bytes(second.read_bytes()[:-9])
    assert run(net) == 4
    assert not list((tmp_path / "islands").glob(".*"))
    monkeypatch.setenv("POLYPHASE_CACHE_BYTES", "1")
    run(deconvolution())
    assert len(list((tmp_path / "islands").glob("*.ppe"))) == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path / "file" / "no folder"))
    run(deconvolution())
    monkeypatch.delenv("POLYPHASE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert str(_cache.folder()) == "/x/polyphase"
