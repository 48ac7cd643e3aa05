"""What the Python package refuses: every time polyphase.Error with code, message, hint and node, and never the end of the interpreter."""

from __future__ import annotations

import ctypes
import pickle
import warnings

import errors_page
import numpy as np
import onnx
import polyphase
import pytest
import small_models
import torch
from onnx import TensorProto, helper


pytestmark = pytest.mark.usefixtures("up")  # whose file many tests read

said: list[str] = []


def refusal(call, *arguments, **named) -> polyphase.Error:
    with pytest.raises(polyphase.Error) as caught:
        call(*arguments, **named)
    error = caught.value
    assert error.message.endswith((".", ")")) and error.hint.endswith("."), str(error)
    assert str(error).startswith(f"node '{error.node}': " if error.node else error.message)
    said.append(str(error))
    return error


X = np.zeros((1, 3, 4, 5), np.float32)


class Strange:
    """An object whose every attribute is a fault."""

    def __dlpack__(self, **_):
        raise RuntimeError("no")

    def __dlpack_device__(self):
        raise RuntimeError("never")


class NoCapsule(Strange):
    def __dlpack__(self, **_):
        return 7


NO_ARRAYS = [
    ([1.0, 2.0], "input 'x' is a list, which is no array."),
    ("text", "input 'x' is a str, which is no array."),
    (None, "input 'x' is a NoneType, which is no array."),
    (3.5, "input 'x' is a float, which is no array."),
    (np.array([object()]), "input 'x' holds elements of type object."),
    (np.array(["text"]), "input 'x' holds elements of type <U4."),
    (np.zeros(3, np.complex64), "input 'x' holds elements of type complex64."),
    (np.zeros(3, "datetime64[s]"), "input 'x' holds elements of type datetime64[s]."),
    (np.zeros(3, [("a", "f4"), ("b", "i4")]), "input 'x' holds elements of type [('a', '<f4'), ('b', '<i4')]."),
    (X.astype(">f4"), "input 'x' has the byte order of another machine (>f4)."),
    (np.ndarray((2, 2), np.float32, bytearray(100), strides=(9, 5)), "input 'x' has strides of (9, 5) bytes, no multiples of its elements' 4."),
    (X.astype(np.float64), "input 'x' is f64; expected f32."),
    (np.zeros((1,) * 9, np.float32), "input 'x' has rank 9"),
    (torch.zeros(1, 3, 4, 5, device="meta"), "input 'x' lies on device 'meta'; expected the CPU."),
    (torch.zeros(1, 3, 4, 5).to_sparse(), "input 'x' is a PyTorch tensor of layout torch.sparse_coo."),
    (torch.zeros(3, dtype=torch.complex64), "input 'x' is a PyTorch tensor of type torch.complex64 that cannot be read."),
    (torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8), "input 'x' is a PyTorch tensor of type torch.qint8"),
    (Strange(), "input 'x' is a test_refusals.Strange that does not share its memory: never."),
    (NoCapsule(), "input 'x' is a test_refusals.NoCapsule that does not share its memory: never."),
]


@pytest.mark.parametrize(("given", "words"), NO_ARRAYS, ids=[words[:60] for _, words in NO_ARRAYS])
def test_what_is_no_array_of_the_right_kind(up, given, words):
    with pytest.raises(polyphase.ArgumentError) as caught:
        up(given)
    said.append(str(caught.value))
    assert words in str(caught.value) and caught.value.code == "invalid_argument" and isinstance(caught.value, ValueError)


def test_another_device(up):
    class OnGpu:
        def __dlpack__(self, **_):
            raise BufferError("it lies on the GPU")

        def __dlpack_device__(self):
            return (2, 0)

    assert refusal(up, OnGpu()).message == "input 'x' lies on DLPack device type 2; expected the CPU."


def test_wrong_shapes_name_the_input(up):
    error = refusal(up, X[:, :2])
    assert error.code == "shape_mismatch" and "input 'x' has the shape [1, 2, 4, 5]; expected [N, 3, H, W]" in error.message
    assert refusal(up, X[0]).code == refusal(up, b"bytes").code == "shape_mismatch"


