"""polyphase export --opset: each step from one version of an operator to another, and ONNX's own node tests there and back, in ONNX Runtime."""
from __future__ import annotations

import collections
import random
import warnings

import numpy as np
import onnx
import onnxruntime as ort
import opset_history
import opsets_page
import pytest
from conftest import ROOT
from onnx import TensorProto, helper, numpy_helper
from opset_cases import CASES, OpsetCase, case, whole

import polyphase as package

NEWEST_RUN = 26  # that ONNX Runtime 1.31 takes
STEPS = {(f"{step['operation']}-{step['version']}", way): step["tolerance"] for step in package.opset_steps() for way in ("up", "down") if step[way]}


def run(model: bytes, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, inputs)


def converted(model: onnx.ModelProto, opset: int, folder) -> tuple[bytes, dict]:
    (folder / "before.onnx").write_bytes(model.SerializeToString())
    report = package.export(folder / "before.onnx", folder / "after.onnx", target="onnx", opset=opset)
    return (folder / "after.onnx").read_bytes(), report


def same(found: np.ndarray, right: np.ndarray, tolerance: float) -> bool:
    if found.dtype != right.dtype or found.shape != right.shape:
        return False
    if right.dtype.kind != "f":
        return np.array_equal(found, right)
    found, right = found.astype(np.float64), right.astype(np.float64)
    return np.allclose(found, right, rtol=tolerance, atol=tolerance * max(1, np.abs(right[np.isfinite(right)]).max(initial=0)), equal_nan=True)


def test_the_table_of_versions_is_onnxs():
    assert (ROOT / "src/export/opset_history.cpp").read_text() == opset_history.source(), "tests/python/exports/opset_history.py > src/export/opset_history.cpp"


def test_the_page_is_up_to_date():
    assert (ROOT / "docs/opsets.md").read_text() == opsets_page.page(), "docs/opsets.md is not what tests/python/exports/opsets_page.py writes"


def test_every_step_has_a_case():
    met = {(one.rule, "up" if one.up else "down") for one in CASES}
    assert sorted(set(STEPS) - met) == []


@pytest.mark.parametrize("one", CASES, ids=lambda one: f"{one.rule}-{'up' if one.up else 'down'}")
def test_a_step(one: OpsetCase, tmp_path):
    before = one.model.opset_import[0].version
    if one.refused:
        with pytest.raises(package.UnsupportedError, match=f"(?s)node 'node': .* cannot be said in opset {one.opset}: .*{one.refused}.*; it needs opset {max(before, one.opset) - one.up} or {'earlier' if one.up else 'later'}"):
            converted(one.model, one.opset, tmp_path)
        assert not (tmp_path / "after.onnx").exists()
        return
    made, report = converted(one.model, one.opset, tmp_path)
    changed = {change["rule"] for change in report["changes"]}
    assert changed <= {one.rule} and report["opset"] == one.opset
    assert report["whole_model_compared"] or report["nodes_compared"] == 1
    parsed = onnx.load_model_from_string(made)
    assert checks(parsed) or not checks(one.model)
    assert [entry.version for entry in parsed.opset_import if entry.domain == ""] == [one.opset]
    if max(before, one.opset) > NEWEST_RUN:
        return
    try:
        right = run(one.model.SerializeToString(), one.inputs)
    except Exception as said:  # noqa: BLE001: ONNX Runtime lacks some versions of some types; our interpreter has compared
        assert "NOT_IMPLEMENTED" in str(said) or "NotImplemented" in repr(type(said)), said
        return
    tolerance = max([change["tolerance"] for change in report["changes"]], default=0) * (1000 if right[0].dtype == np.float16 else 1)
    for found, expected in zip(run(made, one.inputs), right, strict=True):
        assert same(found, expected, tolerance or 1e-6)


def node_cases() -> list[tuple[str, onnx.ModelProto, dict[str, np.ndarray]]]:
    """Those of ONNX's own node tests that are one node of ONNX's own operators on tensors; all operands but the first are in the model."""
    from onnx.backend.test.case.node import collect_testcases

    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for test in found:
        model = test.model
        if model is None or len(model.graph.node) != 1 or model.graph.node[0].domain or model.functions or model.opset_import[0].version < opset_history.OLDEST:
            continue
        arrays = test.data_sets[0][0]
        if not arrays or not all(isinstance(array, np.ndarray) and array.dtype != object and array.dtype.kind in "fiub" for array in arrays):
            continue
        closed = onnx.ModelProto()
        closed.CopyFrom(model)
        closed.ir_version = min(max(closed.ir_version, 4), 10)
        names = [value.name for value in model.graph.input]
        del closed.graph.input[1:]
        closed.graph.initializer.extend(numpy_helper.from_array(array, name) for array, name in list(zip(arrays, names))[1:])
        out.append((test.name, closed, {names[0]: arrays[0]}))
    return out


