"""Every refusal that the Python package words itself: the exceptions that python/polyphase makes, read out of its sources."""
from __future__ import annotations

import ast
import pathlib
import re

from cpp_reader import Hole, NotUnderstood
from cpp_texts import Text, joined
from error_sites import Refusal

CODES = {"ArgumentError": "invalid_argument", "ModelError": "invalid_model", "UnsupportedError": "unsupported", "FileError": "io"}


def text_of(node: ast.expr, where: str) -> Text:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    if isinstance(node, ast.JoinedStr):
        return joined(tuple(part.value if isinstance(part, ast.Constant) else Hole(spelled(part.value)) for part in node.values))
    raise NotUnderstood(f"{where}: a message that is no text")


def spelled(value: ast.expr) -> str:
    """`type(path).__name__` → type of path, `len(size)` → number of size."""
    source = ast.unparse(value)
    source = re.sub(r"^type\((\w+)\)\.__name__$", r"type of \1", source)
    return re.sub(r"^len\((\w+)\)$", r"number of \1", source).replace("_", " ")


def python_refusals(folder: pathlib.Path, root: pathlib.Path) -> list[Refusal]:
    out = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CODES:
                file = path.relative_to(root).as_posix()
                where = f"{file}:{node.lineno}"
                hint = next((keyword.value for keyword in node.keywords if keyword.arg == "hint"), None)
                if hint is None:
                    raise NotUnderstood(f"{where}: a refusal without a hint")
                out.append(Refusal((CODES[node.func.id],), text_of(node.args[0], where), text_of(hint, where), file, node.lineno))
    return out
