"""The C ABI from outside C: tensors of NumPy and PyTorch through DLPack, weights in a file of their own, threads."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from conftest import find_build

Pointer, Size = ctypes.c_void_p, ctypes.c_size_t
CAPSULE_NAME = b"dltensor_versioned"
ctypes.pythonapi.PyCapsule_GetPointer.restype = Pointer
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [Pointer, ctypes.c_char_p, Pointer]


class Library:
    """The functions; a status that is not ok becomes an exception with the error's text."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        for name in ("polyphase_error_text", "polyphase_error_hint", "polyphase_version"):
            getattr(self.c, name).restype = ctypes.c_char_p
        for name in ("polyphase_error_text", "polyphase_error_free", "polyphase_engine_free", "polyphase_session_free", "polyphase_tensor_free"):
            getattr(self.c, name).argtypes = [Pointer]

    def call(self, name, *arguments):
        error = Pointer()
        if getattr(self.c, f"polyphase_{name}")(*arguments, ctypes.byref(error)):
            text = self.c.polyphase_error_text(error).decode()
            self.c.polyphase_error_free(error)
            raise RuntimeError(text)

    def session(self, model: bytes, folder: str | None) -> Pointer:
        engine, session = Pointer(), Pointer()
        self.call("compile_bytes", model, Size(len(model)), folder.encode() if folder else None, None, ctypes.byref(engine))
        self.call("session_create", engine, None, ctypes.byref(session))
        self.c.polyphase_engine_free(engine)
        return session

    def run(self, session, *tensors) -> torch.Tensor:
        capsules = [tensor.__dlpack__(max_version=(1, 0)) for tensor in tensors]
        inputs = (Pointer * len(tensors))(*[ctypes.pythonapi.PyCapsule_GetPointer(capsule, CAPSULE_NAME) for capsule in capsules])
        output = Pointer()
        self.call("session_run", session, Size(len(tensors)), inputs, Size(1), ctypes.byref(output), None)
        return torch.from_dlpack(ctypes.pythonapi.PyCapsule_New(output.value, CAPSULE_NAME, None))


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(find_build() / "lib" / "libpolyphase.so")


WEIGHTS = np.random.default_rng(3).standard_normal((3, 5), np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(WEIGHTS, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), folder / "model.onnx", save_as_external_data=True,
              location="weights.bin", size_threshold=0)
    return folder


@pytest.fixture(scope="module")
def session(library, folder):
    session = library.session((folder / "model.onnx").read_bytes(), str(folder))
    yield session
    library.c.polyphase_session_free(session)


def test_weights_beside_a_model_in_memory_need_their_folder(library, folder):
    with pytest.raises(RuntimeError, match="weights.bin"):
        library.session((folder / "model.onnx").read_bytes(), None)


@pytest.mark.parametrize("tensor", [
    np.arange(12, dtype=np.float32).reshape(4, 3),
    np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3)),
    np.arange(48, dtype=np.float32).reshape(8, 6)[::-2, 5::-2],
    np.zeros((0, 3), np.float32),
    torch.arange(24, dtype=torch.float32).reshape(3, 8).T[::2],
    torch.ones(1, 3).expand(7, 3),
], ids=["plain", "fortran", "backwards", "empty", "torch turned", "torch expanded"])
def test_tensors_of_others_come_and_go_without_a_word(library, session, tensor):
    result = library.run(session, tensor)
    np.testing.assert_allclose(result.numpy(), np.asarray(tensor) @ WEIGHTS, rtol=1e-5, atol=1e-4)


def test_results_outlive_one_another_and_the_runs(library, session):
    inputs = [np.full((2, 3), i, np.float32) for i in range(20)]
    results = [library.run(session, tensor) for tensor in inputs]
    for tensor, result in zip(inputs, results):
        np.testing.assert_allclose(result.numpy(), tensor @ WEIGHTS, rtol=1e-5, atol=1e-4)


def test_what_does_not_fit_is_refused_by_name(library, session):
    with pytest.raises(RuntimeError, match="input 'x'"):
        library.run(session, np.zeros((2, 4), np.float32))
    with pytest.raises(RuntimeError, match="input 'x' is f64; expected f32"):
        library.run(session, np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="type code 5"):
        library.run(session, np.zeros((2, 3), np.complex64))


def test_threads_share_a_session(library, session):
    def work(seed):
        rng = np.random.default_rng(seed)
        tensors = [rng.random((int(rng.integers(1, 9)), 3), np.float32) for _ in range(50)]
        return all(np.allclose(library.run(session, tensor).numpy(), tensor @ WEIGHTS, rtol=1e-5, atol=1e-5) for tensor in tensors)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
