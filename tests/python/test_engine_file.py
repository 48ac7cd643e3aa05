"""The engine of the demo as a file in the hands of users: damaged, cut, of another version, for another CPU, written by two at once."""

from __future__ import annotations

import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import small_models

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETWORK = ROOT / "models" / "fsrcnn_x3" / "fsrcnn_x3.onnx"


@pytest.fixture(scope="module")
def engine(polyphase, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "demo.ppe"
    polyphase("compile", NETWORK, "-o", path)
    return path


def refusal(polyphase, path):
    done = polyphase("inspect", path, "--json", expect=1)
    assert done.stdout == "" and done.stderr.startswith(f"polyphase: error: '{path}' is ") or "has engine format" in done.stderr
    return done.stderr


def test_damage_is_refused_with_a_word_and_a_remedy(polyphase, engine, tmp_path, slice_seed):
    """Some bytes through the program; demo_engine_test changes every one of them in process."""
    whole = engine.read_bytes()
    rng = random.Random(slice_seed)
    for at in [0, 4, 7, 8, 12, 16, 24, 40, 64, 4095, 4096, len(whole) - 1] + [rng.randrange(len(whole)) for _ in range(20)]:
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        (tmp_path / "a.ppe").write_bytes(damaged)
        if at < 4:  # not an engine any more: taken for a model, and refused as one
            polyphase("inspect", tmp_path / "a.ppe", expect=1)
        else:
            assert "again" in refusal(polyphase, tmp_path / "a.ppe"), f"byte {at}"
    for length in [4, 8, 31, 63, 64, 4096, len(whole) - 1] + [rng.randrange(4, len(whole)) for _ in range(10)]:
        (tmp_path / "a.ppe").write_bytes(whole[:length])
        assert "Copy the whole file again, or compile the model again." in refusal(polyphase, tmp_path / "a.ppe"), f"{length} bytes"
    (tmp_path / "a.ppe").write_bytes(whole + b"\0")
    assert "longer than it says" in refusal(polyphase, tmp_path / "a.ppe")
    (tmp_path / "a.ppe").write_bytes(whole.replace(b"\r\n", b"\n", 1))
    assert "line ends" in refusal(polyphase, tmp_path / "a.ppe")


def test_an_engine_for_more_than_this_cpu_has_is_refused(polyphase, tmp_path):
    best = json.loads(polyphase("devices", "--json").stdout)["devices"][0]["target"]
    x = np.linspace(0, 1, 24 * 31, dtype=np.float32).reshape(1, 1, 24, 31)
    found, clusters = {}, ["scalar", "avx2", "avx512", "avx512_bf16", "amx"]
    for target in ("scalar", "avx2", "avx512", "portable"):
        engine = tmp_path / f"{target}.ppe"
        report = json.loads(polyphase("compile", NETWORK, "-o", engine, "--target", target, "--json").stdout)
        assert report["target"] == target and report["reference_steps"] == 0
        if target == "portable" or clusters.index(target) <= clusters.index(best):
            found[target] = polyphase.run_arrays(engine, {"y": x}, tmp_path)["y_x3"]
        else:
            said = polyphase("bench", engine, expect=1).stderr
            assert f"compiled for {target}; this CPU has {best}" in said and "--target portable" in said
    for picture in found.values():
        np.testing.assert_allclose(picture, found["portable"], atol=1e-5)


def test_the_same_model_gives_the_same_bytes(polyphase, engine, tmp_path):
    polyphase("compile", NETWORK, "-o", tmp_path / "again.ppe")
    assert (tmp_path / "again.ppe").read_bytes() == engine.read_bytes()


def test_two_who_write_one_engine_leave_one_whole_engine(polyphase, tmp_path):
    """Whoever is last wins; a reader in between finds either, never a mixture."""
    models = [NETWORK, small_models.up(tmp_path / "up.onnx")]
    target = tmp_path / "shared.ppe"
    polyphase("compile", models[0], "-o", target)
    for _ in range(8):
        words = [[str(polyphase.path), "compile", str(model), "-o", str(target)] for model in models * 2]
        writers = [subprocess.Popen(word, stderr=subprocess.PIPE, text=True) for word in words]
        while any(writer.poll() is None for writer in writers):
            assert json.loads(polyphase("inspect", target, "--json").stdout)["inputs"][0]["name"] in ("x", "y")
        for writer in writers:
            assert writer.returncode == 0, writer.stderr.read()
            writer.stderr.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shared.ppe", "up.onnx"], "no temporary file is left"


def test_an_engine_may_be_replaced_while_it_runs(polyphase, engine, tmp_path):
    """The file is mapped: replacing it by rename leaves the running one its bytes."""
    target = tmp_path / "live.ppe"
    target.write_bytes(engine.read_bytes())
    words = [str(polyphase.path), "bench", str(target), "--shape", "y=1x1x32x32", "--least-seconds", "0.5", "--json"]
    bench = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while bench.poll() is None:
        polyphase("compile", NETWORK, "-o", target)
    out, said = bench.communicate()
    assert bench.returncode == 0 and json.loads(out)["runs"] > 0, said


def deep(path: pathlib.Path, layers: int, channels: int = 256) -> pathlib.Path:
    """Convolutions one behind the other, each with weights of its own."""
    base = np.random.default_rng(1).standard_normal((channels, channels, 3, 3), dtype=np.float32)
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, base.shape, (base + np.float32(i)).tobytes(), raw=True) for i in range(layers)]
    names = ["x", *(f"t{i}" for i in range(1, layers)), "y"]
    nodes = [helper.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], pads=[1, 1, 1, 1]) for i in range(layers)]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 32, 32])] for name in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "deep", *ports, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


