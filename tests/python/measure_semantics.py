"""Prints what ONNX Runtime and PyTorch do in the cases of docs/semantics.md, one line per case: the table's measured columns.

Run it with the project's Python environment: python tests/python/measure_semantics.py
"""

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import helper
from onnx.reference import ReferenceEvaluator


def ort(op, x_shape, w_shape=None, bias=None, opset=22, **attributes):
    """Shape and elements of the result over x = 1, 2, 3, ..., w = 1; or the refusal's first words."""
    operands = {"x": np.arange(1, 1 + int(np.prod(x_shape)), dtype=np.float32).reshape(x_shape)}
    if w_shape:
        operands["w"] = np.ones(w_shape, np.float32)
    if bias is not None:
        operands["b"] = np.full(w_shape[1] * attributes.get("group", 1), bias, np.float32)
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape) for name, value in operands.items()]
    node = helper.make_node(op, list(operands), ["y"], **attributes)
    graph = helper.make_graph([node], op, infos, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 9
    try:
        y = onnxruntime.InferenceSession(model.SerializeToString()).run(None, operands)[0]
    except Exception as refusal:
        text = str(refusal)
        return "refused: " + text[max(text.find("Status Message: "), text.find("[ShapeInferenceError] "), 0):].split(": ", 1)[-1][:110].strip()
    try:
        reference = ReferenceEvaluator(model).run(None, operands)[0]
        note = "" if reference.shape == y.shape and np.allclose(reference, y) else f"; ReferenceEvaluator {show(reference)}"
    except Exception:
        note = "; ReferenceEvaluator fails"
    return show(y) + note


def show(y):
    return f"{list(y.shape[2:])} {' '.join(f'{v:g}' for v in y.ravel()[:12])}"


def pytorch(function, x_shape, w_shape=None, **settings):
    x = torch.arange(1, 1 + int(np.prod(x_shape)), dtype=torch.float32).reshape(x_shape)
    operands = [x] + ([torch.ones(w_shape)] if w_shape else [])
    try:
        return show(function(*operands, **settings).numpy())
    except Exception as refusal:
        return "refused: " + str(refusal).split("\n")[0][:110]


def transposed(kernel=3, size=3, bias=None, **attributes):
    return ort("ConvTranspose", (1, 1, size), (1, 1, kernel), bias, **attributes)


def torch_transposed(kernel=3, size=3, batch=1, **settings):
    return pytorch(F.conv_transpose1d, (batch, 1, size), (1, 1, kernel), **settings)


def cases():
    two = dict(strides=[2])
    yield "A SAME_UPPER", transposed(**two, auto_pad="SAME_UPPER"), "-"
    yield "A SAME_LOWER", transposed(**two, auto_pad="SAME_LOWER"), "-"
    yield "B SAME_UPPER with output_padding", transposed(**two, auto_pad="SAME_UPPER", output_padding=[1]), "-"
    yield "C SAME_UPPER, kernel 1 < stride 3", transposed(1, bias=100, strides=[3], auto_pad="SAME_UPPER"), "-"
    yield "D output_shape 4 of 7, NOTSET", transposed(**two, output_shape=[4]), "-"
    yield "D output_shape 4 of 7, opset 7", transposed(**two, output_shape=[4], opset=7), "-"
    yield "D output_shape 4 of 7, SAME_UPPER", transposed(**two, output_shape=[4], auto_pad="SAME_UPPER"), "-"
    yield "D output_shape 4 of 7, SAME_LOWER", transposed(**two, output_shape=[4], auto_pad="SAME_LOWER"), "-"
    yield "E output_shape 8 of 7", transposed(bias=100, **two, output_shape=[8]), "-"
    yield "E output_shape 10 of 7", transposed(bias=100, **two, output_shape=[10]), "-"
    yield "F output_shape 2 below input 3", transposed(**two, output_shape=[2]), "-"
    yield "G output_shape with batch and channels", transposed(**two, output_shape=[1, 1, 6]), "-"
    yield "H output_shape 4 of 7, VALID", transposed(**two, output_shape=[4], auto_pad="VALID"), "-"
    yield "VALID with output_padding", transposed(**two, auto_pad="VALID", output_padding=[1]), "-"
    yield "output_padding = stride", transposed(**two, output_padding=[2]), torch_transposed(stride=2, output_padding=2)
    yield ("stride <= output_padding < dilation", transposed(dilations=[3], output_padding=[2]),
           torch_transposed(dilation=3, output_padding=2))
    yield "output_padding too large, batch 0", "-", torch_transposed(stride=2, output_padding=2, batch=0)
    yield "padding beyond the kernel", transposed(1, 5, pads=[2, 2]), torch_transposed(1, 5, padding=2)
    yield "negative padding", transposed(pads=[-1, 0]), torch_transposed(padding=-1)
    yield "pads beside auto_pad", transposed(**two, pads=[1, 1], auto_pad="SAME_UPPER"), "-"
    yield "pads beside output_shape", transposed(**two, pads=[1, 1], output_shape=[7]), "-"
    yield "output size 0", transposed(1, 2, pads=[1, 1]), torch_transposed(1, 2, padding=1)
    yield "spatial size 0", transposed(size=0, bias=100, **two), torch_transposed(size=0, stride=2)
    yield "batch 0", ort("ConvTranspose", (0, 1, 3), (1, 1, 3), **two), torch_transposed(batch=0, stride=2)
    yield ("channels 0", ort("ConvTranspose", (1, 0, 3), (0, 1, 3), 100, **two),
           pytorch(F.conv_transpose1d, (1, 0, 3), (0, 1, 3), stride=2))
    yield "groups 2, 2 channels each", ort("ConvTranspose", (1, 4, 2), (4, 2, 1), group=2), pytorch(
        F.conv_transpose1d, (1, 4, 2), (4, 2, 1), groups=2)
    pool = dict(kernel_shape=[3], strides=[2])
    yield "Conv SAME_UPPER with dilation", ort("Conv", (1, 1, 6), (1, 1, 3), strides=[2], dilations=[2], auto_pad="SAME_UPPER"), "-"
    yield "MaxPool SAME_UPPER with dilation", ort("MaxPool", (1, 1, 6), kernel_shape=[2], dilations=[2], auto_pad="SAME_UPPER"), "-"
    yield "MaxPool VALID with ceil_mode", ort("MaxPool", (1, 1, 6), **pool, auto_pad="VALID", ceil_mode=1), "-"
    yield "MaxPool ceil_mode, last window in the padding", ort("MaxPool", (1, 1, 7), kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1), pytorch(
        F.max_pool1d, (1, 1, 7), kernel_size=2, stride=3, padding=1, ceil_mode=True)
    yield "MaxPool kernel beyond the input", ort("MaxPool", (1, 1, 1), kernel_shape=[3], strides=[3]), pytorch(
        F.max_pool1d, (1, 1, 1), kernel_size=3, stride=3)
    yield ("AveragePool ceil_mode, count_include_pad", ort("AveragePool", (1, 1, 6), **pool, pads=[1, 1], ceil_mode=1, count_include_pad=1),
           pytorch(F.avg_pool1d, (1, 1, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True))


def main():
    onnxruntime.set_default_logger_severity(4)
    print(f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}, onnx {onnx.__version__}")
    for name, runtime, torch_result in cases():
        print(f"| {name} | {torch_result} | {runtime} |")


if __name__ == "__main__":
    main()
