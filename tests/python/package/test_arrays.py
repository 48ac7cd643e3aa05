"""Arrays go in and out of the Python package without copies, with any strides and every dtype."""

from __future__ import annotations

import array
import os
import subprocess
import sys
import textwrap
import threading

import ml_dtypes
import numpy as np
import polyphase
import pytest
import small_models
import torch
from onnx import TensorProto, helper

DTYPES = [("float32", TensorProto.FLOAT), ("float64", TensorProto.DOUBLE), ("float16", TensorProto.FLOAT16), ("bfloat16", TensorProto.BFLOAT16),
          ("int8", TensorProto.INT8), ("uint8", TensorProto.UINT8), ("int16", TensorProto.INT16), ("uint16", TensorProto.UINT16),
          ("int32", TensorProto.INT32), ("uint32", TensorProto.UINT32), ("int64", TensorProto.INT64), ("uint64", TensorProto.UINT64),
          ("bool", TensorProto.BOOL), ("float8_e4m3fn", TensorProto.FLOAT8E4M3FN), ("float8_e5m2", TensorProto.FLOAT8E5M2)]


@pytest.fixture(scope="module")
def same(tmp_path_factory):
    """y = x for a dtype, as an engine."""
    engines = {}

    def make(kind: int) -> polyphase.Engine:
        if kind not in engines:
            path = tmp_path_factory.mktemp("same") / "same.onnx"
            nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Transpose", ["t"], ["y"], perm=[1, 0])]
            engines[kind] = polyphase.compile(small_models.save(path, nodes, [("x", kind, ["A", "B"])], [("y", kind, None)]))
        return engines[kind]

    return make


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def some(name: str, *sizes: int) -> np.ndarray:
    return (np.arange(np.prod(sizes)).reshape(sizes) % (2 if name == "bool" else 7)).astype(numpy_dtype(name))


@pytest.mark.parametrize(("name", "kind"), DTYPES)
def test_every_dtype_of_numpy_and_pytorch(same, name, kind):
    engine = same(kind)
    assert engine.inputs[0].dtype == engine.outputs[0].dtype == name
    x = some(name, 3, 4)
    for given in (x, np.asfortranarray(x), x[::-1, ::2].copy()[::-1], np.repeat(x, 2, 1)[:, ::2]):
        y = engine(given)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y.astype(np.float64), given.astype(np.float64))
    tensor = torch.from_numpy(x.astype(np.float64)).to(getattr(torch, name))
    y = engine(tensor.T.contiguous().T)
    assert y.dtype == tensor.dtype
    assert torch.equal(y.to(torch.float64), tensor.to(torch.float64))


@pytest.mark.parametrize(("name", "kind"), DTYPES)
def test_every_dtype_into_memory_of_the_caller(same, name, kind):
    session = same(kind).session(1)
    x = some(name, 3, 4)
    y = np.zeros_like(x)
    assert session.run([x], [y])["y"] is y
    np.testing.assert_array_equal(y.astype(np.float64), x.astype(np.float64))
    tensor = torch.zeros(3, 4, dtype=getattr(torch, name))
    session.run([x], [tensor])
    np.testing.assert_array_equal(tensor.to(torch.float64).numpy(), x.astype(np.float64))


def test_any_strides(same):
    engine = same(TensorProto.FLOAT)
    base = np.random.default_rng(1).standard_normal((8, 9), dtype=np.float32)
    views = [base[::-1], base[:, ::-1], base[::-2, ::3], base.T, base[2:5, 3:4], np.broadcast_to(base[0], (5, 9)), np.broadcast_to(base[:, :1], (8, 6)),
             base[:0], base[:, :0], np.lib.stride_tricks.as_strided(base, (4, 3), (4, 4))]
    for view in views:
        np.testing.assert_array_equal(engine(view), view)
    for tensor in (torch.from_numpy(base).T, torch.from_numpy(base)[::2, 1:], torch.from_numpy(base)[:1].expand(5, 9)):
        assert torch.equal(engine(tensor), tensor)
    images = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert torch.equal(engine(images[0, 0]), images[0, 0])


def test_outputs_with_any_strides(same):
    session = same(TensorProto.FLOAT).session(1)
    x = np.random.default_rng(1).standard_normal((4, 6), dtype=np.float32)
    whole = np.full((8, 12), np.nan, np.float32)
    for view in (whole[::2, ::2], whole[::-2, ::-2], whole.reshape(12, 8).T[:4, :6], whole[4:, 6:]):
        view[...] = np.nan
        session.run([x], [view])
        np.testing.assert_array_equal(view, x)
    pair = np.zeros((4, 12), np.float32)
    session.run([x], [pair[:, ::2]])
    session.run([pair[:, ::2]], [pair[:, 1::2]])  # interlocked, but no element is shared
    np.testing.assert_array_equal(pair[:, 1::2], x)


