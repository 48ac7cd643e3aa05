"""Writes docs/opsets.md out of the table of steps:

    PYTHONPATH=build/release/python .venv/bin/python tests/python/exports/opsets_page.py > docs/opsets.md
"""
from __future__ import annotations

import polyphase

HEAD = """# What another opset changes

`polyphase export MODEL --for onnx --opset N` writes a model in opset N, older or newer, from 7 to 28 (another target's rules follow, if one is
named). Every node that means the same in both stays byte for byte. This page is written by `tests/python/exports/opsets_page.py` out of the table that the
program uses (`src/export/opset_*_steps.cpp`); each of its rows has a model in `tests/python/exports/opset_cases.py` that takes it.

The versions of all operators come from ONNX's schemas (`src/export/opset_history.cpp`, generated; a test holds it to the `onnx` package). From one
version to the next a node
- stays, where only element types were added or taken away; one of those that the other version does not take is refused;
- loses, on the way back, attributes that its version added, where they have their defaults; operands, results and other values are refused;
- goes by a rule of the table below;
- is refused, with its name, the operator, the reason and the opset that it needs, where nothing says the same.

A constant that must become an attribute may be an initializer or come from a `Constant`; a computed one is refused. Models with functions of their own are
inlined first (`onnx.inliner.inline_local_functions`).

Where several nodes stand for one (the column *rounds*), each of them rounds: then every rewritten node is compared within that share of the largest element (a
thousand times as much in 16-bit floats), everything else bit for bit on whole numbers, as in all exports.

"""


def page() -> str:
    rows = ["| operator | from opset on | up | down | rounds |\n|---|---|---|---|---|\n"]
    for step in sorted(polyphase.opset_steps(), key=lambda step: (step["operation"], step["version"])):
        up, down = ["rule" if step[way] else "" for way in ("up", "down")]
        rounds = f"{step['tolerance']:g}" if step["tolerance"] else ""
        rows.append(f"| {step['operation']} | {step['version']}: {step['doc']} | {up} | {down} | {rounds} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(page(), end="")
