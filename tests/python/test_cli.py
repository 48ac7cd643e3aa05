"""What scripts rely on: commands, help, exit codes, which stream says what, the fields of JSON, sizes, passes."""

from __future__ import annotations

import json
import os
import subprocess
import xml.etree.ElementTree

import numpy as np
import pytest
from onnx import TensorProto, helper

import small_models

COMMANDS = ("compile", "run", "bench", "compare", "inspect", "explain", "check", "export", "extract", "devices")
SHORT = ("--least-seconds", "0.02", "--warm-up", "0", "--least-runs", "3")


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    return small_models.up(tmp_path_factory.mktemp("models") / "up.onnx")


@pytest.fixture(scope="module")
def engine(up, polyphase):
    polyphase("compile", up, "-o", up.with_suffix(".ppe"))
    return up.with_suffix(".ppe")


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def image(n=1, h=4, w=5):
    return np.random.default_rng(n * h * w).standard_normal((n, 3, h, w), np.float32)


# ---------------------------------------------------------------- help, version, exit codes


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(polyphase, command):
    done = polyphase(command, "--help")
    assert f"Usage: polyphase {command}" in done.stdout
    assert f"Examples:\n  polyphase {command}" in done.stdout
    assert done.stderr == ""


def test_the_program_explains_itself(polyphase):
    done = polyphase("--help")
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout
    assert "Exit codes: 0" in done.stdout
    version = polyphase("--version")
    assert version.stdout.startswith("polyphase 0.") and version.stderr == ""


@pytest.mark.parametrize("words, said", [
    ([], "Usage: polyphase"),
    (["enlarge"], "there is no command 'enlarge'. The commands are compile, run, bench"),
    (["run"], "MODEL is required"),
    (["run", "a.onnx", "--colour"], "--colour"),
    (["run", "a.onnx", "--threads", "-1"], "--threads"),
    (["bench", "a.onnx", "--sessions", "0"], "--sessions"),
    (["bench", "a.onnx", "--least-runs", "many"], "--least-runs"),
    (["compare", "a.onnx"], "--expect (or --layers) is required"),
    (["compare", "a.onnx", "--expect", "b.npz", "--worst", "-3"], "--worst"),
    (["explain", "a.onnx", "--no-run", "--trace", "t.json"], "--trace"),
], ids=" ".join)
def test_a_wrong_command_line_ends_with_2(polyphase, words, said):
    done = polyphase(*words, expect=2)
    assert said in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "devices"])
def test_a_file_that_is_no_model_ends_with_1(polyphase, command, tmp_path):
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "text.onnx").write_text("a model, honestly\n")
    (tmp_path / "empty.ppe").touch()
    (tmp_path / "short.ppe").write_bytes(b"\x89PPE\r\n\x1a\n")
    more = {"compare": ["--expect", tmp_path / "none.npz"], "extract": ["--from", "a", "--to", "b", "-o", tmp_path / "p.onnx"],
            "export": ["--for", "onnx", "-o", tmp_path / "p.onnx"]}.get(command, [])
    for name, said in [("absent.onnx", "No such file or directory"), (".", "folder"), ("empty.onnx", "empty"),
                       ("text.onnx", "text"), ("empty.ppe", "empty"),
                       ("short.ppe", {"compile": "is an engine already", "extract": "is an engine", "export": "is an engine", "check": "is an engine: it was compiled already"}.get(command, "truncated"))]:
        done = polyphase(command, tmp_path / name, *more, expect=1)
        assert "polyphase: error: " in done.stderr and said in done.stderr, done.stderr
        assert str(tmp_path) in done.stderr and done.stdout == ""


def test_an_operator_that_is_missing_is_named_on_a_line_of_its_own(polyphase, tmp_path):
    node = small_models.helper.make_node("Nowhere", ["x"], ["y"], name="finder")
    model = small_models.save(tmp_path / "m.onnx", [node], [("x", 1, [4])], [("y", 7, None)])
    assert "\n  Nowhere (opset 17), 1 node, the first 'finder'" in polyphase("inspect", model, expect=1).stderr


# ---------------------------------------------------------------- results on stdout, words on stderr


