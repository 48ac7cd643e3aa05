"""Tuning: measured kernels give the same numbers, are measured once for all processes, and no timing cache does harm."""

from __future__ import annotations

import concurrent.futures
import json

import numpy as np
import polyphase as package
import pytest
import small_models
import torch
from onnx import TensorProto, helper

MACHINE = package._native.devices()[0]["name"]


def network(path, sizes=(1, 8, 24, 24)):
    """Convolutions that several kernels take, one of them twice, and a transposed one."""
    random = np.random.default_rng(3)
    weights = [(name, (random.standard_normal(shape) / 8).astype(np.float32)) for name, shape in
               (("w1", (8, 8, 3, 3)), ("w2", (8, 8, 3, 3)), ("w3", (8, 4, 4, 4)))]
    nodes = [helper.make_node("Conv", ["x", "w1"], ["a"], name="first", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w2"], ["c"], name="second", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["d"]),
             helper.make_node("ConvTranspose", ["d", "w3"], ["y"], name="third", strides=[2, 2], pads=[1, 1, 1, 1])]
    return small_models.save(path, nodes, [("x", TensorProto.FLOAT, sizes)], [("y", TensorProto.FLOAT, None)], weights)


@pytest.fixture(scope="module")
def model(folder):
    return network(folder / "tuned.onnx")


def tuned(polyphase, model, engine, cache, *words) -> dict:
    done = polyphase("compile", model, "-o", engine, "--tune", "--threads", "1", "--timing-cache", cache, "--json", *words)
    return json.loads(done.stdout)["tuning"]


def test_a_second_compilation_measures_nothing_and_gives_the_same_bytes(polyphase, model, tmp_path):
    cache = tmp_path / "timings.txt"
    first = tuned(polyphase, model, tmp_path / "a.ppe", cache)
    assert first["measured_steps"] > 0 and first["timing_cache"] == str(cache) and first["skipped"] == []
    written = cache.read_bytes()
    second = tuned(polyphase, model, tmp_path / "b.ppe", cache)
    assert second["measured_steps"] == 0 and second["cached_steps"] == first["measured_steps"]
    assert cache.read_bytes() == written
    assert (tmp_path / "a.ppe").read_bytes() == (tmp_path / "b.ppe").read_bytes()


def test_the_cache_is_text_that_says_where_and_what(polyphase, model, tmp_path):
    tuned(polyphase, model, tmp_path / "a.ppe", tmp_path / "timings.txt")
    first, *lines = (tmp_path / "timings.txt").read_text().splitlines()
    assert first == "polyphase timing cache 1" and lines
    for line in lines:
        machine, step, times = line.split("\t")
        assert machine.startswith(f"{MACHINE}, 1 thread, ") and ", kernels " in machine and ":" in step
        assert all(int(time) > 0 for time in times.split()[1::2])
    steps = [line.split("\t")[1] for line in lines]
    assert len(set(steps)) == len(steps)


def test_the_kernel_that_took_least_is_taken(polyphase, model, tmp_path):
    done = polyphase("explain", model, "--tune", "--threads", "1", "--timing-cache", tmp_path / "timings.txt", "--no-run", "--json")
    steps = [step for step in json.loads(done.stdout)["steps"] if step["measured"]]
    assert steps
    for step in steps:
        times = {row["kernel"]: row["cost_ms"] for row in step["accepted"] if row["measured"]}
        assert step["kernel"] == min(times, key=times.get), step
    assert any(len(step["accepted"]) > 2 for step in steps)
    text = polyphase("explain", model, "--tune", "--threads", "1", "--timing-cache", tmp_path / "timings.txt", "--no-run").stdout
    assert "chosen by measured times: it took " in text and ": it took " in text
    tuned(polyphase, model, tmp_path / "a.ppe", tmp_path / "timings.txt")
    assert "chosen by measured times, when it was compiled" in polyphase("explain", tmp_path / "a.ppe", "--no-run").stdout
    assert "chosen by measured times" not in polyphase("explain", model, "--no-run").stdout


def forged(cache, favourite: str) -> None:
    """The same steps, with one kernel that takes a nanosecond wherever it is a candidate."""
    first, *lines = cache.read_text().splitlines()
    out = [first]
    for line in lines:
        machine, step, times = line.split("\t")
        rows = times.split()[::2]
        out.append(f"{machine}\t{step}\t" + " ".join(f"{row} {1 if row == favourite else 1000 + i}" for i, row in enumerate(rows)))
    cache.write_text("\n".join(out) + "\n")


def test_every_choice_gives_the_same_numbers(polyphase, model, tmp_path):
    """Whatever the clock says: each kernel in turn is made the fastest."""
    x = np.random.default_rng(1).standard_normal((1, 8, 24, 24), dtype=np.float32)
    cache = tmp_path / "timings.txt"
    tuned(polyphase, model, tmp_path / "a.ppe", cache)
    names = {row for line in cache.read_text().splitlines()[1:] for row in line.split("\t")[2].split()[::2]}
    expected = polyphase.run_arrays(model, {"x": x}, tmp_path)["y"]
    taken = set()
    for name in sorted(names):
        forged(cache, name)
        assert tuned(polyphase, model, tmp_path / "b.ppe", cache)["measured_steps"] == 0
        found = polyphase.run_arrays(tmp_path / "b.ppe", {"x": x}, tmp_path)["y"]
        np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-5)
        taken |= {step["rows"][0] for step in package.load(tmp_path / "b.ppe").info()["steps"]}
    assert len(taken & names) > 2