# By way of a small process, since a child's peak begins with its parent's.
PEAK = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


def peak_bytes(*words) -> int:
    return 1024 * int(subprocess.run([sys.executable, "-c", PEAK, *map(str, words)], check=True, capture_output=True, text=True).stdout)


def test_compiling_into_a_file_holds_the_weights_once(polyphase, tmp_path):
    """Not once more as protobuf reads them, and not at all as they are packed, which is 16/9 of them for such convolutions."""
    peak = {}
    for layers in (1, 32):
        model = deep(tmp_path / f"{layers}.onnx", layers)
        peak[layers] = peak_bytes(polyphase.path, "compile", model, "-o", tmp_path / f"{layers}.ppe")
    weights = 31 * 4 * 9 * 256 * 256
    assert (tmp_path / "32.ppe").stat().st_size > 1.7 * weights, "they are packed for Winograd's filtering"
    assert peak[32] - peak[1] < 1.7 * weights


# What a process holds and touches while it loads an engine, makes a session and runs it; in KiB.
TOUCHED = """
import json, re, sys
import numpy as np
import polyphase

def held(name):
    return int(re.search(rf"^{name}:\\s+(\\d+)", open("/proc/self/status").read(), re.M)[1])

def touched():
    "Of the engine's file, since it was last forgotten what was touched."
    maps = open("/proc/self/smaps").read().split("VmFlags")
    return sum(int(re.search(r"^Referenced:\\s+(\\d+)", one, re.M)[1]) for one in maps if sys.argv[1] in one)

def forget():
    "The second word flushes the TLB as well: through what it still holds a page is touched without a mark."
    for word in "14":
        open("/proc/self/clear_refs", "w").write(word)

x = np.zeros((1, 256, 32, 32), np.float32)
own = held("RssAnon")
engine = polyphase.load(sys.argv[1])
loaded = held("RssAnon") - own
checked = touched()
forget()
session = engine.session(threads=1)
made = touched()
session.run([x])
print(json.dumps({"loaded": loaded, "checked": checked, "made": made, "run": touched(), "held": held("RssAnon") - own}))
"""


def test_an_engine_is_read_once_and_never_copied(polyphase, tmp_path):
    """Loading maps the file and checks it; a session looks at no weight; a run reads them where they are."""
    model, engine = deep(tmp_path / "m.onnx", 16), tmp_path / "m.ppe"
    polyphase("compile", model, "-o", engine)
    done = subprocess.run([sys.executable, "-c", TOUCHED, str(engine)], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    weights = 16 * 4 * 9 * 256 * 256 * 16 // 9 >> 10
    assert weights <= found["checked"] <= engine.stat().st_size + 4096 >> 10
    assert found["loaded"] < weights // 20, "nothing is copied"
    assert found["made"] < weights // 20, "the steps' shapes and names say all that a session needs"
    assert found["run"] >= weights and found["held"] < weights // 2