def test_stdout_has_results_only_and_json_parses(polyphase, up, engine, tmp_path):
    inputs = npz(tmp_path / "in.npz", x=image())
    polyphase("run", engine, "--inputs", inputs, "--outputs", tmp_path / "out.npz")
    compare = ("--inputs", inputs, "--expect", tmp_path / "out.npz")
    for words in [("compile", up, "-o", tmp_path / "m.ppe"), ("run", engine, "--inputs", inputs), ("bench", engine, *SHORT),
                  ("compare", engine, *compare), ("inspect", engine), ("explain", engine), ("explain", engine, "--no-run"), ("devices",)]:
        report = json.loads(polyphase(*words, "--json").stdout)
        assert report["command"] == words[0] and report["schema"] == 1


def test_printed_graphs_do_not_disturb_json(polyphase, up, tmp_path):
    done = polyphase("compile", up, "-o", tmp_path / "m.ppe", "--print-after", "all", "--json")
    json.loads(done.stdout)
    assert "# after fuse_endings" in done.stderr


def test_results_that_cannot_be_written_are_no_success(polyphase, engine):
    with open("/dev/full", "w") as full:
        done = subprocess.run([polyphase.path, "inspect", engine], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "could not be written to stdout" in done.stderr


def test_a_reader_who_leaves_does_not_stop_the_work(polyphase, up, tmp_path):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        words = [polyphase.path, "compile", up, "-o", tmp_path / "m.ppe", "--print-after", "all"]
        done = subprocess.run(words, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and "error" not in done.stderr
    polyphase("inspect", tmp_path / "m.ppe")


def test_files_are_sound_when_stdout_is_closed(polyphase, engine, tmp_path):
    inputs = npz(tmp_path / "in.npz", x=image())
    words = f'"{polyphase.path}" run "{engine}" --inputs "{inputs}" --outputs "{tmp_path}/out.npz" --json >&-'
    subprocess.run(["sh", "-c", words], check=False, stderr=subprocess.PIPE)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], small_models.up_expected(image()), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- bench, devices


def test_bench_reports_what_scripts_read(polyphase, engine, up):
    report = json.loads(polyphase("bench", engine, "--shape", "x=2x3x16x20", "--threads", 1, *SHORT, "--json").stdout)
    assert 0 < report["min_ms"] <= report["median_ms"] <= report["p90_ms"] <= report["p99_ms"]
    assert report["runs"] >= 3 and report["threads"] == 1 and report["sessions"] == 1
    assert report["input_sizes"] == [[2, 3, 16, 20]]
    assert report["throughput"] > 0 and report["load_ms"] > 0 and report["compile_ms"] == 0
    assert report["peak_memory_bytes"] > 1 << 20
    assert isinstance(report["believable"], bool) and report["believable"] == (report["noise"]["reason"] == "")
    assert json.loads(polyphase("bench", up, *SHORT, "--json").stdout)["compile_ms"] > 0


def test_bench_counts_the_memory_of_the_process(polyphase, engine):
    """An input of 25 MB and an output of 67 MB must show in it, but for what the smaller run had taken and not kept."""
    def peak(shape):
        return json.loads(polyphase("bench", engine, "--shape", shape, *SHORT, "--json").stdout)["peak_memory_bytes"]

    assert peak("x=1x3x1024x2048") - peak("x=1x3x8x8") > 1024 * 2048 * 4 * (3 + 8) - 2**20


def test_bench_runs_sessions_side_by_side(polyphase, engine):
    report = json.loads(polyphase("bench", engine, "--sessions", 3, "--threads", 1, *SHORT, "--json").stdout)
    assert report["sessions"] == 3 and report["runs"] >= 9
    assert "in each of 3 sessions" in polyphase("bench", engine, "--sessions", 3, "--threads", 1, *SHORT).stdout


def test_bench_says_when_the_machine_was_too_noisy(polyphase, engine):
    """A few runs of microseconds, the first of them cold, vary; what is said must follow from the numbers."""
    done = polyphase("bench", engine, "--shape", "x=1x3x2x2", "--least-runs", 10, "--least-seconds", 0, "--warm-up", 0, "--json")
    report = json.loads(done.stdout)
    noise = report["noise"]
    assert report["believable"] == (noise["drift"] <= 0.10 and noise["variation"] <= 0.25)
    assert ("too noisy to believe" in done.stderr) == (not report["believable"])


def test_devices_names_the_cpu(polyphase):
    device, = json.loads(polyphase("devices", "--json").stdout)["devices"]
    assert device["target"] in ("scalar", "avx2", "avx512", "avx512_bf16", "amx") and device["cores"] == len(os.sched_getaffinity(0))
    assert device["memory_bytes"] > 1 << 28 and device["name"] in polyphase("devices").stdout


# ---------------------------------------------------------------- compare


def test_compare_ends_with_0_or_1_and_shows_the_worst_places(polyphase, up, engine, tmp_path):
    inputs = npz(tmp_path / "in.npz", x=image())
    right = small_models.up_expected(image())
    for model in (up, engine):
        assert "equal" in polyphase("compare", model, "--inputs", inputs, "--expect", npz(tmp_path / "right.npz", y=right)).stdout
    wrong = right.copy()
    wrong[0, 1, 2, 3] += 7
    wrong[0, 0, 5, 6] -= 1
    exact = ("--rtol", 0, "--atol", 1e-4)
    done = polyphase("compare", engine, "--inputs", inputs, "--expect", npz(tmp_path / "wrong.npz", y=wrong), *exact, expect=1)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines[0].startswith("[0, 1, 2, 3]") and lines[1].startswith("[0, 0, 5, 6]") and len(lines) == 2
    assert "DIFFERS" in done.stdout and "differ" in done.stderr
    found = polyphase("compare", engine, "--inputs", inputs, "--expect", tmp_path / "wrong.npz", *exact, "--worst", 1, "--json",
                      expect=1)
    output, = json.loads(found.stdout)["outputs"]
    assert output["outside"] == 2 and output["worst"][0]["index"] == [0, 1, 2, 3] and len(output["worst"]) == 1
    assert output["largest_absolute"] == pytest.approx(7, rel=1e-5)
    polyphase("compare", engine, "--inputs", inputs, "--expect", tmp_path / "wrong.npz", "--atol", 8)


def test_compare_names_another_shape_and_an_unknown_output(polyphase, engine, tmp_path):
    inputs = npz(tmp_path / "in.npz", x=image())
    done = polyphase("compare", engine, "--inputs", inputs, "--expect", npz(tmp_path / "a.npz", y=np.zeros((1, 2, 8), "f4")), expect=1)
    assert "it is f32 1x2x8x10, expected f32 1x2x8" in done.stdout
    done = polyphase("compare", engine, "--inputs", inputs, "--expect", npz(tmp_path / "b.npz", z=np.zeros(1)), expect=1)
    assert "holds 'z', which is no output. The outputs are 'y'." in done.stderr


# ---------------------------------------------------------------- sizes


def test_without_flags_sizes_stay_open(polyphase, engine, tmp_path):
    ports = json.loads(polyphase("inspect", engine, "--json").stdout)
    assert ports["inputs"][0]["sizes"] == ["N", "3", "H", "W"] and ports["outputs"][0]["sizes"] == ["N", "2", "2*H", "2*W"]
    for size in ((1, 4, 5), (3, 17, 2), (1, 1, 1), (2, 40, 33)):
        found = polyphase.run_arrays(engine, {"x": image(*size)}, tmp_path)["y"]
        np.testing.assert_allclose(found, small_models.up_expected(image(*size)), rtol=1e-5, atol=1e-6)


def test_sizes_nobody_gave_pass_the_checks_of_the_engine(polyphase, tmp_path):
    """Rows and columns that only an odd height and an even width plus one fill."""
    model = small_models.save(
        tmp_path / "m.onnx",
        [helper.make_node("Pad", ["x", "pads"], ["p"]), helper.make_node("SpaceToDepth", ["p"], ["y"], blocksize=2)],
        [("x", TensorProto.FLOAT, ["N", 3, "H", "W"])], [("y", TensorProto.FLOAT, None)],
        [("pads", np.array([0, 0, 0, 1, 0, 0, 1, 1], np.int64))])
    for command in (["inspect"], ["explain", "--no-run"], ["bench", *SHORT]):
        done = polyphase(command[0], model, *command[1:])
        assert "sizes nobody gave: N=1 H=257 W=256" in done.stderr


def test_sizes_are_named_bounded_and_tuned_for(polyphase, up, tmp_path):
    made = polyphase("compile", up, "-o", tmp_path / "m.ppe", "--shape", "x=1x3xAxB", "--dim", "A=8..64", "--dim", "B=6",
                     "--tune-for", "x=1x3x32x6", "--json")
    assert json.loads(made.stdout)["inputs"][0]["sizes"] == ["1", "3", "A", "6"]
    assert json.loads(polyphase("inspect", tmp_path / "m.ppe", "--json").stdout)["dims"] == {"A": {"low": 8, "high": 64}}
    for height in (8, 33, 64):
        found = polyphase.run_arrays(tmp_path / "m.ppe", {"x": image(1, height, 6)}, tmp_path)["y"]
        np.testing.assert_allclose(found, small_models.up_expected(image(1, height, 6)), rtol=1e-5, atol=1e-6)
    for array, said in [(image(1, 7, 6), "axis 2 (A) must lie in 8..64, found 7"), (image(1, 65, 6), "must lie in 8..64, found 65"),
                        (image(1, 8, 7), "axis 3 must be 6, found 7"), (image(2, 8, 6), "axis 0 must be 1, found 2")]:
        inputs = npz(tmp_path / "wrong.npz", x=array)
        done = polyphase("run", tmp_path / "m.ppe", "--inputs", inputs, expect=1)
        assert said in done.stderr and str(inputs) in done.stderr and "input 'x'" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["--shape", "z=1x3x4x4"], "no input"),
    (["--shape", "x=1x4x4x4"], "fixes it at 3"),
    (["--shape", "x=1x3x4"], "3 sizes"),
    (["--shape", "x=1x3x-4x4"], "-4"),
    (["--dim", "Q=4"], "named 'Q'"),
    (["--dim", "H=9..4"], "LOW at most HIGH"),
    (["--dim", "H"], "expected NAME=LOW..HIGH"),
    (["--tune-for", "x=1x3xHx4"], "'H' is not a number"),
    (["--tune-for", "x=1x5x4x4"], "axis 1 must be 3, found 5"),
    (["--target", "sse9"], "Targets are native, portable"),
    (["--without", "fold_everything"], "The passes are: "),
    (["--stop-after", "fold_everything"], "The passes are: "),
    (["--print-after", "fold_everything"], "The passes are: "),
], ids=" ".join)
def test_sizes_and_names_that_do_not_fit_are_refused(polyphase, up, tmp_path, words, said):
    done = polyphase("compile", up, "-o", tmp_path / "m.ppe", *words, expect=1)
    assert said in done.stderr and not (tmp_path / "m.ppe").exists()