def test_arguments(up):
    assert refusal(up).message == "input 'x' is missing."
    assert refusal(up, X, X).message == "the engine takes 1 inputs, found 2."
    assert refusal(up, X, x=X).message == "input 'x' is given twice."
    assert refusal(up, z=X).message == "there is no input 'z'."
    session = up.session(1)
    assert refusal(session.run, {"z": X}).message == "there is no input 'z'."
    assert refusal(session.run, {3: X}).message == "the inputs have a key that is no name."
    assert refusal(session.run, {}).message == "input 'x' is missing."
    assert refusal(session.run, []).message == "the engine has 1 inputs, found 0."
    assert refusal(session.run, 7).message == "the inputs are neither a dict nor a sequence."
    assert refusal(session.run, "x").message == "the inputs are neither a dict nor a sequence."
    assert refusal(session.run, {"\ud800": X}).message == "the inputs have a key that is no name."


def test_outputs_of_the_caller(up):
    session = up.session(1)
    y = np.zeros((1, 2, 8, 10), np.float32)
    assert "output 'y'" in refusal(session.run, [X], [y[:, :1]]).message
    assert "output 'y'" in refusal(session.run, [X], [y.astype(np.float64)]).message
    assert refusal(session.run, [X], [y, y]).message == "the engine has 1 outputs, found 2."
    assert refusal(session.run, [X], {"z": y}).message == "there is no output 'z'."
    assert refusal(session.run, [X], {"y": None}).message == "the memory given for output 'y' is a NoneType, which is no array."
    assert refusal(session.run, [X], {}).message == "output 'y' is missing."
    assert refusal(session.run, [X], [b"bytes"]).message == "the memory given for output 'y' is a bytes, which is no array."


def test_deadlines_and_limits(up):
    session = up.session(1)
    error = refusal(session.run, [np.zeros((1, 3, 2000, 2000), np.float32)], deadline=0)
    assert error.code == "cancelled" and isinstance(error, TimeoutError)
    assert session.run([X], deadline=60)["y"].shape == session.run([X], deadline=float("inf"))["y"].shape
    for wrong in (float("nan"), "soon", object()):
        assert refusal(session.run, [X], deadline=wrong).message == "the deadline is no number."
    for wrong in (-1, 10**6):
        assert "expected 0 to 1024" in refusal(up.session, wrong).message
    assert refusal(up.session, memory_limit_bytes=-1).code == "invalid_argument"
    for wrong in ({"threads": 2**80}, {"threads": "two"}, {"memory_limit_bytes": 2**90}):
        with pytest.raises(TypeError):
            up.session(**wrong)


def test_huge_shapes(folder):
    model = small_models.save(folder / "expand.onnx", [helper.make_node("Expand", ["x", "s"], ["t"]), helper.make_node("Exp", ["t"], ["y"])],
                              [("x", TensorProto.FLOAT, [1]), ("s", TensorProto.INT64, [3])], [("y", TensorProto.FLOAT, None)])
    engine = polyphase.compile(model)
    one = np.ones(1, np.float32)
    error = refusal(engine, one, np.array([2**20, 2**20, 4]))
    assert error.code == "out_of_memory" and isinstance(error, MemoryError)
    refusal(engine, one, np.array([2**40, 2**40, 2**40]))
    refusal(engine, one, np.array([-3, 1, 1]))
    np.testing.assert_allclose(engine(one, np.array([1, 2, 1])), np.exp(np.ones((1, 2, 1))), rtol=1e-6)  # and is well again
    up = polyphase.compile(folder / "up.onnx")
    refusal(up, np.broadcast_to(np.float32(1), (1, 3, 2**20, 2**20)))
    refusal(up.session(1).output_shapes, [(1, 3, 2**40, 2**40)])
    refusal(up.session(1).output_shapes, [(1, 3, -1, 2)])
    limited = up.session(1, memory_limit_bytes=1)
    assert limited.run([X])["y"].shape == (1, 2, 8, 10)  # needs no intermediate values


