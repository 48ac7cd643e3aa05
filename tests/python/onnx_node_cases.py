"""Writes ONNX's own node tests as files for tests/import/node_cases_test.cpp.

    onnx_node_cases.py FOLDER

Each case is written twice: FOLDER/inputs/NAME with every operand a graph input, and FOLDER/initializers/NAME with all but the first
operand inside the model. A case is model.onnx, input_K.pb and output_K.pb (TensorProto); cases of other kinds of values are left out.
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
        if not all(is_tensor(value) for value in [*inputs, *outputs]):
            continue
        graph = model.graph
        if len(inputs) != len(graph.input) or len(outputs) != len(graph.output):
            continue
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
