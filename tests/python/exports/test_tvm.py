"""A DCGAN whose layers stand between tensors that are channels-last, as front ends of NHWC frameworks write it, in TVM."""
from __future__ import annotations

import numpy as np
import onnx
import pytest
from engines import need, onnxruntime, tvm
from drawn_models import draw
from onnx import TensorProto, helper, numpy_helper
from trials import exported, verdict


def channels_last_dcgan() -> onnx.ModelProto:
    """Five transposed convolutions; the third is written with output_shape, which TVM does not read."""
    rng = np.random.default_rng(1)
    nodes, weights = [], []
    sizes = [(16, 16, 4, 1, 0), (16, 12, 4, 2, 1), (12, 8, 4, 2, 1), (8, 4, 4, 2, 1), (4, 3, 4, 2, 1)]
    value = "z"
    for i, (inputs, outputs, kernel, stride, padding) in enumerate(sizes):
        weights.append(numpy_helper.from_array(rng.integers(-1, 2, (inputs, outputs, kernel, kernel)).astype(np.float32), f"w{i}"))
        crop = {"output_shape": [16, 16]} if i == 2 else {"pads": [padding] * 4}
        nodes += [helper.make_node("Transpose", [value], [f"first{i}"], perm=[0, 3, 1, 2]),
                  helper.make_node("ConvTranspose", [f"first{i}", f"w{i}"], [f"up{i}"], f"layer{i}", strides=[stride, stride], **crop),
                  helper.make_node("Transpose", [f"up{i}"], [f"last{i}"], perm=[0, 2, 3, 1]), helper.make_node("Relu", [f"last{i}"], [f"act{i}"])]
        value = f"act{i}"
    graph = helper.make_graph(nodes, "dcgan", [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 1, 1, 16])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, [2, 64, 64, 3])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_channels_last_dcgan_is_built_and_right(full, tmp_path):
    need("tvm", full)
    model = channels_last_dcgan()
    z = {"z": np.random.default_rng(2).integers(-1, 2, (2, 1, 1, 16)).astype(np.float32)}
    right = onnxruntime(model.SerializeToString(), z)
    made, report = exported("tvm", model, tmp_path)
    assert [(change["node"], change["rule"]) for change in report["changes"]] == [("layer2", "output-shape")]
    assert np.array_equal(tvm(made, z), right) and right.shape == (2, 64, 64, 3)


@pytest.mark.parametrize("seed, changes", [(1_000_739, 1), (1_000_868, 1), (1_000_323, 0)])
def test_output_shape_beside_same(seed, changes, full, tmp_path):
    """TVM reads auto_pad and not output_shape: wrong where the size asked for is another, even the one that needs no padding."""
    need("tvm", full)
    case = draw(seed)
    made, report = exported("tvm", case.model, tmp_path)
    assert len(report["changes"]) == changes and verdict("tvm", made, case.inputs, case.right) == "right"