def test_shapes_to_ask_about(up):
    session = up.session(1)
    assert refusal(session.explain, [("1", "3", "4", "5")]).message == "the shape given for input 'x' is no sequence of integers."
    assert refusal(session.explain, [(1, 3, 4)]).code == "shape_mismatch"
    assert refusal(session.explain, {"z": (1,)}).message == "there is no input 'z'."
    assert refusal(session.output_shapes, 3).code == "invalid_argument"
    assert refusal(session.output_shapes, [(2**70, 3, 1, 1)]).code == "invalid_argument"


def test_models_and_files(folder):
    error = refusal(polyphase.compile, folder / "nowhere.onnx")
    assert error.code == "io" and isinstance(error, OSError) and "nowhere.onnx" in error.message
    assert refusal(polyphase.load, folder / "nowhere.ppe").code == "io"
    assert refusal(polyphase.compile, b"no model").code in ("invalid_model", "corrupt", "unsupported")
    assert refusal(polyphase.compile, b"").code in ("invalid_model", "corrupt")
    assert refusal(polyphase.load, b"no engine").code == "corrupt"
    assert refusal(polyphase.load, b"").code == "corrupt"
    assert refusal(polyphase.load, polyphase.compile(folder / "up.onnx").to_bytes()[:-5]).code == "corrupt"
    for strange in (None, 3, [1], X):
        assert refusal(polyphase.compile, strange).code == "invalid_argument"
        assert refusal(polyphase.load, strange).code == "invalid_argument"
    assert refusal(polyphase.compile, "with\0nul").message == "the path holds a NUL character."
    assert refusal(polyphase.compile(folder / "up.onnx").save, folder).code == "io"
    engine = polyphase.compile(folder / "up.onnx").to_bytes()
    assert refusal(polyphase.compile, engine).message.startswith("the file is a Polyphase engine")
    assert refusal(polyphase.check, b"bytes").message == "the model is a bytes, and no targets are given."


def test_a_refused_node_is_named(folder):
    model = small_models.save(folder / "strange.onnx", [helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="up1", strides=[2, -2])],
                              [("x", TensorProto.FLOAT, [1, 3, 4, 4])], [("y", TensorProto.FLOAT, None)], [("w", small_models.UP_WEIGHTS)])
    error = refusal(polyphase.compile, model)
    assert error.node == "up1" and error.code == "invalid_model" and str(error).startswith("node 'up1': ") and error.trail
    node = onnx.load(model)
    node.graph.node[0].op_type = "Nonsense"
    error = refusal(polyphase.compile, node)
    assert error.code == "unsupported" and isinstance(error, NotImplementedError)


def test_compile_options_of_the_wrong_kind(folder):
    path = folder / "up.onnx"
    for wrong in ({"shapes": 3}, {"shapes": {"x": 3}}, {"shapes": {"x": (1, 3, 2.5, 4)}}, {"shapes": {1: (1,)}}, {"shapes": {"z": (1,)}},
                  {"shapes": {"x": (1, 3, -4, 4)}}, {"shapes": {"x": "1xx3"}}, {"dims": {"H": (5, 4)}}, {"dims": {"H": (1, 2, 3)}}, {"dims": {"H": "4"}},
                  {"dims": {"H": 2**70}}, {"tune_for": {"z": (1, 3, 4, 4)}}, {"tune_for": {"x": (1, 3)}}, {"tune_for": {"x": "1x3"}},
                  {"target": "gpu"}, {"target": 3}, {"without": "dead"}, {"without": ["no such pass"]}, {"without": [3]}, {"progress": 3},
                  {"external_data": 3}, {"precision": "fp16"}, {"precision": 3}):
        assert refusal(polyphase.compile, path, **wrong).code in ("invalid_argument", "shape_mismatch"), wrong
    with pytest.raises(TypeError):
        polyphase.compile(path, accuracy="fp16")


