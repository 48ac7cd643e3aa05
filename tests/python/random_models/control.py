"""Sizes born from data, branches and loops."""
from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from onnx import helper

from .maker import BOOL, FLOAT, INT64, Maker, Refused, Shape, Tensor, count, pair, rule
from .elementwise import binary, truths, unary, unary_with_numbers
from .layers import convolution
from .movement import pad, transpose
from .products import reduce


@rule
def born_sizes(m: Maker) -> None:
    x = m.data(exact=True)
    kind = m.between(0, 2)
    if kind == 0:
        if not x.rank:
            raise Refused
        name = m.raw("Cast", [m.raw("NonZero", [x.name])[0]], to=FLOAT)[0]
    elif kind == 1:
        flags = m.raw("Greater", [m.raw("Reshape", [x.name, m.integers(-1)])[0], m.constant(np.float32(0))])[0]
        name = m.raw("Compress", [x.name, flags])[0]
    else:
        name = m.raw("Unique", [x.name], sorted=1)[0]
    total = m.raw("ReduceSum", [name], keepdims=0)[0]
    m.keep(total, (), x, x.bound * count(x.shape) * 16, True)




def body(m: Maker, given: list[Tensor], nodes: int, wish: Shape | None, domain_rules=None) -> tuple[list[onnx.NodeProto], Tensor]:
    """Nodes over `given` that end in a float tensor, of the shape `wish` where there is one."""
    inner = Maker(m.random.getrandbits(32), m.operators, m.opset, SIMPLE)
    m.names += 1
    inner.prefix = f"{m.prefix}b{m.names}_"
    inner.tensors = list(given)
    for _ in range(20):
        if len(inner.nodes) >= nodes:
            break
        inner.grow()
    fitting = [t for t in inner.tensors if t.dtype == FLOAT and (wish is None or t.shape == wish) and t not in given]
    if not fitting:
        raise Refused
    m.initializers += inner.initializers
    m.used |= inner.used
    return inner.nodes, fitting[-1]


@rule(weight=2)
def branch(m: Maker) -> None:
    x = m.data()
    if m.chance(3):
        flag = m.constant(np.bool_(m.between(0, 1)))
    elif any(t.name == "flag" for t in m.inputs):
        flag = "flag"
    else:
        y = m.data(exact=True)
        flag = m.raw("Greater", [m.raw("ReduceSum", [y.name], keepdims=0)[0], m.constant(np.float32(0))])[0]
        if y.bound * count(y.shape) > 2**23:
            raise Refused
    graphs, ends = [], []
    for name in ("then", "else"):
        nodes, end = body(m, [x], m.between(1, 3), x.shape)
        graphs.append(helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=end.name)]))
        ends.append(end)
    made = m.raw("If", [flag], then_branch=graphs[0], else_branch=graphs[1])[0]
    m.keep(made, x.shape, x, max(e.bound for e in ends), all(e.exact for e in ends))


@rule(weight=2)
def loop(m: Maker) -> None:
    """Carries a tensor, brought back below 4 after each trip, and stacks what it was."""
    x = m.data()
    trips = m.between(0, 3) if m.chance(4) else m.between(1, 3)
    m.names += 1
    carried = Tensor(f"c{m.names}", x.shape, bound=4.0, exact=x.exact)
    nodes, end = body(m, [carried, dataclasses.replace(x)], m.between(1, 3), x.shape)
    low, high = m.constant(np.float32(-4)), m.constant(np.float32(4))
    tag = f"l{m.names}_"
    nodes = [*nodes, helper.make_node("Clip", [end.name, low, high], [tag + "next"], name=tag + "clip"), helper.make_node("Identity", [carried.name], [tag + "row"], name=tag + "row"),
             helper.make_node("Identity", [tag + "c"], [tag + "again"], name=tag + "again")]
    scalar = lambda name, dtype: helper.make_tensor_value_info(name, dtype, [])
    graph = helper.make_graph(nodes, "body", [scalar(tag + "i", INT64), scalar(tag + "c", BOOL), onnx.ValueInfoProto(name=carried.name)],
                              [onnx.ValueInfoProto(name=n) for n in (tag + "again", tag + "next", tag + "row")])
    for value in graph.input[2:]:
        value.type.tensor_type.elem_type = FLOAT
    start = m.raw("Clip", [x.name, low, high])[0]
    made = m.raw("Loop", [m.constant(np.int64(trips)), m.one("", m.constant(np.bool_(True))), start], 2, body=graph)
    exact = x.exact and end.exact
    m.keep(made[0], x.shape, x, 4, exact)
    if trips:
        m.keep(made[1], (pair(trips), *x.shape), x, 4, exact)


@rule
def scan(m: Maker) -> None:
    x = m.data()
    if x.rank < 2:
        raise Refused
    m.names += 1
    tag = f"s{m.names}_"
    rows = tuple(x.shape[1:])
    state, row = Tensor(tag + "state", rows, bound=4.0, exact=x.exact), Tensor(tag + "row", rows, bound=x.bound, exact=x.exact)
    low, high = m.constant(np.float32(-4)), m.constant(np.float32(4))
    nodes = [helper.make_node("Add", [state.name, row.name], [tag + "sum"], name=tag + "add"), helper.make_node("Clip", [tag + "sum", low, high], [tag + "next"], name=tag + "clip"),
             helper.make_node("Neg", [tag + "next"], [tag + "out"], name=tag + "neg")]
    infos = [onnx.ValueInfoProto(name=t.name) for t in (state, row)]
    for value in infos:
        value.type.tensor_type.elem_type = FLOAT
    graph = helper.make_graph(nodes, "body", infos, [onnx.ValueInfoProto(name=n) for n in (tag + "next", tag + "out")])
    first = m.raw("Clip", [m.raw("Gather", [x.name, m.constant(np.int64(0))], axis=0)[0], low, high])[0]
    made = m.raw("Scan", [first, x.name], 2, body=graph, num_scan_inputs=1, scan_input_directions=[m.between(0, 1)])
    m.keep(made[0], rows, x, 4)
    m.keep(made[1], x.shape, x, 4)


SIMPLE = [unary, unary_with_numbers, binary, binary, convolution, truths, transpose, pad, reduce]
