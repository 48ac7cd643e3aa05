"""Writes docs/export_rules.md out of the tables of rules:

    PYTHONPATH=build/release/python .venv/bin/python tests/python/exports/rules_page.py > docs/export_rules.md
"""
from __future__ import annotations

import polyphase

HEAD = """# What exports rewrite

`polyphase export MODEL --for TARGET` rewrites the nodes that a target refuses or gets wrong, and leaves every other byte of the file
as it is. This page is written by `tests/python/exports/rules_page.py` out of the tables that the program uses (`src/export/target_*.cpp`). Every
rule has a test that fails without it (`--without-rule`) and passes with it, and random geometries run before and after it in the target itself.
`docs/guides/export.md` shows how to work with it.
"""


def page() -> str:
    out = [HEAD]
    for target in polyphase.export_targets():
        out.append(f"\n## {target['title']}: `--for {target['name']}`\nTested with: {target['checked']}.\n")
        for rule in target["rules"]:
            out.append(f"\n### {rule['name']}\n{rule['doc']}\n\n- operator: `{rule['operation']}`\n- versions: {rule['versions']}\n- source: {rule['source']}\n")
    return "".join(out)


if __name__ == "__main__":
    print(page(), end="")
