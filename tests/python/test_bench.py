"""The benchmark (bench/): what it counts, that a wrong result is never timed, and that no other system can break it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

from conftest import find_build

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import geometries  # noqa: E402
import layers  # noqa: E402
import measure  # noqa: E402
import padding  # noqa: E402
import upsampling  # noqa: E402
from work import Unable, Work  # noqa: E402


def run(*words: str, expect: int = 0) -> str:
    env = os.environ | {"PYTHONPATH": str(find_build() / "python")}
    done = subprocess.run([sys.executable, str(ROOT / "bench"), *words], capture_output=True, text=True, env=env, timeout=500)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def landed(layer: layers.Layer) -> float:
    """The FLOPs once more, by counting in PyTorch: ones everywhere make each output the number of its terms."""
    module = layer.module({"x": None, "w": np.ones(layer.weight_shape, np.float32), "b": np.zeros(layer.out_channels, np.float32)}).double()
    with torch.no_grad():
        return 2 * float(module(torch.ones(layer.batch, layer.in_channels, *layer.input, dtype=torch.float64)).sum())


def test_sizes_and_flops_are_pytorchs():
    small = [layer for layer in geometries.draw(3, 60) if layer.flops < 2e8]
    assert len(small) > 20
    for layer in small:
        assert layer.flops == landed(layer), layer
        with torch.no_grad():
            assert layer.module(layer.data())(torch.from_numpy(layer.data()["x"])).shape == (layer.batch, layer.out_channels, *layer.output)


def test_the_shipped_layers_can_be_read_and_half_of_them_are_not_one_family():
    found = layers.read()
    assert len(found) == 201 and sum(layer.suite for layer in found) == 36
    rows = json.loads(layers.SHIPPED.read_text())
    assert all(list(layer.output) == row["output"] for layer, row in zip(found, rows))


def test_draws_repeat_and_differ_by_seed():
    assert geometries.draw(5, 20) == geometries.draw(5, 20) != geometries.draw(6, 20)
    drawn = geometries.draw(7, 300)
    assert {layer.rank for layer in drawn} == {1, 2, 3}
    assert any(layer.groups == layer.in_channels > 1 for layer in drawn) and any(max(layer.dilation) > 1 for layer in drawn) and any(layer.out_channels <= 4 for layer in drawn)


class Fake:
    """A system: what it computes, how long it says that took."""

    def __init__(self, outputs, seconds=0.001, dies=False):
        self.outputs, self.seconds, self.dies = outputs, seconds, dies

    def load(self, work):
        if isinstance(self.outputs, str):
            raise Unable(self.outputs)
        return self.outputs

    def time(self, seconds, least, processor):
        if self.dies:
            raise Unable("its process ended with -9")
        return [self.seconds] * least

    def peak_bytes(self):
        return 1


def test_only_right_results_are_timed():
    want = [np.ones((2, 3))]
    systems = {"polyphase": Fake([np.ones((2, 3), np.float32)]), "torch": Fake([np.full((2, 3), 1.001, np.float32)], 1e-9), "openvino": Fake("it is not installed"),
               "onnxruntime": Fake([np.ones((2, 3), np.float32)], 0.002), "torch_last": Fake([np.ones((2, 3), np.float32)], 1e-9, dies=True), "inductor": Fake([np.ones((3, 2), np.float32)])}
    found = measure.measure(Work("w", {}, ["y"], "fp32"), want, systems, 0.01, 2)
    assert found["polyphase"].ms == pytest.approx(1) and found["onnxruntime"].ms == pytest.approx(2)
    assert measure.best_peer(found) == "onnxruntime"
    assert "relative error 1.0e-03" in found["torch"].why_not and found["torch"].ms is None
    assert "not installed" in found["openvino"].why_not and "-9" in found["torch_last"].why_not and "inf" in found["inductor"].why_not


def test_nan_is_wrong():
    assert measure.relative_error([np.array([np.nan])], [np.array([1.0])]) == float("inf")


def test_layers_from_a_file_beside_the_other_systems(tmp_path):
    rows = [row for row in json.loads(layers.SHIPPED.read_text()) if row["name"] == "dcgan_fc"]
    (tmp_path / "mine.json").write_text(json.dumps(rows + [rows[0] | {"name": "two_channels", "in_channels": 2, "out_channels": 2}]))
    said = run("layers", str(tmp_path / "mine.json"), "--seconds", "0.01", "--rounds", "1", "--peers", "polyphase,tuned,torch,torch_last,onnxruntime", "--memory", "--json", str(tmp_path / "out.json"))
    assert "two_channels" in said and "geometric mean" in said and "estimates against measured times: " in said
    report = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"] for row in report["rows"]] == ["C19 dcgan_fc", "C19 two_channels"]
    for row in report["rows"]:
        assert row["best_peer"] != "tuned"  # it is ours
        for peer in ("polyphase", "tuned", "torch", "torch_last", "onnxruntime"):
            result = row["results"][peer]
            assert result["ms"] > 0 and result["error"] < 1e-6 and result["peak_bytes"] > 10_000_000, (peer, result)
    assert report["roof"]["flops"] > 1e9


def test_fp32_models_may_be_computed_in_bf16(tmp_path):
    rows = [row for row in json.loads(layers.SHIPPED.read_text()) if row["name"] == "dcgan_d3"]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    words = ["layers", str(tmp_path / "mine.json"), "--precision", "auto", "--seconds", "0.01", "--rounds", "1", "--peers", "polyphase,torch,onnxruntime"]
    assert "onnxruntime: its CPU provider computes an FP32 model in FP32 only" in run(*words, "--json", str(tmp_path / "out.json"))
    [row] = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row["results"]["polyphase"]["error"] < 8e-3 and 1e-4 < row["results"]["torch"]["error"] < 8e-3, "autocast has rounded"


def test_a_users_model(tmp_path):
    from onnx import TensorProto, helper

    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 3, 4, 4], np.linspace(-1, 1, 96))
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "H", 5])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight])
    path = tmp_path / "mine.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    words = ["model", str(path), "--seconds", "0.01", "--rounds", "1", "--peers", "polyphase,onnxruntime,torch"]
    assert "--shape x=" in run(*words, expect=1)
    said = run(*words, "--shape", "x=1x2x7x5")
    assert "torch: there is no PyTorch module (1: mine)" in said


def test_padding_keeps_the_output_size_and_its_numbers(tmp_path):
    for family, layer in padding.draw(2, 1):
        found = list(padding.variants(layer))
        sizes = {tuple(out - pre - post for out, pre, post in zip(variant.layer.output, variant.pre, variant.post, strict=True)) for variant in found}
        assert len(sizes) == 1 and found[0].pre == found[0].post == (0,) * layer.rank, (family, layer)
        assert {"padding", "asymmetric", "beyond d(k-1)", "negative"} < {variant.name for variant in found}
    said = run("padding", "--count", "1", "--seconds", "0.001", "--rounds", "1", "--filter", "image", "--json", str(tmp_path / "out.json"))
    [row] = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row["ratios"]["none"] == 1 and min(row["ms"].values()) > 0 and "geometric mean" in said


def test_halves_stand_beside_what_they_are_in_fp32(tmp_path):
    said = run("halves", "--suite", "--filter", "dcgan_fc", "--seconds", "0.001", "--rounds", "1", "--json", str(tmp_path / "out.json"))
    [row] = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert set(row["ms"]) == {"fp32", "fp16", "bf16"} and row["ratios"]["fp32"] == 1 and min(row["ms"].values()) > 0
    assert "fp16 geometric mean" in said and "bf16 geometric mean" in said


def test_forms_of_upsampling_give_one_size():
    for place in upsampling.PLACES:
        small = upsampling.Place(place.name, 8, 4, tuple(6 for _ in place.input))
        x = torch.from_numpy(upsampling.inputs(small)["x"])
        with torch.no_grad():
            assert {upsampling.make(small, form)(x).shape for form in upsampling.FORMS} == {(1, 4, *[12] * place.rank)}
    tripled = upsampling.Place("plain", 1, 1, (2, 2, 2))
    assert upsampling.products(tripled, "transposed k4 s2") == 2 * 64 * 8 and upsampling.products(tripled, "conv k3, shuffle") == 2 * 64 * 27


def test_wrong_words():
    assert "there is no peer tensorrt" in run("layers", "--peers", "tensorrt", expect=2)
    assert "for one thread" in run("layers", "--threads", "2", "--processor-time", expect=2)
    assert "needs the file" in run("model", expect=2)