def test_compare_layers_of_the_wrong_kind(folder):
    path = folder / "up.onnx"
    assert refusal(polyphase.compare_layers, path, {"z": X}).message == "there is no input 'z'."
    assert refusal(polyphase.compare_layers, path, [X, X]).code == "invalid_argument"
    assert refusal(polyphase.compare_layers, path, "x").code == "invalid_argument"
    assert refusal(polyphase.compare_layers, path, [X], golden={"t": "text"}).message == "the golden tensor 't' is a str, which is no array."
    assert refusal(polyphase.compare_layers, path, [X], golden=[1]).code == "invalid_argument"
    assert refusal(polyphase.compare_layers, path, [X], threads=-1).code == "invalid_argument"


def test_classes_cannot_be_made_by_hand():
    for kind in (polyphase.Engine, polyphase.Session, polyphase.Port):
        with pytest.raises(TypeError):
            kind()
        with warnings.catch_warnings(), pytest.raises(TypeError):
            warnings.simplefilter("ignore")  # nanobind's, of an object that was never made
            repr(kind.__new__(kind))


def test_what_the_caller_raises_comes_through(folder):
    def stop(stage, _):
        if stage.startswith("pass"):
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        polyphase.compile(folder / "up.onnx", progress=stop)
    with pytest.raises(TypeError):
        polyphase.compile(folder / "up.onnx", progress=lambda: None)


def test_a_capsule_is_taken_once(up):
    capsule = X.__dlpack__()
    assert up(capsule).shape == (1, 2, 8, 10)
    assert "no array" in refusal(up, capsule).message


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Managed(ctypes.Structure):
    """DLPack's struct before version 1, to be filled with nonsense."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _Type), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


@pytest.mark.parametrize("nonsense", [
    {"ndim": -1}, {"ndim": 2**31 - 1}, {"ndim": 9}, {"ndim": 3}, {"shape": (1, 3, -4, 5)}, {"shape": (2**62, 2**62, 2**62, 2**62)},
    {"dtype": (2, 32, 2)}, {"dtype": (2, 4, 1)}, {"dtype": (255, 32, 1)}, {"dtype": (2, 0, 1)}, {"device_type": 2}, {"device_type": -7},
    {"device_type": 0}, {"data": None}, {"strides": (2**62, 1, 2**62, 1)}])
def test_dlpack_full_of_nonsense(up, nonsense):
    memory = np.zeros(100, np.float32)
    sizes = nonsense.get("shape", (1, 3, 4, 5)) + (1,) * 5
    strides = nonsense.get("strides")
    managed = _Managed(data=nonsense.get("data", memory.ctypes.data), device_type=nonsense.get("device_type", 1), ndim=nonsense.get("ndim", 4),
                       dtype=_Type(*nonsense.get("dtype", (2, 32, 1))), shape=(ctypes.c_int64 * 9)(*sizes),
                       strides=(ctypes.c_int64 * 4)(*strides) if strides else None)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    refusal(up, capsule(ctypes.addressof(managed), b"dltensor", None))


def test_dicts_that_change_while_they_are_read(up):
    session = up.session(1)
    inputs = {}

    class Grows:
        def __dlpack__(self, **options):
            for i in range(1000):
                inputs[str(i)] = X
            return X.__dlpack__(**options)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    inputs["x"] = Grows()
    assert session.run(inputs)["y"].shape == (1, 2, 8, 10)


def test_errors_can_be_pickled_and_made(up):
    error = refusal(up, X[0])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and (again.code, again.hint) == (error.code, error.hint)
    assert polyphase.Error("plain").code == "invalid_argument"


def test_all_that_was_said_is_on_the_errors_page():
    """What the tests above it raised, those of them that ran in this process."""
    matchers = [entry.matcher() for entry in errors_page.collected()[0]]
    assert [text for text in said if not any(matcher.fullmatch(text) for matcher in matchers)] == []
