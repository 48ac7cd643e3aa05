"""The type stub and docs/python.md say what the module has."""

from __future__ import annotations

import ast
import inspect
import pathlib

import polyphase
import python_page
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
