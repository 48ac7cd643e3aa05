"""tools/check_tensorrt.py and `polyphase check --for tensorrt`, against the stand-in for TensorRT's parser."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import onnx
from conftest import ROOT, find_build
from rule_cases import one_axis, output_padding
from trials import exported, verdict


def run_tool(*arguments) -> subprocess.CompletedProcess:
    stand_in = pathlib.Path(__file__).with_name("stand_in")
    path = os.pathsep.join([str(stand_in), str(find_build() / "python")])
    return subprocess.run([sys.executable, str(ROOT / "tools/check_tensorrt.py"), *map(str, arguments)], env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                          text=True, check=False)


def test_the_tool_confirms_every_rule():
    done = run_tool("--rules")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("TensorRT 0.stand-in, Polyphase ") and done.stdout.count(": confirmed\n") == 6


def test_the_tool_looks_at_models(tmp_path):
    (tmp_path / "model.onnx").write_bytes(output_padding().model.SerializeToString())
    done = run_tool(tmp_path / "model.onnx")
    assert done.returncode == 0 and "as it is: up: output padding is not supported; after the export: built" in done.stdout


def test_the_tool_takes_files_beside_the_model_and_open_sizes(tmp_path):
    case = output_padding()
    model = case.model
    for dim in (0, 2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[dim].dim_param = f"size{dim}"
    for tensor in model.graph.initializer:
        tensor.raw_data = onnx.numpy_helper.to_array(tensor).tobytes()
        for field in ("float_data", "int64_data"):
            tensor.ClearField(field)
    onnx.save_model(model, str(tmp_path / "model.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)
    done = run_tool(tmp_path / "model.onnx", "--size", "24")
    assert done.returncode == 0 and "as it is: up: output padding is not supported; after the export: built" in done.stdout, done.stdout + done.stderr


def test_the_tool_says_what_it_cannot_ask_about(tmp_path):
    assert "nothing to ask about: give models, or --rules" in run_tool().stderr
    assert run_tool("none.onnx").stderr.startswith("error: the file 'none.onnx' cannot be opened")
    (tmp_path / "text.onnx").write_text("no model")
    assert "not an ONNX model" in run_tool(tmp_path / "text.onnx").stderr


def test_output_padding_becomes_less_padding_and_nothing_else(tmp_path):
    """pre = p, post = p - output_padding, as long as that is not below zero: no node more."""
    case = output_padding()
    model, report = exported("tensorrt", case.model, tmp_path)
    assert verdict("tensorrt", model, case.inputs, case.right) == "right"
    assert [change["after"] for change in report["changes"]] == [report["changes"][0]["after"]]
    assert report["changes"][0]["after"].startswith("ConvTranspose{") and "pads: [1, 0, 0, 0]" in report["changes"][0]["after"]


def test_check_for_tensorrt(polyphase, tmp_path):
    (tmp_path / "model.onnx").write_bytes(one_axis().model.SerializeToString())
    text = polyphase("check", tmp_path / "model.onnx", "--for", "tensorrt", expect=4).stdout
    assert "one-axis" in text and "rewrites it" in text and "NOT READY for tensorrt: 1 node;" in text
    data = json.loads(polyphase("check", tmp_path / "model.onnx", "--for", "tensorrt", "--json", expect=4).stdout)
    assert data["findings"][0]["node"] == "up" and data["findings"][0]["rule"] == "one-axis" and not data["ok"]
    assert "ready: onnxruntime takes it" in polyphase("check", tmp_path / "model.onnx", "--for", "onnxruntime").stdout
