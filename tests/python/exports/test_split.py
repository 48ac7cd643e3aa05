"""polyphase check --split: parts of a model that Polyphase does not take run in ONNX Runtime, and the chain gives what ONNX Runtime gives of the whole."""
from __future__ import annotations

import json
import random

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyphase as package

FLOAT = TensorProto.FLOAT


def right(model: onnx.ModelProto | str, inputs: dict) -> list[np.ndarray]:
    return ort.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


def theirs(inputs: list[str], output: str, name: str) -> onnx.NodeProto:
    """An operator of ONNX Runtime alone that Polyphase does not have."""
    return helper.make_node("Inverse", inputs, [output], name, domain="com.microsoft")


def model_of(nodes: list, outputs: list[str], inputs=("x",), weights=(), sizes=None, infer=True) -> onnx.ModelProto:
    sizes = sizes or [1, 3, 3]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, FLOAT, sizes) for name in inputs],
                              [helper.make_tensor_value_info(name, FLOAT, sizes) for name in outputs], list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    if infer:
        for node in nodes:
            for name in node.output:
                if name not in outputs:
                    model.graph.value_info.append(helper.make_tensor_value_info(name, FLOAT, sizes))
    return model


def regular(seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).integers(-2, 3, (1, 3, 3)) + 9 * np.eye(3)).astype(np.float32)


def split(model: onnx.ModelProto, folder):
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    count = package.split(folder / "model.onnx", folder / "parts")
    manifest = json.loads((folder / "parts" / "manifest.json").read_text())
    assert count == len(manifest["pieces"])
    return package.load_split(folder / "parts"), manifest


def originals(model: onnx.ModelProto) -> set[bytes]:
    return {node.SerializeToString() for node in model.graph.node}


def check_parts(model: onnx.ModelProto, manifest: dict, folder) -> None:
    """Every part is a sound model of the original's nodes, and no node that gives something is lost."""
    seen = set()
    for piece in manifest["pieces"]:
        part = onnx.load(folder / "parts" / piece["file"])
        onnx.checker.check_model(part)
        bytes_of = originals(part)
        assert bytes_of <= originals(model)
        assert (piece["engine"] == "polyphase") == (not any(node.domain == "com.microsoft" for node in part.graph.node))
        seen |= bytes_of
    assert {piece["engine"] for piece in manifest["pieces"]} <= {"polyphase", "onnxruntime"} and seen


def test_islands_are_as_large_as_the_order_allows(tmp_path):
    """Two branches, each with a foreign node: both foreign nodes share one part, so there are three."""
    w = numpy_helper.from_array(np.full((3, 3), 2, np.float32), "w")
    nodes = [helper.make_node("Relu", ["x"], ["a"], "a"), helper.make_node("Mul", ["x", "w"], ["b0"], "b0"), theirs(["x"], "a1", "foreign1"), helper.make_node("Add", ["b0", "x"], ["b"], "b"),
             theirs(["b"], "b1", "foreign2"), helper.make_node("Add", ["a1", "b1"], ["c"], "c"), helper.make_node("Mul", ["c", "w"], ["d0"], "d0"), helper.make_node("Add", ["d0", "a"], ["y"], "y")]
    model = model_of(nodes, ["y"], weights=[w])
    net, manifest = split(model, tmp_path)
    assert [(piece["engine"], piece["nodes"]) for piece in manifest["pieces"]] == [("polyphase", 3), ("onnxruntime", 2), ("polyphase", 3)]
    check_parts(model, manifest, tmp_path)
    x = regular(1)
    assert np.allclose(net(x), right(model, {"x": x})[0], rtol=1e-5, atol=1e-5)
    assert np.array_equal(net(x=x), net(x))
    for wrong, words in (((x, x), "has 1 inputs"), ((), "'x' was not given")):
        with pytest.raises(package.ArgumentError, match=words):
            net(*wrong)
    with pytest.raises(package.ArgumentError, match="no input 'z'"):
        net(z=x)


