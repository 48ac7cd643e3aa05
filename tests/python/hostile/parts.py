"""What hostile models are made of: CASES by name, and makers of small models."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {}
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def case(function):
    CASES[function.__name__] = function
    return function


def info(name, shape=(1, 2, 5, 5), dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape, value=1.0, dtype=np.float32):
    return numpy_helper.from_array(np.full(shape, value, dtype), name)


def model(nodes, initializers=(), inputs=None, outputs=None, opset=17, ir_version=8, functions=(), domains=()):
    graph = helper.make_graph(list(nodes), "g", inputs if inputs is not None else [info("x")],
                              outputs if outputs is not None else [info("y", None)], list(initializers))
    imports = [helper.make_opsetid("", opset)] if opset is not None else []
    imports += [helper.make_opsetid(name, 1) for name in domains]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    if opset is None:
        del made.opset_import[:]
    made.ir_version = ir_version
    return made


def node(op, inputs="x", outputs="y", name="n", domain="", **attributes):
    made = helper.make_node(op, inputs.split(","), outputs.split(","), name=name, domain=domain, **{key: value for key, value in attributes.items() if value != []})
    made.attribute.extend(onnx.AttributeProto(name=key, type=onnx.AttributeProto.INTS) for key, value in attributes.items() if value == [])
    return made


def deconv(w=(2, 3, 3, 3), x=(1, 2, 5, 5), bias=None, **attributes):
    initializers = [weight("w", *w)] + ([weight("b", *bias)] if bias is not None else [])
    return model([node("ConvTranspose", "x,w" + (",b" if bias is not None else ""), name="up", **attributes)], initializers, [info("x", x)])


def branch(op, depth=0):
    nodes = [node(op, "x", f"b{depth}")]
    return helper.make_graph(nodes, "branch", [], [info(f"b{depth}", None)])


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def raw(size, shape=(2,), dtype=FLOAT, **fields):
    tensor = TensorProto(name="w", data_type=dtype, dims=list(shape), raw_data=b"\0" * size)
    return model([node("Add", "x,w")], [tensor], [info("x", (2,))])
