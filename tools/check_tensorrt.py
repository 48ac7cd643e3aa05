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


def said(model: bytes) -> str:
    """'' if TensorRT parses the model and builds an engine, else what it says."""
    import tensorrt

    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    builder = tensorrt.Builder(logger)
    network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse(model):
        return "; ".join(parser.get_error(i).desc() for i in range(parser.num_errors))
    return "" if builder.build_serialized_network(network, builder.create_builder_config()) else "the builder gives no engine"


def after_export(model: bytes, without_rules=()) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        before, after = pathlib.Path(folder, "before.onnx"), pathlib.Path(folder, "after.onnx")
        before.write_bytes(model)
        polyphase.export(before, after, target="tensorrt", without_rules=without_rules)
        return after.read_bytes()


def check_models(paths: list[str]) -> bool:
    fine = True
    for path in paths:
        model = pathlib.Path(path).read_bytes()
        before = said(model)
        after = said(after_export(model))
        fine = fine and not after
        print(f"{path}: as it is: {before or 'built'}; after the export: {after or 'built'}")
    return fine


def check_rules() -> bool:
    sys.path[:0] = [str(ROOT / "tests/python/exports"), str(ROOT / "tests/python")]
    from rule_cases import CASES

    rules = [rule["name"] for target in polyphase.export_targets() if target["name"] == "tensorrt" for rule in target["rules"] if rule["rewrites"]]
    fine = True
    for rule in rules:
        model = CASES["tensorrt", rule]().model.SerializeToString()
        without, after = said(after_export(model, [rule])), said(after_export(model))
        fine = fine and not after
        word = "NOT SUFFICIENT" if after else "confirmed" if without else "not needed here"
        print(f"{rule}: {word}\n  without it: {without or 'built'}\n  with it:    {after or 'built'}")
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rules", action="store_true")
    options = parser.parse_args()
    try:
        import tensorrt
    except ImportError:
        print("TensorRT's Python package is not installed: pip install tensorrt", file=sys.stderr)
        return 2
    print(f"TensorRT {tensorrt.__version__}, Polyphase {polyphase.__version__}")
    fine = check_models(options.models)
    return 0 if (check_rules() if options.rules else True) and fine else 1


if __name__ == "__main__":
    sys.exit(main())
