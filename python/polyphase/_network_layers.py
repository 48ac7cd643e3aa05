"""A method of Network for every operator, out of the operators' own definitions."""

from __future__ import annotations

import inspect
import keyword
from typing import Any

from . import _native
from ._errors import ArgumentError

_TYPES = {"boolean": "bool", "integer": "int", "real": "float", "word": "str", "dtype": "str", "integers": "Sequence[int]", "reals": "Sequence[float]",
          "dim": "SizeLike", "dims": "Sequence[SizeLike]"}
_LAYOUTS = ("data_layout", "kernel_layout", "out_layout")
_RESERVED = {"and", "or", "not", "xor", "if"}  # as the methods of C++ are named


def method_name(op: str) -> str:
    return f"{op}_" if op in _RESERVED or keyword.iskeyword(op) else op


def _has_method(op: dict[str, Any]) -> bool:
    return op["bodies"] == 0 and op["name"] != "constant"


def _default(attribute: dict[str, Any]) -> Any:
    """The default as Python writes it; for signatures only."""
    text = attribute["default"]
    if attribute["kind"] == "boolean":
        return text == "true"
    if attribute["kind"] in ("integer", "real", "dim"):
        return float(text) if attribute["kind"] == "real" else int(text)
    return text if attribute["kind"] == "dtype" else [] if text == "[]" else text.strip('"')


def _signature(op: dict[str, Any]) -> inspect.Signature:
    kind = inspect.Parameter
    out = [kind("self", kind.POSITIONAL_OR_KEYWORD)]
    optional = False
    for operand in op["operands"]:
        optional = optional or (operand["optional"] and not operand["variadic"])
        out.append(kind(operand["name"], kind.POSITIONAL_OR_KEYWORD, default=None if optional else kind.empty, annotation="Any"))
    for attribute in op["attributes"]:
        default = kind.empty if attribute["required"] else _default(attribute)
        out.append(kind(attribute["name"], kind.KEYWORD_ONLY, default=default, annotation=_TYPES.get(attribute["kind"], "Any")))
    for layout in _LAYOUTS if op["name"] in ("conv", "conv_transpose") else ():
        out.append(kind(layout, kind.KEYWORD_ONLY, default=None, annotation="str | None"))
    out.append(kind("name", kind.KEYWORD_ONLY, default="", annotation="str"))
    results = "Tensor" if len(op["results"]) == 1 else f"tuple[{', '.join(['Tensor'] * len(op['results']))}]"
    return inspect.Signature(out, return_annotation=results)


def _words(op: dict[str, Any]) -> str:
    lines = [op["doc"], ""]
    for operand in op["operands"]:
        lines.append(f"{operand['name']}: {operand['doc']}{' (a list)' if operand['variadic'] else ' (optional)' if operand['optional'] else ''}")
    for attribute in op["attributes"]:
        choice = f": {', '.join(attribute['words'])}" if attribute["words"] else ""
        lines.append(f"{attribute['name']}: {attribute['doc']}{choice}")
    if op["name"] in ("conv", "conv_transpose"):
        lines.append(f"{', '.join(_LAYOUTS)}: how operands and result lie, as for add_{'de' * (op['name'] != 'conv')}convolution_nd, whose layer it is then")
    lines += ["", "Returns " + "; ".join(f"{result['name']}: {result['doc']}" for result in op["results"])]
    return "\n".join(lines)


def _layer(name: Any) -> str:
    return f"layer '{name}'" if name else "a layer"


def _with_layouts(net: Any, op: str, operands: tuple[Any, ...], name: str, given: dict[str, Any]) -> Any:
    """The same with layouts, which the methods for networks by hand write; x, w and b are their operands."""
    settings = {{"pre": "pre_padding", "post": "post_padding", "x": "x", "w": "weight", "b": "bias"}.get(key, key): value for key, value in given.items()}
    known = {"x", "weight", "bias", "stride", "dilation", "groups", "pre_padding", "post_padding", *_LAYOUTS}
    unknown = sorted(set(settings) - known)
    if unknown or len(operands) > 3:
        raise ArgumentError(f"{_layer(name)} of operator {op} has no setting '{unknown[0] if unknown else operands[3]}' beside layouts.",
                            hint="It has: dilation, groups, post, pre, stride; add_convolution_nd and add_deconvolution_nd have more.")
    return (net.add_convolution_nd if op == "conv" else net.add_deconvolution_nd)(*operands, name=name, **settings)


def _method(op: dict[str, Any]) -> Any:
    names = [operand["name"] for operand in op["operands"]]
    settings = {attribute["name"] for attribute in op["attributes"]}
    variadic = bool(op["operands"]) and op["operands"][-1]["variadic"]
    single = len(op["results"]) == 1
    op_name = op["name"]

    def method(self: Any, *operands: Any, name: str = "", **given: Any) -> Any:
        if op_name in ("conv", "conv_transpose") and any(key in given for key in _LAYOUTS):
            return _with_layouts(self, op_name, operands, name, given)
        named = {key: given.pop(key) for key in names if key in given}
        if len(operands) > len(names) or any(key in named for key in names[:len(operands)]):
            raise ArgumentError(f"{_layer(name)} of operator {op_name} is given an operand twice, or too many.", hint=f"It takes: {', '.join(names) or 'none'}.")
        ordered = [*operands, *(named.get(key) for key in names[len(operands):])]
        if variadic:
            if not isinstance(ordered[-1], (list, tuple)):
                raise ArgumentError(f"operand '{names[-1]}' of {_layer(name)} is a {type(ordered[-1]).__name__}.", hint="Give a list of tensors.")
            ordered = [*ordered[:-1], *ordered[-1]]
        while ordered and ordered[-1] is None:
            ordered.pop()
        unknown = sorted(set(given) - settings)
        if unknown:
            raise ArgumentError(f"{_layer(name)} of operator {op_name} has no setting '{unknown[0]}'.", hint=f"It has: {', '.join(sorted(settings)) or 'none'}.")
        made = self.add_layer(op_name, ordered, {key: value for key, value in given.items() if value is not None}, name)
        return made[0] if single else tuple(made)

    method.__name__ = method_name(op_name)
    method.__qualname__ = f"Network.{method.__name__}"
    method.__doc__ = _words(op)
    method.__signature__ = _signature(op)
    return method


def layer_methods(kind: type) -> type:
    """Gives a class the methods; those that it has itself stay."""
    for op in _native.operators():
        if _has_method(op) and method_name(op["name"]) not in vars(kind):
            setattr(kind, method_name(op["name"]), _method(op))
    return kind