def test_flags_that_would_do_nothing_are_refused(polyphase, engine, tmp_path):
    inputs = npz(tmp_path / "in.npz", x=image())
    for words, said in [
        (("run", engine, "--inputs", inputs, "--shape", "x=1x3x4x5"), "--shape does nothing here"),
        (("bench", engine, "--inputs", inputs, "--dim", "H=4"), "--dim does nothing here"),
        (("bench", engine, "--shape", "x=1x3xHx5"), "Give numbers"),
        (("bench", engine, "--dim", "Q=5"), "Its open sizes are: H, N, W."),
        (("explain", engine, "--without", "simplify"), "is an engine"),
        (("inspect", engine, "--target", "scalar"), "is an engine"),
        (("compile", engine, "-o", tmp_path / "m.ppe"), "is an engine already"),
    ]:
        assert said in polyphase(*words, expect=1).stderr


# ---------------------------------------------------------------- passes


def test_each_pass_is_printed_and_removed_by_name(polyphase, up, tmp_path):
    words = ("compile", up, "-o", tmp_path / "m.ppe")
    printed = polyphase(*words, "--print-after", "fuse_endings").stdout
    assert printed.startswith("# after fuse_endings\n") and "then relu" in printed and printed.count("# after") == 1
    assert "then relu" not in polyphase(*words, "--print-after", "all", "--without", "fuse_endings").stdout
    steps = json.loads(polyphase("inspect", up, "--without", "fuse_endings", "--json").stdout)["steps"]
    assert [step["operation"] for step in steps] == ["conv_transpose", "relu"]
    assert "# after fuse_endings" not in polyphase(*words, "--print-after", "all", "--stop-after", "simplify").stdout
    assert "fold_batch_norm changed nothing" in polyphase(*words, "--print-after", "fold_batch_norm").stderr
    known = polyphase(*words, "--without", "?", expect=1).stderr.split("The passes are: ")[1].strip(" .\n").split(", ")
    assert len(known) >= 15
    for name in known:
        polyphase(*words, "--without", name)
    inputs = npz(tmp_path / "in.npz", x=image())
    everything = [word for name in known for word in ("--without", name)]
    polyphase("run", up, "--inputs", inputs, "--outputs", tmp_path / "out.npz", *everything)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], small_models.up_expected(image()), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- explain, inspect


