"""docs/guides/network.md does what it says: its programs run, what stands behind a # comes out, its C++ compiles, its table is the rules'."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import pathlib
import re
import subprocess

import polyphase
import pytest
import torch
from polyphase import _native
from safetensors_file import safetensors

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs/guides/network.md"
TEXT = GUIDE.read_text()
BUILD = pathlib.Path(os.environ.get("POLYPHASE_BUILD", ROOT / "build/release")).resolve()


def table() -> str:
    """The rows of the table of limits; `python test_network_guide.py` writes them."""
    return "".join(f"| `{limit['name']}` | {limit['rule']} | {limit['rewrite']} |\n" for limit in _native.limits() if limit["target"] == "tensorrt")


def test_the_programs_run():
    names: dict[str, object] = {"polyphase": polyphase}
    shown = 0
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block, str(GUIDE), "exec"), names)
        printed = said.getvalue().splitlines()
        for line in block.splitlines():
            expression, mark, value = line.partition("  # ")
            value = value.strip()
            if line.strip().startswith("print(") and mark and value.startswith(("(1", "(Size", "operand")):
                assert printed.pop(0) == value
                shown += 1
            elif mark and value.startswith(("(", "[")) and not line.strip().startswith("print("):
                assert eval(expression, names) == ast.literal_eval(value), line
                shown += 1
    assert shown == 17


BLOCKS = re.findall(r"```cpp\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_cpp_compiles(tmp_path, number):
    (tmp_path / "block.cpp").write_text(BLOCKS[number])
    command = ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", str(tmp_path / "block.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_cpp_program_prints_what_it_says(tmp_path):
    """The block with a main, against the library of the build; with a checkpoint that safetensors would write."""
    program, = [block for block in BLOCKS if "int main" in block]
    (tmp_path / "program.cpp").write_text(program)
    library = BUILD / "lib"
    subprocess.run(["c++", "-std=c++20", f"-I{ROOT / 'include'}", str(tmp_path / "program.cpp"), f"-L{library}", "-lpolyphase", f"-Wl,-rpath,{library}", "-o", str(tmp_path / "program")],
                   check=True, capture_output=True)
    sizes = {"up.weight": (1, 1, 3), "up.bias": (1,), "head.1.weight": (1, 1, 1), "head.1.bias": (1,)}
    checkpoint = safetensors(tmp_path / "up.safetensors", {name: torch.ones(shape) for name, shape in sizes.items()})
    for arguments in ([], [str(checkpoint)]):
        done = subprocess.run([tmp_path / "program", *arguments], capture_output=True, text=True, check=True)
        assert [line.strip() for line in done.stdout.splitlines()] == re.findall(r"// prints: (.*)", program)


def test_the_table_is_the_rules():
    assert "|---|---|---|\n<!-- limits -->\n" + table() in TEXT, "python tests/python/package/test_network_guide.py"


if __name__ == "__main__":
    before, mark, after = TEXT.partition("<!-- limits -->\n")
    GUIDE.write_text(before + mark + table() + after[after.index("\nThe rules are data"):])
