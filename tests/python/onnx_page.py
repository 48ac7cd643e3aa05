"""Writes docs/onnx.md: ONNX's operators, which of them the importer has, and the node tests that it does not pass, with reasons.

    onnx_page.py > docs/onnx.md        with POLYPHASE_BUILD naming a build; test_onnx_page.py holds the page to the code
"""
import collections
import os
import pathlib
import subprocess

import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("POLYPHASE_BUILD", ROOT / "build" / "release"))


def defined() -> dict[str, list[int]]:
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].append(schema.since_version)
    return dict(versions)


def outcomes() -> list[tuple[str, str, str]]:
    out = []
    for line in (ROOT / "tests" / "import" / "node_cases_expected.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            kind, pattern, reason = line.split(None, 2)
            out.append((kind, pattern, reason))
    return out


def page() -> str:
    have = set(subprocess.run([BUILD / "tests" / "models_at_random" / "model_trial", "--operators"], check=True, capture_output=True, text=True).stdout.split())
    all_versions = defined()
    ours = sorted(name for name in all_versions if name in have)
    lacking = sorted(name for name in all_versions if name not in have)
    others = sorted(name for name in have if name not in all_versions)
    lines = ["# ONNX operators", "", "Written by `tests/python/onnx_page.py`; a test holds it to the importer.", "",
             f"{len(ours)} of ONNX's {len(all_versions)} operators are there, in every version that a model of opset 7 to {onnx.defs.onnx_opset_version()} can mean,",
             f"and {len(others)} of other domains. Model-local functions are inlined. `polyphase check MODEL` says what a model needs.", "",
             "## There", "", ", ".join(ours) + ".", "", "Of other domains: " + ", ".join(others) + ".", "",
             "## Not there", "", ", ".join(lacking) + ".", "",
             "`polyphase check` says for each what to write instead.", "", "## Node tests that come out otherwise", "",
             "Every other node test of an operator above passes, with its weights as graph inputs and as initialisers, in the interpreter and on the",
             "kernels (`tests/import/node_cases_expected.txt`).", "", "| outcome | node tests | reason |", "|---|---|---|"]
    lines += [f"| {kind} | `{pattern}` | {reason} |" for kind, pattern, reason in outcomes()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
