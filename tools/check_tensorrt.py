"""Asks TensorRT, where it is installed, whether our rules for it are right: each model as it is, and after `polyphase.export`.

    python tools/check_tensorrt.py model.onnx…      whether TensorRT parses and builds them
    python tools/check_tensorrt.py --rules          a small model for every rule: is the rule needed, does it suffice?

A rule is confirmed if TensorRT refuses its model without it and builds it with it; "not needed here" is worth a report as well: name the
version, which the first line shows. The exit code is 0 if everything is built after the export.
"""
from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

import polyphase

ROOT = pathlib.Path(__file__).resolve().parents[1]


def said(path: pathlib.Path, size: int) -> str:
    """'' if TensorRT parses the model and builds an engine, else what it says. Files of weights lie beside the model; open sizes are `size`."""
    import tensorrt

    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    builder = tensorrt.Builder(logger)
    network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(path)):
        return "; ".join(parser.get_error(i).desc() for i in range(parser.num_errors))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        value = network.get_input(i)
        sizes = [size if dim < 0 else dim for dim in value.shape]
        if sizes != list(value.shape):
            profile.set_shape(value.name, sizes, sizes, sizes)
    config.add_optimization_profile(profile)
    return "" if builder.build_serialized_network(network, config) else "the builder gives no engine"


def said_after_export(path: pathlib.Path, size: int, without_rules=()) -> str:
    with tempfile.TemporaryDirectory() as folder:
        after = pathlib.Path(folder, "after.onnx")
        try:
            polyphase.export(path, after, target="tensorrt", without_rules=without_rules)
        except polyphase.UnsupportedError as refusal:
            return f"Polyphase does not export it: {refusal}"
        return said(after, size)


def check_models(paths: list[str], size: int) -> bool:
    fine = True
    for path in map(pathlib.Path, paths):
        after = said_after_export(path, size)  # first: it says what is no model
        before = said(path, size)
        fine = fine and not after
        print(f"{path}: as it is: {before or 'built'}; after the export: {after or 'built'}")
    return fine


def check_rules(size: int) -> bool:
    sys.path[:0] = [str(ROOT / "tests/python/exports"), str(ROOT / "tests/python")]
    from rule_cases import CASES

    rules = [rule["name"] for target in polyphase.export_targets() if target["name"] == "tensorrt" for rule in target["rules"] if rule["rewrites"]]
    fine = True
    for rule in rules:
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, "before.onnx")
            model.write_bytes(CASES["tensorrt", rule]().model.SerializeToString())
            without, after = said_after_export(model, size, [rule]), said_after_export(model, size)
        fine = fine and not after
        word = "NOT SUFFICIENT" if after else "confirmed" if without else "not needed here"
        print(f"{rule}: {word}\n  without it: {without or 'built'}\n  with it:    {after or 'built'}")
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--size", type=int, default=16, help="what open sizes of inputs are when TensorRT builds")
    options = parser.parse_args()
    if not options.models and not options.rules:
        parser.error("nothing to ask about: give models, or --rules")
    try:
        import tensorrt
    except ImportError:
        print("TensorRT's Python package is not installed: pip install tensorrt", file=sys.stderr)
        return 2
    print(f"TensorRT {tensorrt.__version__}, Polyphase {polyphase.__version__}")
    try:
        fine = check_models(options.models, options.size)
        return 0 if (check_rules(options.size) if options.rules else True) and fine else 1
    except polyphase.Error as error:  # no file, or none of ONNX's
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