def test_a_model_that_is_taken_is_one_part(tmp_path):
    model = model_of([helper.make_node("Relu", ["x"], ["y"], "y")], ["y"])
    net, manifest = split(model, tmp_path)
    assert [piece["file"] for piece in manifest["pieces"]] == ["0.polyphase.onnx"]
    assert np.array_equal(net(regular(2)), np.maximum(regular(2), 0))


def test_a_branch_with_a_foreign_node_is_foreign_as_a_whole(tmp_path):
    branches = {"then_branch": helper.make_graph([theirs(["a"], "t", "inner")], "then", [], [helper.make_tensor_value_info("t", FLOAT, [1, 3, 3])]),
                "else_branch": helper.make_graph([helper.make_node("Neg", ["a"], ["e"])], "else", [], [helper.make_tensor_value_info("e", FLOAT, [1, 3, 3])])}
    nodes = [helper.make_node("Mul", ["x", "x"], ["b"], "b"), helper.make_node("Add", ["x", "x"], ["a"], "a"), helper.make_node("Greater", ["s", "zero"], ["flag"], "flag"),
             helper.make_node("If", ["flag"], ["c"], "if", **branches), helper.make_node("Sub", ["c", "b"], ["y"], "y")]
    model = model_of(nodes, ["y"], weights=[numpy_helper.from_array(np.float32(0), "zero")], infer=False)
    model.graph.input.append(helper.make_tensor_value_info("s", FLOAT, []))
    model.graph.value_info.append(helper.make_tensor_value_info("c", FLOAT, [1, 3, 3]))
    net, manifest = split(model, tmp_path)
    assert [piece["engine"] for piece in manifest["pieces"]] == ["polyphase", "onnxruntime", "polyphase"]
    assert "a" in manifest["pieces"][1]["inputs"]
    for s in (np.array(1, np.float32), np.array(-1, np.float32)):
        assert np.allclose(net(regular(3), s), right(model, {"x": regular(3), "s": s})[0], rtol=1e-5, atol=1e-5)


def test_outputs_that_are_inputs_and_shared_weights_in_a_file(tmp_path):
    w = numpy_helper.from_array(np.arange(9, dtype=np.float32).reshape(3, 3), "w")
    nodes = [theirs(["x"], "a", "f"), helper.make_node("Add", ["a", "w"], ["b"], "b"), helper.make_node("Mul", ["x", "w"], ["c"], "c")]
    model = model_of(nodes, ["x", "b", "c", "a"], weights=[w])
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    package.split(tmp_path / "model.onnx", tmp_path / "parts")
    (tmp_path / "w.bin").rename(tmp_path / "gone.bin")
    net = package.load_split(tmp_path / "parts")
    (tmp_path / "gone.bin").rename(tmp_path / "w.bin")
    x = regular(4)
    expected = right(str(tmp_path / "model.onnx"), {"x": x})
    assert net.outputs == ("x", "b", "c", "a")
    for found, wanted in zip(net(x), expected, strict=True):
        assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_open_sizes(tmp_path):
    nodes = [helper.make_node("Add", ["x", "x"], ["a"], "a"), theirs(["a"], "b", "f"), helper.make_node("Add", ["b", "a"], ["y"], "y")]
    model = model_of(nodes, ["y"], sizes=["batch", 3, 3])
    net, _ = split(model, tmp_path)
    for count in (1, 4):
        x = np.concatenate([regular(seed) for seed in range(count)])
        assert np.allclose(net(x), right(model, {"x": x})[0], rtol=1e-5, atol=1e-5)


