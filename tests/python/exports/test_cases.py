"""docs/cases and docs/guides/migrating.md: their programs run, their commands are ours."""
from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest
from conftest import ROOT
from engines import TVM_PYTHON, need

PAGES = sorted((ROOT / "docs/cases").glob("*.md"))
GUIDE = ROOT / "docs/guides/migrating.md"
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    return BLOCK.findall(text)


def commands(text: str) -> list[str]:
    in_blocks = [line for kind, body in blocks(text) if not kind for line in body.splitlines() if line.startswith("polyphase ")]
    return in_blocks + re.findall(r"`(polyphase [a-z][^`]*)`", BLOCK.sub("", text))


def test_there_are_six_pages_and_each_is_linked():
    assert len(PAGES) == 6
    index = (ROOT / "README.md").read_text() + (ROOT / "docs/guides/export.md").read_text()
    assert [page.name for page in PAGES if f"cases/{page.name}" not in index] == [] and "migrating.md" in index


@pytest.mark.parametrize("page", [*PAGES, GUIDE], ids=lambda page: page.stem)
def test_the_programs_run(page, full, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    ran = 0
    for kind, body in blocks(page.read_text()):
        if kind == "python tvm":
            need("tvm", full)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            done = subprocess.run([str(TVM_PYTHON), "-c", body], capture_output=True, text=True, env=environment, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
        elif kind == "python":
            exec(body, scope)  # noqa: S102: our own words
        else:
            assert not kind, f"{page.name}: a block of kind '{kind}' that nothing runs"
            continue
        ran += 1
    assert ran >= 1


@pytest.mark.parametrize("page", [*PAGES, GUIDE], ids=lambda page: page.stem)
def test_the_commands_are_ours(page, polyphase):
    found = commands(page.read_text())
    assert found or page.stem in ("transposed_torch_tensorrt", "output_size_tensorrt_llm", "output_padding_onnxruntime")
    for line in found:
        words = shlex.split(line)[1:]
        help_text = polyphase(words[0], "--help").stdout
        for flag in (word.split("=")[0] for word in words if word.startswith("-")):
            assert re.search(rf"(^|[\s,]){re.escape(flag)}([\s,]|$)", help_text), f"{page.name}: {words[0]} has no {flag}"
