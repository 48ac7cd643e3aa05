"""OpenVINO and a Pad in front of a transposed convolution: random amounts, modes and geometries, right after the export, and left alone where it is right."""
from __future__ import annotations

import collections
import random

import numpy as np
from engines import need, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from trials import exported, verdict


def drawn(rng: random.Random) -> tuple:
    open_sizes, groups, kernel, opset = rng.random() < 0.3, rng.choice([1, 2]), rng.randint(1, 4), rng.choice([10, 13, 17, 18])
    strides, crop = [rng.randint(1, 3) for _ in range(2)], [rng.randint(0, 2) for _ in range(4)]
    amounts = [0, 0, rng.randint(0, 2), rng.randint(0, 2), 0, 0, rng.randint(0, 2), rng.randint(-1, 2)]
    mode, value = rng.choice(["constant"] * 4 + ["edge"]), rng.choice([0.0, 0.0, 0.0, 1.0])
    if mode == "edge":
        amounts = [abs(amount) for amount in amounts]
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    x, w = (numbers.integers(-3, 4, sizes).astype(np.float32) for sizes in ((1, 4, 5, 6), (4, 2, kernel, kernel)))
    weights = [numpy_helper.from_array(w, "w")]
    if opset < 11:
        pad = helper.make_node("Pad", ["x"], ["padded"], "pad", mode=mode, pads=amounts, value=value)
    else:
        pad = helper.make_node("Pad", ["x", "amounts", "value"], ["padded"], "pad", mode=mode)
        weights += [numpy_helper.from_array(np.array(amounts, np.int64), "amounts"), numpy_helper.from_array(np.float32(value), "value")]
    up = helper.make_node("ConvTranspose", ["padded", "w"], ["y"], "up", strides=strides, pads=crop, group=groups)
    graph = helper.make_graph([pad, up], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, "h", "w_"] if open_sizes else [1, 4, 5, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), {"x": x}


def test_a_pad_in_front(full, slice_seed, tmp_path, capsys):
    need("openvino", full)
    rng = random.Random(slice_seed)
    said, wrong = collections.Counter(), []
    for _ in range(1_000 if full else 60):
        model, inputs = drawn(rng)
        right = onnxruntime(model.SerializeToString(), inputs)
        if not right.size:
            continue
        before = verdict("openvino", model.SerializeToString(), inputs, right)
        made, report = exported("openvino", model, tmp_path)
        after = verdict("openvino", made, inputs, right)
        said[before.split(":")[0]] += 1
        if after != "right":
            wrong.append(f"{before} → {after}: {model.graph.node}")
        elif before == "right" and report["changes"]:
            wrong.append(f"rewritten, though OpenVINO takes it: {model.graph.node}")
    with capsys.disabled():
        print(f"\nopenvino, a Pad in front: {dict(said)} before")
    assert not wrong, f"{len(wrong)} of {sum(said.values())}\n" + "\n".join(wrong[:5])
    assert said["right"] > 10 and said["wrong"] > 3
