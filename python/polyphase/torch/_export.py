"""Modules of PyTorch as the bytes of programs that Polyphase's reader takes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import pathlib
import re
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import torch
from torch.export import ExportedProgram

from .._errors import ArgumentError, Error, ModelError, UnsupportedError
from . import _converters

_PACKAGES = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parents[1]))


def is_model(given: Any) -> bool:
    return isinstance(given, (torch.nn.Module, ExportedProgram, torch.jit.ScriptFunction))


def is_script(path: Any) -> bool:
    """Whether the file is a TorchScript archive."""
    try:
        with zipfile.ZipFile(path) as file:
            return any(name.endswith("/constants.pkl") for name in file.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def load_script(path: Any) -> torch.jit.ScriptModule:
    try:
        return torch.jit.load(os.fspath(path), map_location="cpu")  # type: ignore[no-any-return, no-untyped-call]
    except Exception as error:
        reason = _first_words(error)
        raise ModelError(f"PyTorch cannot load the TorchScript archive: {reason}", "invalid_model", hint="Save it again with torch.jit.save.") from error


def programs(model: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, claimed: Set[str]) -> Iterator[bytes]:
    """The program as it is exported, then as it is without writes in place: the second is for a reader that refuses the first."""
    if isinstance(model, ExportedProgram):
        if args is not None or kwargs is not None or dynamic_shapes is not None:
            raise ArgumentError("inputs are given with a program that is exported already.", hint="Give the program alone.")
        program = model
    else:
        program = exported(model, args, kwargs, dynamic_shapes)
    targets = _targets(program)
    own = {overload for overload in _converters.own_overloads() if str(overload) not in claimed}
    if all(str(target) in _converters.taken() or str(target) in claimed or target.namespace in ("_", "prim") for target in targets) and not targets & own:
        yield _saved(program)
    yield _saved(_decomposed(program, claimed))


def _targets(program: ExportedProgram) -> set[torch._ops.OpOverload]:
    nodes = [node for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule) for node in module.graph.nodes]
    return {node.target for node in nodes if isinstance(node.target, torch._ops.OpOverload) and isinstance(node.meta.get("val"), (torch.Tensor, list, tuple))}


def exported(model: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> ExportedProgram:
    if args is None and kwargs is None:
        raise ArgumentError("a module is given without inputs.", hint="Give examples of forward's arguments: polyphase.compile(net, (x,)).")
    if isinstance(args, torch.Tensor) or not isinstance(args, (list, tuple, type(None))):
        kind = type(args).__name__
        raise ArgumentError(f"the example inputs are a {kind}.", hint="Give a tuple of forward's arguments: (x,).")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        kind = type(kwargs).__name__
        raise ArgumentError(f"the named example inputs are a {kind}.", hint="Give a dict: {'mask': mask}.")
    given, named = tuple(args or ()), dict(kwargs or {})
    with _quiet(), torch.no_grad():
        if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            return _of_script(model, given, named, dynamic_shapes)
        try:
            return torch.export.export(model, given, named, dynamic_shapes=dynamic_shapes, strict=False)
        except Exception as error:
            raise _export_error(error) from error


class _Traced(torch.nn.Module):
    """A TorchScript function or module, to be traced from outside; torch.export reads the names of arguments off forward."""

    def __init__(self, script: Any, names: list[str]) -> None:
        super().__init__()
        self.script = script if isinstance(script, torch.nn.Module) else None
        inner: Any = script
        self._call: Any = inner._c._get_method("forward") if isinstance(script, torch.nn.Module) else script
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        forward: Any = functools.partial(self._run)
        self.forward = forward
        forward.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)


def _of_script(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> ExportedProgram:
    """By tracing it, which fixes all sizes, or through PyTorch's own converter, which leaves open what it can."""
    is_module = isinstance(model, torch.nn.Module)
    names = [argument.name for argument in (model.forward if is_module else model).schema.arguments][is_module:]

    def convert() -> ExportedProgram:
        from torch._export.converter import TS2EPConverter

        program = TS2EPConverter(model, args, kwargs).convert()
        if (call := program.module_call_graph[0].signature) is not None:
            call.forward_arg_names = names[: len(args)]
        return program

    def trace() -> ExportedProgram:
        return torch.export.export(_Traced(model, names), args, kwargs, strict=False)

    first: Exception | None = None
    for way in (trace, convert) if dynamic_shapes is None else (convert, trace):
        try:
            return way()
        except Exception as error:
            first = first or error
    assert first is not None
    raise _export_error(first) from first