def checks(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # noqa: BLE001: some of ONNX's own tests do not pass its own checker
        return False
    return True


def test_onnxs_node_tests_there_and_back(full, slice_seed, tmp_path, capsys):
    rng = random.Random(slice_seed)
    cases = node_cases()
    chosen = cases if full else rng.sample(cases, 70)
    counts, wrong = collections.Counter(), []
    for name, model, inputs in chosen:
        try:
            right = run(model.SerializeToString(), inputs)
        except Exception:  # noqa: BLE001
            counts["ONNX Runtime has no such operator"] += 1
            continue
        if not all(isinstance(value, np.ndarray) for value in right):
            counts["its result is no tensor"] += 1
            continue
        version = model.opset_import[0].version
        wanted = [opset for opset in range(opset_history.OLDEST, NEWEST_RUN + 1) if opset != version]
        for opset in wanted if full else rng.sample(wanted, 2):
            path, here = [], model
            for to in (opset, version):
                try:
                    made, report = converted(here, to, tmp_path)
                except package.UnsupportedError as said:
                    counts["refused"] += 1
                    if "cannot be said in opset" not in str(said):
                        wrong.append(f"{name} {version} {path} → {to}: {said}")
                    break
                path.append(to)
                here = onnx.load_model_from_string(made)
                if checks(model) and not checks(here):
                    wrong.append(f"{name} {version} → {path}: onnx.checker refuses it")
                    break
                try:
                    found = run(made, inputs)
                except Exception as said:  # noqa: BLE001
                    if "NOT_IMPLEMENTED" not in str(said):
                        wrong.append(f"{name} {version} → {path}: {said}")
                    counts["ONNX Runtime lacks that version"] += 1
                    continue
                narrow = right[0].dtype == np.float16
                counts["equal"] += 1
                if not all(same(a, b, 1e-2 if narrow else 1e-5) for a, b in zip(found, right, strict=True)):
                    wrong.append(f"{name} {version} → {path}: other numbers")
    with capsys.disabled():
        print(f"\n{len(chosen)} of ONNX's {len(cases)} node tests from seed {slice_seed}: {dict(counts)}")
    assert not wrong, "\n".join(wrong[:20])


def test_untouched_nodes_stay_byte_for_byte(tmp_path):
    soft = case("Softmax-13", 12, 13, whole(2, 3, 4), axis=1).model
    relu = helper.make_node("Relu", ["y0"], ["z"], "relu", doc_string="mine")
    soft.graph.node.append(relu)
    soft.graph.output[0].name = "z"
    soft.producer_name = "somebody"
    made, report = converted(soft, 13, tmp_path)
    after = onnx.load_model_from_string(made)
    assert after.graph.node[-1].SerializeToString() == relu.SerializeToString() and after.producer_name == "somebody"
    assert [change["after"] for change in report["changes"]] == ["Flatten{axis: 1}, Softmax{axis: 1}, Shape, Reshape"]
    assert [node.name for node in after.graph.node] == ["node/flat", "node/of_flat", "node/shape", "node", "relu"]
    made, report = converted(soft, 12, tmp_path)
    assert made == (tmp_path / "before.onnx").read_bytes() and report["changes"] == []


def test_a_branch_and_a_target_behind_the_opset(tmp_path):
    """Softmax in a branch goes by its rule; then ONNX Runtime's rule about output_padding, in the new opset's words."""
    inner = helper.make_graph([helper.make_node("Softmax", ["x"], ["t"], "inner", axis=1)], "then", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])
    other = helper.make_graph([helper.make_node("ConvTranspose", ["x", "w"], ["e"], "up", dilations=[3], output_padding=[2])], "else", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)])
    node = helper.make_node("If", ["flag"], ["y"], "if", then_branch=inner, else_branch=other)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("flag", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(whole(2, 2, 3), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (tmp_path / "before.onnx").write_bytes(model.SerializeToString())
    report = package.export(tmp_path / "before.onnx", tmp_path / "after.onnx", target="onnxruntime", opset=11)
    assert [change["rule"] for change in report["changes"]] == ["Softmax-13", "output-padding-from-stride-on"]
    made = (tmp_path / "after.onnx").read_bytes()
    branches = {attribute.name: attribute.g for attribute in onnx.load_model_from_string(made).graph.node[0].attribute}
    pads = [inner for inner in branches["else_branch"].node if inner.op_type == "Pad"]
    assert not pads[0].attribute and len(pads[0].input) == 2
    x = whole(1, 2, 5)
    for flag in (True, False):
        found = run(made, {"flag": np.array(flag), "x": x})[0]
        right = package.compile(tmp_path / "before.onnx")(np.array(flag), x)
        assert same(found, np.asarray(right), 1e-6)


def test_an_old_format_gets_constants_and_no_initializers(tmp_path):
    model = case("Clip-11", 10, 11, whole(2, 3), min=-1.0).model
    model.ir_version = 3
    made, _ = converted(model, 11, tmp_path)
    after = onnx.load_model_from_string(made)
    onnx.checker.check_model(after, full_check=True)
    assert [node.op_type for node in after.graph.node] == ["Constant", "Constant", "Clip"] and not after.graph.initializer


def test_wrong_opsets(polyphase, tmp_path):
    model = case("Relu-14", 14, 13, whole(2, 3)).model
    for opset in (6, 29):
        with pytest.raises(package.ArgumentError, match=f"no conversion to opset {opset}. Give an opset from 7 to 28."):
            converted(model, opset, tmp_path)
    with pytest.raises(package.ArgumentError, match="opset is '13'"):
        converted(model, "13", tmp_path)
    said = polyphase("export", tmp_path / "before.onnx", "--for", "onnx", "--opset", "13", "-o", tmp_path / "out.onnx", "--report").stdout
    assert "opset 13: 0 of 1 nodes rewritten; the whole model gives the same bits" in said


def test_a_function_is_refused(tmp_path):
    inner = helper.make_function("mine", "Act", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 17)])
    graph = helper.make_graph([helper.make_node("Act", ["x"], ["y"], domain="mine")], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=8, functions=[inner])
    with pytest.raises(package.UnsupportedError, match="functions of its own \\('Act'\\).*inline_local_functions"):
        converted(model, 13, tmp_path)
