"""A stand-in for TensorRT's Python package: its parser refuses what IDeconvolutionLayer and the ONNX parser in front of it cannot do or do
wrongly (NvInfer.h of TensorRT 11.1; onnx-tensorrt 10.1). It knows nothing of our rules and builds nothing that runs."""
from __future__ import annotations

import enum

import onnx

__version__ = "0.stand-in"
TYPES = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class Logger:
    ERROR = 1

    def __init__(self, severity=ERROR):
        self.severity = severity


class ParserError:
    def __init__(self, words: str):
        self.words = words

    def desc(self) -> str:
        return self.words


def deconvolution_problems(node: onnx.NodeProto, shapes: dict, constants: set[str]) -> list[str]:
    """What of IDeconvolutionLayer's limits the node breaks."""
    given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    elements, kernel = shapes[node.input[1]]
    sizes = shapes.get(node.input[0], (0, []))[1]  # empty: not known before sizes are
    axes = len(kernel) - 2
    stride, dilation = given.get("strides", [1] * axes), given.get("dilations", [1] * axes)
    problems = []
    if axes not in (2, 3):
        problems.append("addDeconvolutionNd takes 2 or 3 spatial dimensions")
    if len(sizes) > 1 and not isinstance(sizes[1], int):
        problems.append("the channel dimension may not be dynamic")
    if elements not in TYPES:
        problems.append("the type is none of float32, float16, bfloat16")
    if given.get("output_shape"):
        problems.append("output_shape")
    if any(given.get("output_padding", [])):
        problems.append("output padding is not supported")
    if given.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        problems.append("SAME has another size where the kernel is smaller than the stride")
    if min(given.get("pads", [0])) < 0:
        problems.append("negative padding is not supported")
    if max(stride) > 1 and max(dilation) > 1 and node.input[1] in constants:
        problems.append("dilation beside a stride")
    return problems


class OnnxParser:
    def __init__(self, network, logger):
        self.network, self.errors = network, []

    def parse_from_file(self, path: str) -> bool:
        return self._parse(onnx.load(path))

    def parse(self, model: bytes, path: str | None = None) -> bool:
        return self._parse(onnx.load_model_from_string(model))

    def _parse(self, parsed: onnx.ModelProto) -> bool:
        parsed = onnx.shape_inference.infer_shapes(parsed)
        graph = parsed.graph
        shapes = {tensor.name: (tensor.data_type, list(tensor.dims)) for tensor in graph.initializer}
        for value in [*graph.input, *graph.value_info, *graph.output]:
            tensor = value.type.tensor_type
            sizes = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
            shapes.setdefault(value.name, (tensor.elem_type, sizes))
        constants = {tensor.name for tensor in graph.initializer}
        if self.network is not None:
            self.network.inputs = [Input(value.name, [size if isinstance(size, int) else -1 for size in shapes[value.name][1]])
                                   for value in graph.input if value.name not in constants]
        for node in graph.node:
            if node.domain not in ("", "ai.onnx"):
                self.errors.append(ParserError(f"no importer for {node.domain}.{node.op_type}"))
            elif node.op_type == "ConvTranspose":
                self.errors += [ParserError(f"{node.name}: {problem}") for problem in deconvolution_problems(node, shapes, constants)]
        return not self.errors

    @property
    def num_errors(self) -> int:
        return len(self.errors)

    def get_error(self, index: int) -> ParserError:
        return self.errors[index]


class Input:
    def __init__(self, name: str, shape: list[int]):
        self.name, self.shape = name, shape


class Network:
    def __init__(self):
        self.inputs: list[Input] = []

    @property
    def num_inputs(self) -> int:
        return len(self.inputs)

    def get_input(self, index: int) -> Input:
        return self.inputs[index]


class Profile:
    def __init__(self):
        self.shapes: dict[str, tuple] = {}

    def set_shape(self, name: str, least, usual, most) -> None:
        self.shapes[name] = (least, usual, most)


class BuilderConfig:
    def __init__(self):
        self.profiles: list[Profile] = []

    def add_optimization_profile(self, profile: Profile) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1


class Builder:
    def __init__(self, logger):
        self.logger = logger

    def create_network(self, flags: int = 0) -> Network:
        return Network()

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def create_builder_config(self) -> BuilderConfig:
        return BuilderConfig()

    def build_serialized_network(self, network, config) -> bytes | None:
        """Nothing, where an input has open sizes of which no profile says anything."""
        for value in network.inputs:
            given = [profile.shapes[value.name] for profile in config.profiles if value.name in profile.shapes]
            if -1 in value.shape and not any(min(sizes) > 0 for shapes in given for sizes in shapes):
                return None
        return b"an engine that does not run"
