"""Operators with data that ask for too much or for nonsense."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile.parts import CASES, branch, case, deconv, info, model, node, weight


def with_shape(op, values, name="n", **attributes):
    return model([node(op, "x,s", name=name, **attributes)], [numpy_helper.from_array(np.array(values, np.int64), "s")])


CASES["reshape_two_open"] = lambda: with_shape("Reshape", [-1, -1])
CASES["reshape_negative"] = lambda: with_shape("Reshape", [-2, 25])
CASES["reshape_wrong_count"] = lambda: with_shape("Reshape", [7, 7])
CASES["reshape_zero_beyond_rank"] = lambda: with_shape("Reshape", [1, 2, 5, 5, 0])
CASES["reshape_open_with_zero"] = lambda: with_shape("Reshape", [0, -1, 2**62, 2**62])
CASES["expand_huge"] = lambda: with_shape("Expand", [2**40, 1, 1, 1, 1, 1])
CASES["expand_mismatch"] = lambda: with_shape("Expand", [1, 3, 5, 5])
CASES["tile_huge"] = lambda: with_shape("Tile", [2**62, 2**62, 1, 1])
CASES["tile_negative"] = lambda: with_shape("Tile", [-1, 1, 1, 1])
CASES["pad_odd"] = lambda: with_shape("Pad", [1, 1, 1])
CASES["pad_huge"] = lambda: with_shape("Pad", [2**62, 0, 0, 0, 2**62, 0, 0, 0])
CASES["unsqueeze_twice"] = lambda: with_shape("Unsqueeze", [1, 1])
CASES["unsqueeze_far"] = lambda: with_shape("Unsqueeze", [9])
CASES["squeeze_not_1"] = lambda: with_shape("Squeeze", [1])
CASES["reduce_axis_beyond"] = lambda: with_shape("ReduceSum", [4])
CASES["split_wrong_sum"] = lambda: model([node("Split", "x,s", "y,z", axis=1)], [numpy_helper.from_array(np.array([1, 2], np.int64), "s")])
CASES["split_uneven"] = lambda: model([node("Split", "x", "y,z", axis=2)])
CASES["constant_of_shape_huge"] = lambda: model([node("ConstantOfShape", "s")], [numpy_helper.from_array(np.array([2**40, 2**40], np.int64), "s")])
CASES["range_step_zero"] = lambda: model([node("Range", "a,b,c")], [numpy_helper.from_array(np.int64(v), n) for v, n in ((0, "a"), (9, "b"), (0, "c"))])
CASES["range_float_huge"] = lambda: model([node("Range", "a,b,c")], [numpy_helper.from_array(np.float32(v), n) for v, n in ((0, "a"), (1e30, "b"), (1, "c"))])
CASES["slice_step_zero"] = lambda: model([node("Slice", "x,a,a,a,a")], [numpy_helper.from_array(np.array([0], np.int64), "a")])
CASES["slice_lengths"] = lambda: model([node("Slice", "x,a,b")], [numpy_helper.from_array(np.zeros(n, np.int64), s) for n, s in ((1, "a"), (2, "b"))])
CASES["transpose_not_permutation"] = lambda: model([node("Transpose", perm=[0, 0, 1, 2])])
CASES["concat_axis_beyond"] = lambda: model([node("Concat", "x,x", axis=4)])
CASES["gather_axis_beyond"] = lambda: with_shape("Gather", [0], axis=7)
CASES["pool_kernel_zero"] = lambda: model([node("MaxPool", kernel_shape=[0, 2])])
CASES["pool_without_kernel"] = lambda: model([node("MaxPool")])
CASES["pool_larger_than_input"] = lambda: model([node("MaxPool", kernel_shape=[9, 9])])
CASES["depth_to_space_zero"] = lambda: model([node("DepthToSpace", blocksize=0)])
CASES["depth_to_space_channels"] = lambda: model([node("DepthToSpace", blocksize=2)])
CASES["resize_scale_zero"] = lambda: model([node("Resize", "x,,s")], [weight("s", 4, value=0.0)])
CASES["resize_neither"] = lambda: model([node("Resize", "x")])
CASES["resize_huge"] = lambda: model([node("Resize", "x,,s")], [weight("s", 4, value=1e8)])
CASES["group_norm_groups"] = lambda: model([node("GroupNormalization", "x,s,s", num_groups=3)], [weight("s", 2)], opset=21)
CASES["batch_norm_training"] = lambda: model([node("BatchNormalization", "x,s,s,s,s", training_mode=1)], [weight("s", 2)])
CASES["batch_norm_length"] = lambda: model([node("BatchNormalization", "x,s,s,s,s")], [weight("s", 3)])
CASES["cast_to_unknown"] = lambda: model([node("Cast", to=99)])
CASES["cast_to_complex"] = lambda: model([node("Cast", to=TensorProto.COMPLEX64)])
CASES["constant_without_value"] = lambda: model([helper.make_node("Constant", [], ["y"], name="c")])
CASES["if_condition_not_bool"] = lambda: model([node("If", then_branch=branch("Relu"), else_branch=branch("Tanh"))])
CASES["if_without_else"] = lambda: model([node("If", "c", then_branch=branch("Relu"))], [weight("c", dtype=np.bool_)])


@case
def chain_of_a_million():
    made = model([], inputs=[info("x", (1,))])
    names = ["x", *(f"v{i}" for i in range(999_999)), "y"]
    made.graph.node.extend(onnx.NodeProto(op_type="Neg", input=[a], output=[b]) for a, b in zip(names, names[1:]))
    return made


@case
def fan_out_of_a_hundred_thousand():
    return model([*(onnx.NodeProto(op_type="Neg", input=["x"], output=[f"v{i}"]) for i in range(100_000)), node("Relu")], inputs=[info("x", (1,))])


@case
def name_of_ten_million():
    return model([node("Relu", name="n" * 10_000_000), node("Rleu", "y", "z", name="m" * 10_000_000)])


@case
def sequence_of_one_by_one():
    """Each insertion makes a new list."""
    nodes = [helper.make_node("SequenceEmpty", [], ["s0"])]
    nodes += [helper.make_node("SequenceInsert", [f"s{i}", "x"], [f"s{i + 1}"], name=f"n{i}") for i in range(20_000)]
    return model([*nodes, node("SequenceAt", "s20000,p")], [numpy_helper.from_array(np.array(0), "p")])


@case
def sequence_split_too_fine():
    return model([node("SplitToSequence", "x", "s"), node("SequenceAt", "s,p")], [numpy_helper.from_array(np.array(0), "p")], [info("x", (1 << 30, 1))])


@case
def sequence_split_by_zero():
    return model([node("SplitToSequence", "x,k", "s"), node("SequenceAt", "s,k")], [numpy_helper.from_array(np.array(0), "k")])


@case
def sequence_split_beyond_the_axis():
    weights = [numpy_helper.from_array(np.array([4, 4, 1 << 62]), "k"), numpy_helper.from_array(np.array(0), "p")]
    return model([node("SplitToSequence", "x,k", "s", axis=3), node("SequenceAt", "s,p", name="at")], weights)


@case
def sequence_at_of_a_tensor():
    return model([node("SequenceAt", "x,p")], [numpy_helper.from_array(np.array(0), "p")])


@case
def sequence_as_output():
    return model([node("SequenceConstruct", "x,x")])


@case
def list_of_a_million_strides():
    return deconv(strides=[1] * 1_000_000)