def drawn(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    rng = random.Random(seed)
    tensors, nodes = ["x", "z"], []
    weights = [numpy_helper.from_array(regular(seed + k)[0], f"w{k}") for k in range(2)]
    for i in range(rng.randint(4, 16)):
        out = f"t{i}"
        kind = rng.randrange(6)
        if kind == 0:  # (9 I + small)⁻¹ stays far from singular: always of an input and something bounded
            nodes.append(theirs([rng.choice(["x", "z"])], out, f"n{i}"))
        elif kind == 1:
            nodes.append(helper.make_node("Tanh", [rng.choice(tensors)], [out], f"n{i}"))
        elif kind == 2:
            constant = f"k{i}"
            nodes.append(helper.make_node("Constant", [], [constant], f"c{i}", value=numpy_helper.from_array(np.float32(0.5), "v")))
            nodes.append(helper.make_node("Mul", [rng.choice(tensors), constant], [out], f"n{i}"))
        elif kind == 3:
            nodes.append(helper.make_node("MatMul", [rng.choice(tensors), rng.choice(["w0", "w1"])], [f"m{i}"], f"m{i}"))
            nodes.append(helper.make_node("Tanh", [f"m{i}"], [out], f"n{i}"))
        elif kind == 4:
            nodes.append(helper.make_node("Tanh", [rng.choice(tensors)], [f"m{i}"], f"m{i}"))
            nodes.append(helper.make_node("Add", [f"m{i}", "eye"], [f"e{i}"], f"e{i}"))
            nodes.append(theirs([f"e{i}"], out, f"n{i}"))
        else:
            nodes.append(helper.make_node("Sub", [rng.choice(tensors), rng.choice(tensors)], [out], f"n{i}"))
        tensors.append(out)
    outputs = [name for name in tensors if name.startswith("t") and rng.random() < 0.3] or [tensors[-1]]
    weights.append(numpy_helper.from_array((9 * np.eye(3)).astype(np.float32), "eye"))
    model = model_of(nodes, outputs, ("x", "z"), weights)
    del model.graph.value_info[:]
    model.graph.value_info.extend(helper.make_tensor_value_info(name, FLOAT, [1, 3, 3]) for node in nodes if node.domain for name in node.output if name not in outputs)
    return model, {"x": regular(seed), "z": regular(seed + 7)}


def test_random_graphs(full, slice_seed, tmp_path):
    islands = 0
    for seed in range(slice_seed * 1000, slice_seed * 1000 + (400 if full else 25)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        model, inputs = drawn(seed)
        net, manifest = split(model, folder)
        check_parts(model, manifest, folder)
        kinds = [piece["engine"] for piece in manifest["pieces"]]
        assert all(a != b for a, b in zip(kinds, kinds[1:])), (seed, kinds)
        islands += len(kinds)
        found = net(**{name: inputs[name] for name in net.inputs})
        for one, wanted in zip(found if isinstance(found, tuple) else (found,), right(model, inputs), strict=True):
            assert np.allclose(one, wanted, rtol=1e-4, atol=1e-4 * max(1, np.abs(wanted).max())), seed
    assert islands > 50


def test_refusals_and_the_command(polyphase, tmp_path):
    nodes = [theirs(["x"], "a", "f"), helper.make_node("Relu", ["a"], ["y"], "y")]
    model = model_of(nodes, ["y"], infer=False)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(package.UnsupportedError, match="tensor 'a' goes from one piece to another, and its type and rank are not known"):
        package.split(tmp_path / "model.onnx", tmp_path / "parts")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    (tmp_path / "model.onnx").write_bytes(model_of(nodes, ["y"]).SerializeToString())
    said = polyphase("check", tmp_path / "model.onnx", "--split", tmp_path / "parts").stdout
    assert "0.onnxruntime.onnx" in said and "1.polyphase.onnx" in said and "2 parts and manifest.json" in said
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["0.onnxruntime.onnx", "1.polyphase.onnx", "manifest.json"]
    assert "is there already" in polyphase("check", tmp_path / "model.onnx", "--split", tmp_path / "parts", expect=1).stderr
    data = json.loads(polyphase("check", tmp_path / "model.onnx", "--split", tmp_path / "more", "--json").stdout)
    assert [piece["outputs"] for piece in data["pieces"]] == [["a"], ["y"]]
    (tmp_path / "parts" / "manifest.json").write_text('{"polyphase_split": 2}')
    with pytest.raises(package.ArgumentError, match="another kind or version"):
        package.load_split(tmp_path / "parts")
    with pytest.raises(package.ArgumentError, match="holds no parts of a model"):
        package.load_split(tmp_path)