def _decomposed(program: ExportedProgram, claimed: Set[str]) -> ExportedProgram:
    try:
        with _quiet(), torch.no_grad():
            decomposed: ExportedProgram = program.run_decompositions(_converters.decompositions(claimed))
            return decomposed
    except Exception as error:
        raise _export_error(error) from error


def _saved(program: ExportedProgram) -> bytes:
    file = io.BytesIO()
    try:
        with _quiet():
            torch.export.save(program, file)
    except Exception as error:
        raise _export_error(error) from error
    return file.getvalue()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _first_words(error: BaseException) -> str:
    """What the exception says, without the lines that tell where to read more."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip() or type(error).__name__
    text = re.split(r"\n\s*(?:from user code:|Stacktrace:|The following call raised|Set TORCH|For more information|To debug)", text)[0]
    text = " ".join(text.split())
    text = text if len(text) <= 500 else text[:500] + "…"
    return text if text.endswith((".", "!", "?")) else text + "."


def _place(error: BaseException) -> str:
    """The user's line that was at work: the innermost frame outside of PyTorch and this package."""
    said = re.findall(r'File "([^"]+)", line (\d+), in ([^\n]+)(?:\n\s+([^\n]+))?', str(error))
    frames = [(name, int(line), function, source) for name, line, function, source in said]
    current: BaseException | None = error
    while current is not None:
        frames = [(frame.filename, frame.lineno or 0, frame.name, frame.line or "") for frame in traceback.extract_tb(current.__traceback__)] + frames
        current = current.__cause__ or current.__context__
    users = [frame for frame in frames if not frame[0].startswith((*_PACKAGES, "<")) and "/torch/" not in frame[0]]
    inside = [frame for frame in users if frame[2] == "forward"] or users[1:]
    if not inside:
        return ""
    last = users.index(inside[-1])
    name, line, function, source = users[-1] if last < len(users) - 1 and users[-1][2] != "<module>" else inside[-1]
    return f'in File "{name}", line {line}, in {function}' + (f": {source.strip()}" if source else "")


def _export_error(error: Exception) -> Error:
    if isinstance(error, Error):
        return error
    reason = _first_words(error)
    place = _place(error)
    trail = (place,) if place else ()
    module = type(error).__module__
    if module.startswith("torch.") and not isinstance(error, torch.OutOfMemoryError) or isinstance(error, NotImplementedError):
        return UnsupportedError(f"PyTorch cannot export the module: {reason}", "unsupported", trail=trail,
                                hint="Rewrite that part so that torch.export takes it, or run the module by torch.compile(net, backend=\"polyphase\").")
    return ModelError(f"the module fails for the inputs that were given: {reason}", "invalid_model", trail=trail,
                      hint="Call it with these inputs in PyTorch first.")


def compile_first(forms: Iterator[bytes], compile_bytes: Callable[[bytes], Any]) -> Any:
    """Compiles the first form of a program that the reader takes. Of several refusals the first is told, which is about the
    operators that the user wrote, unless its advice is what the next form has done."""
    told: Error | None = None
    for program in forms:
        try:
            return compile_bytes(program)
        except UnsupportedError as error:
            if told is None or "run_decompositions" in told.hint:
                told = error
    assert told is not None
    raise told