def test_a_session_is_called_as_its_engine_is(same, tmp_path):
    two = polyphase.compile(small_models.two(tmp_path / "two.onnx"))
    one = same(TensorProto.FLOAT)
    a, b = np.random.default_rng(0).standard_normal((2, 2, 4)).astype(np.float32)
    names = [port.name for port in two.inputs]
    for session, engine, args, named in ((one.session(1), one, (a,), {}), (two.session(1), two, (a, b), {}), (two.session(1), two, (a,), {names[1]: b})):
        found, expected = session(*args, **named), engine(*args, **named)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(polyphase.ArgumentError, match=f"'{names[1]}' is missing"):
        two.session(1)(a)


def test_outputs_that_share_elements_are_refused(tmp_path):
    session = polyphase.compile(small_models.two(tmp_path / "two.onnx")).session(1)
    a, memory = np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32)
    with pytest.raises(polyphase.ArgumentError, match="output 1 overlaps that of output 0"):
        session.run([a, a], [memory[:2], memory[1:]])
    with pytest.raises(polyphase.ArgumentError, match="output 0 overlaps input 1"):
        session.run([a, memory[:2]], [memory[1:], np.zeros((2, 4), np.float32)])
    with pytest.raises(polyphase.ArgumentError, match="overlaps itself"):
        session.run([a, a], [np.lib.stride_tricks.as_strided(memory, (2, 4), (0, 4)), np.zeros((2, 4), np.float32)])
    frozen = np.zeros((2, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(polyphase.ArgumentError, match="'sum' is read-only"):
        session.run([a, a], [frozen, np.zeros((2, 4), np.float32)])
    np.testing.assert_array_equal(session.run([frozen, a])["sum"], 0)  # as an input it will do


def test_buffers_and_dlpack_of_others(same):
    engine = same(TensorProto.FLOAT)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for given in (memoryview(x), memoryview(bytearray(x.tobytes())).cast("f", (3, 4)), memoryview(x)[::-1]):
        np.testing.assert_array_equal(engine(given), np.asarray(given))

    class Shares:
        """Gives old capsules or versioned ones, and nothing else."""

        def __init__(self, owner, versioned):
            self.owner, self.versioned = owner, versioned

        def __dlpack__(self, **options):
            if not self.versioned:
                options.pop("max_version", None)
            return self.owner.__dlpack__(**({"max_version": (1, 0)} | options) if self.versioned else options)

        def __dlpack_device__(self):
            return self.owner.__dlpack_device__()

    for owner in (x, torch.from_numpy(x)):
        for versioned in (False, True):
            np.testing.assert_array_equal(engine(Shares(owner, versioned)), x)
    np.testing.assert_array_equal(engine(x.__dlpack__()), x)
    numbers = same(TensorProto.INT64)
    assert numbers(memoryview(array.array("q", range(6))).cast("B").cast("q", (2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_tensors_of_training(same):
    engine = same(TensorProto.FLOAT)
    x = torch.ones(2, 3, requires_grad=True)
    y = engine(x)
    assert not y.requires_grad and torch.equal(y, x.detach())
    assert torch.equal(engine(torch.nn.Parameter(x.detach())), x.detach())
    negated = torch.view_as_complex(torch.arange(12.0).reshape(2, 3, 2)).conj().imag
    assert negated.is_neg() and torch.equal(engine(negated), negated.clone())


class Own(torch.Tensor):
    """A subclass, which goes another way than plain tensors."""


@pytest.mark.parametrize("full", [torch.full, lambda sizes, value: np.full(sizes, value, np.float32)], ids=["torch", "numpy"])
def test_arrays_whose_last_owner_lets_go_during_a_run(same, full):
    """Somebody else's thread puts other arrays into the list that a run was given: the run keeps those that it took alive."""
    session = same(TensorProto.FLOAT).session(1)
    given = [full((256, 1024), 1.0)]
    stop = threading.Event()

    def exchange():
        while not stop.is_set():
            given[0] = full((256, 1024), 1.0)

    other = threading.Thread(target=exchange)
    other.start()
    try:
        for _ in range(500):
            assert session.run(given)["y"].sum() == 256 * 1024
    finally:
        stop.set()
        other.join()


def test_subclasses_of_tensors(same):
    engine = same(TensorProto.FLOAT)
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(engine(x.as_subclass(Own)), x)
    assert torch.equal(engine(torch.nn.Buffer(x)), x)


def test_tensors_without_elements_or_of_inference(same):
    engine = same(TensorProto.FLOAT)
    for sizes in ((0, 3), (3, 0), (0, 0)):
        assert engine(torch.zeros(sizes)).shape == sizes == engine(np.zeros(sizes, np.float32)).shape
    with torch.inference_mode():
        x = torch.ones(2, 3) * 2
        assert torch.equal(engine(x), x)
    assert torch.equal(engine(x), torch.full((2, 3), 2.0))
    with torch.autocast("cpu"):
        assert engine(torch.ones(2, 3)).dtype == torch.float32


def test_bfloat16_without_ml_dtypes(same, monkeypatch):
    engine = same(TensorProto.BFLOAT16)
    x = some("bfloat16", 2, 3)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(polyphase.UnsupportedError, match="Install ml_dtypes, or give PyTorch tensors."):
        engine(x)
    assert engine(torch.ones(2, 3, dtype=torch.bfloat16)).dtype == torch.bfloat16
    y = np.zeros_like(x)
    engine.session(1).run([x], [y])
    assert y.tobytes() == x.tobytes()


def test_four_bit_integers_go_as_bytes(tmp_path):
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    for kind, name, carrier in ((TensorProto.INT4, "int4", np.int8), (TensorProto.UINT4, "uint4", np.uint8)):
        graph = helper.make_graph(nodes, "four", [helper.make_tensor_value_info("x", kind, ["A"])], [helper.make_tensor_value_info("y", kind, ["A"])])
        engine = polyphase.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
        assert engine.inputs[0].dtype == engine.outputs[0].dtype == name
        x = np.array([1, 7, -8 if name == "int4" else 15], carrier)
        y = engine(x)
        assert y.dtype == carrier
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(engine(x.astype(getattr(ml_dtypes, name))), x)
        assert torch.equal(engine(torch.from_numpy(x)), torch.from_numpy(x))


def test_outputs_live_as_long_as_they_are_held(same):
    x = np.random.default_rng(1).standard_normal((64, 64), dtype=np.float32)
    engine = polyphase.load(same(TensorProto.FLOAT).to_bytes())
    y, tensor = engine(x), engine(torch.from_numpy(x))
    assert y.ctypes.data % 64 == 0 and tensor.data_ptr() % 64 == 0 and y.flags.writeable and y.flags.c_contiguous
    del engine
    part = y[3:5]
    del y
    for _ in range(10):
        np.full((64, 64), 7, np.float32)
    np.testing.assert_array_equal(part, x[3:5])
    np.testing.assert_array_equal(tensor.numpy(), x)


def test_inputs_may_go_after_the_call(same):
    engine = same(TensorProto.FLOAT)
    data = bytearray(np.ones((2, 3), np.float32).tobytes())
    y = engine(memoryview(data).cast("f", (2, 3)))
    data.extend(b"free")  # refused while somebody still looks at it
    np.testing.assert_array_equal(y, 1)
    x = np.ones((2, 3), np.float32)
    before = sys.getrefcount(x)
    for _ in range(10):
        engine(x)
    assert sys.getrefcount(x) == before


MEASURE = """
import ctypes, sys
import numpy as np, polyphase, small_models, pathlib
from onnx import TensorProto, helper
folder = pathlib.Path(sys.argv[1])

def peak(work):  # bytes that the process grows by at most
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    read = lambda key: int(pathlib.Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) * 1024
    before = read("VmRSS")
    work()
    return read("VmHWM") - before

def engine(nodes, inputs, outputs):
    return polyphase.compile(small_models.save(folder / "model.onnx", nodes, inputs, outputs)).session(1)

shrink = engine([helper.make_node("ReduceMax", ["x"], ["y"], axes=[0, 1], keepdims=0)], [("x", TensorProto.FLOAT, ["A", "B"])], [("y", TensorProto.FLOAT, None)])
grow = engine([helper.make_node("Expand", ["x", "s"], ["y"])], [("x", TensorProto.FLOAT, [1]), ("s", TensorProto.INT64, [2])], [("y", TensorProto.FLOAT, ["A", "B"])])
mib = 2**20
large = np.ones((64, mib), np.float32)  # 256 MiB
shrink.run([large[:, :1024]])
grow.run([np.ones(1, np.float32), np.array([2, 2])])
print(peak(lambda: shrink.run([large])) // mib, peak(lambda: shrink.run([large[:, ::-1]])) // mib)
kept = []
print(peak(lambda: kept.append(grow.run([np.ones(1, np.float32), np.array([64, mib])])["y"])) // mib)
print(peak(lambda: grow.run([np.ones(1, np.float32), np.array([64, mib])], [large])) // mib)
"""


def test_nothing_is_copied_on_the_way(tmp_path):
    """Peaks of memory: 256 MiB in, 256 MiB out. Reversed rows show that a copy would be seen."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(MEASURE), str(tmp_path)], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.returncode == 0, done.stderr
    aligned, reversed_rows, output, into = (int(word) for word in done.stdout.split())
    assert aligned < 32 and reversed_rows > 200
    assert 200 < output < 300
    assert into < 32