def test_times_of_another_cpu_are_left_alone(polyphase, model, tmp_path):
    cache = tmp_path / "timings.txt"
    tuned(polyphase, model, tmp_path / "a.ppe", cache)
    elsewhere = cache.read_text().replace(MACHINE, "Another CPU")
    cache.write_text(elsewhere)
    assert tuned(polyphase, model, tmp_path / "b.ppe", cache)["cached_steps"] == 0
    assert cache.read_text().startswith(elsewhere)
    assert cache.read_text().count("Another CPU") == cache.read_text().count(MACHINE)


def test_many_processes_share_a_cache(polyphase, folder, tmp_path):
    cache = tmp_path / "timings.txt"
    models = [network(folder / f"size{size}.onnx", (1, 8, size, size)) for size in (9, 10, 11, 12, 13, 14)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        work = [pool.submit(tuned, polyphase, model, tmp_path / f"{i}.ppe", cache) for i, model in enumerate(models)]
        assert all(each.result()["measured_steps"] > 0 for each in work)
    for i, model in enumerate(models):
        assert tuned(polyphase, model, tmp_path / f"{i}.ppe", cache)["measured_steps"] == 0


def test_open_sizes_are_measured_at_the_sizes_to_tune_for(polyphase, tmp_path):
    model = network(tmp_path / "open.onnx", ("N", 8, "H", "W"))
    cache = tmp_path / "timings.txt"
    tuned(polyphase, model, tmp_path / "a.ppe", cache, "--tune-for", "x=2x8x17x19")
    steps = [line.split("\t")[1] for line in cache.read_text().splitlines()[1:]]
    assert all("f32[2, 8, 17, 19]" in step for step in steps if step.startswith("conv{"))
    for size in ((1, 8, 5, 6), (2, 8, 17, 19), (1, 8, 40, 3)):
        x = np.random.default_rng(1).standard_normal(size, dtype=np.float32)
        found = polyphase.run_arrays(tmp_path / "a.ppe", {"x": x}, tmp_path)["y"]
        np.testing.assert_allclose(found, polyphase.run_arrays(model, {"x": x}, tmp_path)["y"], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("words, said", [
    (["--tune", "--target", "portable"], "tune is given with the target portable, whose kernels every CPU shares."),
    (["--timing-cache", "x.txt"], "--timing-cache requires --tune"),
    (["--threads", "2"], "--threads requires --tune"),
    (["--tune", "--timing-cache", "no/such/folder/x.txt"], "the folder of the timing cache 'no/such/folder/x.txt' does not exist."),
    (["--tune", "--timing-cache", "{model}"], "is no timing cache. Name another file"),
    (["--tune", "--timing-cache", "."], "'.' is a folder, not a file with data."),
], ids=str)
def test_what_cannot_be_is_refused(polyphase, model, tmp_path, words, said):
    before = model.read_bytes()
    done = polyphase("compile", model, "-o", tmp_path / "a.ppe", *[word.format(model=model) for word in words], expect=2 if "requires" in said else 1)
    assert said in done.stderr and not (tmp_path / "a.ppe").exists() and model.read_bytes() == before


def test_an_engine_is_not_tuned(polyphase, model, tmp_path):
    polyphase("compile", model, "-o", tmp_path / "a.ppe")
    assert "--tune is read when a model is compiled" in polyphase("bench", tmp_path / "a.ppe", "--tune", expect=1).stderr


def test_damaged_lines_are_told_and_left_out(polyphase, model, tmp_path):
    cache = tmp_path / "timings.txt"
    measured = tuned(polyphase, model, tmp_path / "a.ppe", cache)["measured_steps"]
    lines = cache.read_text().splitlines()
    cache.write_text("\n".join([*lines[:-1], lines[-1][:-9] + " x", "rubbish"]) + "\n")
    done = polyphase("compile", model, "-o", tmp_path / "b.ppe", "--tune", "--threads", "1", "--timing-cache", cache, "--json")
    assert "has 2 damaged lines, which are left out." in done.stderr
    again = json.loads(done.stdout)["tuning"]
    assert (again["measured_steps"], again["cached_steps"]) == (1, measured - 1)
    assert "damaged line" not in polyphase("compile", model, "-o", tmp_path / "b.ppe", "--tune", "--threads", "1", "--timing-cache", cache).stderr


def test_a_pipe_hears_no_progress(polyphase, model, tmp_path):
    done = polyphase("compile", model, "-o", tmp_path / "a.ppe", "--tune", "--timing-cache", tmp_path / "timings.txt")
    assert "measure" not in done.stderr.replace("measured", "") and "\r" not in done.stderr and "\x1b" not in done.stderr
    assert "tuned: " in done.stderr


# ---------------------------------------------------------------- Python


def test_python_tunes_and_shares_the_cache(model, tmp_path):
    cache, stages = tmp_path / "timings.txt", []
    engine = package.compile(model, tune=True, tune_threads=1, timing_cache=cache, progress=lambda stage, done: stages.append(stage))
    assert any(stage.startswith("measure 1: ") for stage in stages)
    x = np.random.default_rng(1).standard_normal((1, 8, 24, 24), dtype=np.float32)
    np.testing.assert_allclose(engine(x), package.compile(model)(x), atol=2e-5, rtol=1e-5)
    stages.clear()
    again = package.compile(model, tune=True, tune_threads=1, timing_cache=cache, progress=lambda stage, done: stages.append(stage))
    assert not any(stage.startswith("measure") for stage in stages) and again.to_bytes() == engine.to_bytes()
    assert any(step["measured"] for step in engine.info()["steps"])
    rows = [row for step in engine.session(1).explain({"x": x.shape})["steps"] for row in step["rows"]]
    assert any(row["measured"] and row["taken"] for row in rows)


def test_python_uses_the_users_cache(model, tmp_path, monkeypatch):
    monkeypatch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path / "mine"))
    package.compile(model, tune=True)
    assert (tmp_path / "mine/timings.txt").read_text().startswith("polyphase timing cache 1\n")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


