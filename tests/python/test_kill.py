"""`compile` killed at random moments: under the name stands the old engine or the new one, whole, and no heap of leftovers."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SLICE, FULL = 20, 200


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Weights of 16 MB, so that a good part of the time is spent writing."""
    path = tmp_path_factory.mktemp("kill") / "model.onnx"
    weights = np.random.default_rng(1).standard_normal((256, 1024, 4, 4), np.float32)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])
    graph = helper.make_graph([node], "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 256, "H", "W"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_killed_compile_leaves_the_old_engine_or_the_new_one(polyphase, model, tmp_path, full, slice_seed):
    targets, right = ["scalar", "portable"], {}
    for target in targets:  # the same engine gives the same bytes
        polyphase("compile", model, "-o", tmp_path / f"{target}.ppe", "--target", target)
        right[target] = digest(tmp_path / f"{target}.ppe")
    started = time.monotonic()
    polyphase("compile", model, "-o", tmp_path / "scalar.ppe", "--target", "scalar")
    usual_s = time.monotonic() - started

    folder = tmp_path / "killed"
    folder.mkdir()
    engine = folder / "model.ppe"
    engine.write_bytes((tmp_path / "portable.ppe").read_bytes())
    stands = "portable"
    rng = random.Random(slice_seed)
    outcomes = {"old": 0, "new": 0, "with leftover": 0}
    for _ in range(FULL if full else SLICE):
        target = targets[1 - targets.index(stands)]
        process = subprocess.Popen([polyphase.path, "compile", model, "-o", engine, "--target", target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 1.2 * usual_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = digest(engine)
        assert found in (right[stands], right[target]), "a torn engine"
        outcomes["new" if found == right[target] else "old"] += 1
        stands = target if found == right[target] else stands
        others = [path.name for path in folder.iterdir() if path != engine]
        outcomes["with leftover"] += bool(others)
        assert len(others) <= 1, others
    print(outcomes)
    assert outcomes["old"], outcomes
    polyphase("compile", model, "-o", engine, "--target", "scalar")
    assert digest(engine) == right["scalar"] and [path.name for path in folder.iterdir()] == ["model.ppe"]


def test_two_compiles_into_one_name_do_not_meet(polyphase, model, tmp_path):
    engine = tmp_path / "model.ppe"
    command = [polyphase.path, "compile", model, "-o", engine, "--target"]
    both = [subprocess.Popen([*command, target], stdout=subprocess.DEVNULL) for target in ("scalar", "portable", "scalar", "portable")]
    assert [process.wait() for process in both] == [0] * 4
    polyphase("inspect", engine)
    assert [path.name for path in tmp_path.iterdir()] == ["model.ppe"]
