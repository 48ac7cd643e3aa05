"""Writes src/export/opset_history.cpp out of ONNX's schemas: what each version of an operator added and took away.

    .venv/bin/python tests/python/exports/opset_history.py > src/export/opset_history.cpp
"""
from __future__ import annotations

import collections

from onnx import TensorProto, defs, helper

OLDEST, NEWEST = 7, 28
HEAD = """// Written by tests/python/exports/opset_history.py out of ONNX's schemas: the versions of the operators after opset 7.
#include "export/opset_history.h"

#include <array>

namespace polyphase::legal {
namespace {

using enum VersionForm;

// clang-format off
"""
TAIL = """
}  // namespace

std::span<const OperatorVersion> operator_versions() { return versions; }

}  // namespace polyphase::legal
"""


def operators() -> dict[str, dict[int, defs.OpSchema]]:
    """Of ONNX's own domain: the version that opset 7 means, and all after it."""
    out: dict[str, dict[int, defs.OpSchema]] = collections.defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            out[schema.name][schema.since_version] = schema
    for versions in out.values():
        for old in sorted(version for version in versions if version <= OLDEST)[:-1]:
            del versions[old]
    return dict(sorted(out.items()))


def elements(schema: defs.OpSchema, parameter) -> int:
    """The tensors that a parameter may be, as bits by TensorProto.DataType."""
    words = {parameter.type_str}
    for constraint in schema.type_constraints:
        if constraint.type_param_str == parameter.type_str:
            words = set(constraint.allowed_type_strs)
    names = {word[len("tensor("):-1].upper() for word in words if word.startswith("tensor(")}
    return sum(1 << TensorProto.DataType.Value(name) for name in names)


def default(attribute) -> str | None:
    """The text by which a report names the default; None: there is none that says the same as no attribute."""
    if attribute.name == "dilations":
        return "1s"
    if attribute.required or not attribute.default_value.type:
        return None
    value = helper.get_attribute_value(attribute.default_value)
    return value.decode() if isinstance(value, bytes) else f"{value:g}" if isinstance(value, (int, float)) else None


def changed(before: defs.OpSchema, after: defs.OpSchema) -> bool:
    """Whether a node of the older form can mean something else, or nothing, to the newer."""
    for name, attribute in before.attributes.items():
        other = after.attributes.get(name)
        if other is None or other.type != attribute.type or default(other) != default(attribute) or other.required and not attribute.required:
            return True
    parameters = [*zip(before.inputs, after.inputs), *zip(before.outputs, after.outputs)]
    needed = any(p.option == defs.OpSchema.FormalParameterOption.Single for p in after.inputs[len(before.inputs):])
    return (needed or len(after.inputs) < len(before.inputs) or len(after.outputs) < len(before.outputs) or any(attribute.required for name, attribute in after.attributes.items()
            if name not in before.attributes) or any(new.option != old.option and old.option != defs.OpSchema.FormalParameterOption.Single for old, new in parameters))


def row(name: str, before: defs.OpSchema | None, after: defs.OpSchema) -> str:
    if before is None or after.deprecated:
        return f'{{"{name}", {after.since_version}, {"gone" if after.deprecated else "born"}, 0, 0, false, 0, 0, ""}}'
    pairs = [*zip(before.inputs, after.inputs), *zip(before.outputs, after.outputs)]
    new = old = 0
    for one, other in pairs:
        new |= elements(after, other) & ~elements(before, one)
        old |= elements(before, one) & ~elements(after, other)
    first_only = any(new & elements(before, one) for one, _ in pairs)
    if first_only:
        new = elements(after, after.inputs[0]) & ~elements(before, before.inputs[0])
    if any(old & elements(after, other) for _, other in pairs):
        old = elements(before, before.inputs[0]) & ~elements(after, after.inputs[0])
    added = [f"{key}={default(after.attributes[key])}" for key in sorted(set(after.attributes) - set(before.attributes))]
    grown = added or len(after.inputs) > len(before.inputs) or any(a.option != b.option for a, b in pairs) or len(after.outputs) > len(before.outputs)
    form = "changed" if changed(before, after) else "grown" if grown else "same"
    return (f'{{"{name}", {after.since_version}, {form}, {new:#x}, {old:#x}, {str(first_only).lower()}, {before.max_input if before.max_input < 1 << 20 else 1 << 20}, '
            f'{before.max_output if before.max_output < 1 << 20 else 1 << 20}, "{" ".join(added)}"}}')


def source() -> str:
    rows = []
    for name, versions in operators().items():
        order = sorted(versions)
        if order[0] > OLDEST:
            rows.append(row(name, None, versions[order[0]]))
        rows += [row(name, versions[one], versions[other]) for one, other in zip(order, order[1:])]
    rows = [line for line in rows if ", same, 0x0, 0x0," not in line]
    return HEAD + f"constexpr std::array<OperatorVersion, {len(rows)}> versions = {{{{\n" + "".join(f"    {line},\n" for line in rows) + "}};\n// clang-format on\n" + TAIL


if __name__ == "__main__":
    print(source(), end="")