def test_python_warns_of_damage_and_stops_when_told(model, tmp_path):
    cache = tmp_path / "timings.txt"
    cache.write_text("polyphase timing cache 1\nrubbish\n")
    with pytest.warns(UserWarning, match="has 1 damaged line, which is left out"):
        package.compile(model, tune=True, timing_cache=cache)

    class Enough(Exception):
        pass

    def stop(stage, done):
        if stage.startswith("measure 2"):
            raise Enough

    cache.unlink()
    with pytest.raises(Enough):
        package.compile(model, tune=True, timing_cache=cache, progress=stop)
    assert len(cache.read_text().splitlines()) >= 2  # what was measured until then is kept


@pytest.mark.parametrize("wrong", [{"tune": 1}, {"timing_cache": "x"}, {"tune_threads": 2}, {"tune": True, "tune_threads": -1},
                                   {"tune": True, "tune_threads": True}, {"tune": True, "timing_cache": 3}], ids=str)
def test_python_refuses_options_of_the_wrong_kind(model, wrong):
    with pytest.raises(package.ArgumentError):
        package.compile(model, **wrong)


def test_torch_compile_tunes(tmp_path):
    net = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.ConvTranspose2d(8, 4, 4, 2, 1)).eval()
    x = torch.randn(1, 8, 20, 20)
    cache = tmp_path / "timings.txt"
    with torch.no_grad():
        fast = torch.compile(net, backend="polyphase", options={"tune": True, "timing_cache": str(cache), "cache": False})
        torch.testing.assert_close(fast(x), net(x), atol=2e-5, rtol=1e-5)
    assert f"{MACHINE}, {torch.get_num_threads()} threads, " in cache.read_text()
    for wrong in ({"tune": 1}, {"timing_cache": "x"}):
        torch.compiler.reset()
        with torch.no_grad(), pytest.raises(Exception, match="the option "):
            torch.compile(net, backend="polyphase", options=wrong)(x)
