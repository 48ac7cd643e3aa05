"""Writes tests/import/onnx_operators.txt: ONNX's operators with the versions that models of opset 7 and later can mean."""
import collections
import pathlib

import onnx


def main() -> None:
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].append(schema.since_version)
    lines = ["# ONNX's operators: name, then the versions that models of opset 7 and later can mean.", f"opset {onnx.defs.onnx_opset_version()}"]
    for name, all_versions in sorted(versions.items()):
        early = sorted(v for v in all_versions if v <= 7)
        late = sorted(v for v in all_versions if v > 7)
        lines.append(" ".join([name, *map(str, early[-1:] + late)]))
    path = pathlib.Path(__file__).resolve().parent.parent / "import" / "onnx_operators.txt"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
