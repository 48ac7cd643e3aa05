"""Writes ONNX's own node tests as files for tests/import/node_cases_test.cpp.

    onnx_node_cases.py FOLDER

Each case is written twice: FOLDER/inputs/NAME with every operand a graph input, and FOLDER/initializers/NAME with all but the first
operand inside the model. A case is model.onnx, input_K.pb and output_K.pb (TensorProto). Sequences and optionals come in and go out one
tensor at a time, put together and taken apart by nodes of the model; cases of other kinds of values are left out.
"""
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper


def is_tensor(value) -> bool:
    return isinstance(value, onnx.TensorProto) or (isinstance(value, (np.ndarray, np.generic)) and value.dtype != object
                                                    and value.dtype.kind not in "USc")


def as_proto(value, info: onnx.ValueInfoProto) -> onnx.TensorProto:
    if isinstance(value, onnx.TensorProto):
        return value
    array = np.asarray(value)
    wanted = info.type.tensor_type.elem_type
    proto = numpy_helper.from_array(array, info.name)
    if wanted and proto.data_type != wanted:  # numpy has no name of its own for some of ONNX's types
        proto.data_type = wanted
    return proto


def info_of(name: str, value) -> onnx.ValueInfoProto:
    array = np.asarray(value)
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def element_type(info: onnx.ValueInfoProto) -> int:
    kind = info.type
    while kind.WhichOneof("value") in ("optional_type", "sequence_type"):
        kind = getattr(kind, kind.WhichOneof("value")).elem_type
    return kind.tensor_type.elem_type


def without_lists(model: onnx.ModelProto, inputs: list, outputs: list) -> tuple[onnx.ModelProto, list, list]:
    """The same model over tensors alone."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    before, behind, given, wanted, values, results = [], [], [], [], [], []
    for info, value in zip(graph.input, inputs):
        optional = info.type.HasField("optional_type")
        entries = value if isinstance(value, list) else [] if value is None else [value]
        if not optional and not isinstance(value, list):
            given.append(info)
            values.append(value)
            continue
        names = [f"{info.name}_entry_{k}" for k in range(len(entries))]
        given += [info_of(name, entry) for name, entry in zip(names, entries)]
        values += entries
        is_list = isinstance(value, list)
        target = info.name + "_held" if optional else info.name
        if is_list:
            before.append(onnx.helper.make_node("SequenceConstruct", names, [target]) if names else onnx.helper.make_node("SequenceEmpty", [], [target], dtype=element_type(info)))
        if optional:
            held = [] if value is None else [target if is_list else names[0]]
            kind = {} if held else {"type": info.type.optional_type.elem_type}
            before.append(onnx.helper.make_node("Optional", held, [info.name], **kind))
    for info, value in zip(graph.output, outputs):
        if not isinstance(value, list):
            wanted.append(info)
            results.append(value)
            continue
        for k, entry in enumerate(value):
            place = f"{info.name}_place_{k}"
            behind.append(onnx.helper.make_node("Constant", [], [place], value=onnx.helper.make_tensor(place, onnx.TensorProto.INT64, [], [k])))
            behind.append(onnx.helper.make_node("SequenceAt", [info.name, place], [f"{info.name}_entry_{k}"]))
            wanted.append(info_of(f"{info.name}_entry_{k}", entry))
            results.append(entry)
    nodes = [*before, *graph.node, *behind]
    for field, content in (("node", nodes), ("input", given), ("output", wanted)):
        content = [type(one).FromString(one.SerializeToString()) for one in content]
        del getattr(graph, field)[:]
        getattr(graph, field).extend(content)
    return out, values, results


def write(folder: pathlib.Path, model: onnx.ModelProto, inputs: list, outputs: list) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", inputs), ("output", outputs)):
        for number, value in enumerate(values):
            (folder / f"{kind}_{number}.pb").write_bytes(value.SerializeToString())


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    count = 0
    for case in collect_testcases(None):
        model = case.model
        if model is None or not case.data_sets:
            continue
        inputs, outputs = case.data_sets[0]
        if len(inputs) != len(model.graph.input) or len(outputs) != len(model.graph.output):
            continue
        if any(isinstance(value, list) or value is None for value in [*inputs, *outputs]) or any(info.type.HasField("optional_type") for info in model.graph.input):
            model, inputs, outputs = without_lists(model, inputs, outputs)
        if not outputs or not all(is_tensor(value) for value in [*inputs, *outputs]):
            continue
        graph = model.graph
        try:
            inputs = [as_proto(value, info) for value, info in zip(inputs, graph.input)]
            outputs = [as_proto(value, info) for value, info in zip(outputs, graph.output)]
        except (TypeError, ValueError, KeyError):
            continue
        write(root / "inputs" / case.name, model, inputs, outputs)
        fixed = onnx.ModelProto()
        fixed.CopyFrom(model)
        for value, info in list(zip(inputs, graph.input))[1:]:
            weight = fixed.graph.initializer.add()
            weight.CopyFrom(value)
            weight.name = info.name
        del fixed.graph.input[1:]
        write(root / "initializers" / case.name, fixed, inputs[:1], outputs)
        count += 1
    print(f"{count} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