def test_explain_tells_kernels_refusals_and_rates(polyphase, up, engine):
    for model in (up, engine):
        report = json.loads(polyphase("explain", model, "--shape", "x=1x3x40x50", "--threads", 1, "--json").stdout)
        assert report["reference_steps"] == 0 and report["peak_gflops"] > 0
        step, = report["steps"]
        assert step["node"] == "deconvolution" and step["kernel"] and step["flops"] == 2 * 40 * 50 * 3 * 2 * 4 + 80 * 100 * 2
        assert step["share"] == pytest.approx(1) and step["gflops"] > 0 and 0 < step["percent_of_peak"] < 120
        assert all(row["reason"] for row in step["refused"]) and step["refused"]
        assert [row["kernel"] for row in step["accepted"] if row["taken"]] == [step["kernel"]]
    text = polyphase("explain", engine, "--shape", "x=1x3x40x50").stdout
    assert "GFLOP/s" in text and "not reference: " in text and "of peak" in text


def test_explain_writes_a_trace_that_perfetto_reads(polyphase, tmp_path):
    names = ["first", "second", "third"]
    model = small_models.chain(tmp_path / "m.onnx", names)
    polyphase("explain", model, "--trace", tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    steps = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [event["args"]["node"] for event in steps] == names
    assert {"process_name", "thread_name"} == {event["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    end = 0.0
    for event in steps:
        assert event["ts"] >= end - 1e-6 and event["dur"] > 0 and event["pid"] == 1 and event["tid"] == 1 and event["args"]["kernel"]
        end = event["ts"] + event["dur"]


def test_explain_reports_steps_whose_sizes_are_born_from_data(polyphase, tmp_path):
    model = small_models.sizes_from_data(tmp_path / "m.onnx")
    before = json.loads(polyphase("explain", model, "--no-run", "--json").stdout)["steps"]
    unknown = [step for step in before if step.get("sizes_unknown")]
    assert [step["node"] for step in unknown] == ["exponential"] and unknown[0]["kernels"]
    inputs = npz(tmp_path / "in.npz", x=np.zeros((1, 4), "f4"), s=np.array([300, 4]))
    after = json.loads(polyphase("explain", model, "--inputs", inputs, "--json").stdout)["steps"]
    step, = [step for step in after if step["node"] == "exponential"]
    assert "sizes_unknown" not in step and step["kernel"] in unknown[0]["kernels"] and step["flops"] == 1200
    assert "none: the result is empty" in polyphase(
        "explain", model, "--inputs", npz(tmp_path / "none.npz", x=np.zeros((1, 4), "f4"), s=np.array([0, 4]))).stdout


def test_inspect_draws_every_node(polyphase, tmp_path):
    names = ["a<b>&\"c\"", "größe→klein", "n" * 200, "plain/path.0/Softmax_1"]
    model = small_models.chain(tmp_path / "m.onnx", names)
    polyphase("inspect", model, "--graph", tmp_path / "m.svg")
    root = xml.etree.ElementTree.parse(tmp_path / "m.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = list(root.itertext())
    for name in names + ["v0", "v4"]:
        assert name in words
    assert len(root.findall(".//{*}path[@marker-end]")) == len(names) + 1
    assert float(root.get("width")) < 1000, "long names are cut in the drawing"


def test_inspect_prints_the_memory_plan(polyphase, tmp_path):
    model = small_models.chain(tmp_path / "m.onnx", ["a", "b", "c"])
    plan = json.loads(polyphase("inspect", model, "--shape", "v0=6x4x5", "--json").stdout)["memory"]
    assert plan["arena_bytes"] >= plan["lower_bound_bytes"] > 0 and plan["input_sizes"] == [[6, 4, 5]]
    for place in plan["placed"]:
        assert place["offset"] + place["bytes"] <= plan["arena_bytes"] and place["bytes"] >= 6 * 4 * 5 * 4
    assert "memory plan for v0=6x4x5" in polyphase("inspect", model, "--shape", "v0=6x4x5").stdout
