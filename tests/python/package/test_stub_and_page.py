"""The type stub and docs/python.md say what the module has."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import pathlib
import re

import numpy as np
import polyphase
import python_page
import small_models
from onnx import TensorProto, helper
from polyphase import _native


def stub() -> ast.Module:
    return ast.parse(pathlib.Path(_native.__file__).with_name("_native.pyi").read_text())


def test_the_stub_names_all_that_the_extension_has():
    written = {node.name: node for node in stub().body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    for name, public in vars(_native).items():
        if inspect.isclass(public):
            there = {node.name for node in written[name].body if isinstance(node, ast.FunctionDef)}
            assert {key for key, value in vars(public).items() if callable(value) and not key.startswith("__")} <= there
        elif callable(public):
            assert name in written


def test_the_stub_types_every_argument():
    for node in ast.walk(stub()):
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None, node.name
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                assert argument.annotation is not None or argument.arg == "self", f"{node.name}: {argument.arg}"


def test_the_package_is_typed():
    folder = pathlib.Path(polyphase.__file__).parent
    assert (folder / "py.typed").exists()
    for name in polyphase.__all__:
        public = getattr(polyphase, name)
        if inspect.isfunction(public):
            signature = inspect.signature(public)
            assert signature.return_annotation is not inspect.Signature.empty
            assert all(parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values())


def test_the_page_has_the_docstrings():
    assert python_page.PAGE.read_text() == python_page.page(polyphase), "python_page.py > docs/python.md"


def test_the_guide_does_what_it_says(tmp_path, monkeypatch):
    """Its programs run, and what they show behind a # comes out."""
    weights = np.ones((3, 3, 2, 2), np.float32)
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])]
    for name in ("upscale.onnx", "net.onnx"):
        small_models.save(tmp_path / name, nodes, [("x", TensorProto.FLOAT, ["N", 3, "H", "W"])], [("y", TensorProto.FLOAT, None)], [("w", weights)])
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", python_page.PAGE.read_text(), re.DOTALL)
    names, shown = {}, 0
    for block in blocks[:2]:
        exec(block, names)
        for line in block.splitlines():
            expression, mark, value = line.partition(" # ")
            if mark and value.strip().startswith(("(", "{")):
                assert eval(expression, names) == eval(value)
                shown += 1
    assert shown == 2 and (tmp_path / "upscale.ppe").exists()
    names["x"] = np.zeros((1, 4, 64, 64), np.float32)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(blocks[2], names)
    assert said.getvalue().startswith("shape_mismatch")
