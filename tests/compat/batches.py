"""Many calls of PyTorch's operators in one exported program: each is a use with operands of its own and an output of its own, so
that the cost of an export and of a compilation is shared, and a wrong output still names its use.

    run(uses) → one Outcome per use: right, wrong (which ends a test), refused (with Polyphase's reason), not_exported (with PyTorch's),
    both_refuse (at the second sizes, with Polyphase's)
"""
from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Callable, Sequence

import torch
from torch import nn

import polyphase
from polyphase.torch import _judge
from polyphase.torch._judge import quiet, tensors_of

AUTO = torch.export.Dim.AUTO


@dataclasses.dataclass
class Use:
    """`call` of `operands`; results are flattened, those that are no tensors are left out."""

    label: str
    call: Callable[..., object]
    operands: list[torch.Tensor]
    weights: frozenset[int] = frozenset()  # which operands are constants of the program
    open_axes: dict[int, tuple[int, ...]] = dataclasses.field(default_factory=dict)  # operand → axes of any size
    others: list[torch.Tensor] | None = None  # operands of other sizes, run through the same engine


@dataclasses.dataclass
class Outcome:
    use: Use
    kind: str  # right, wrong, refused, not_exported, or both_refuse: at other sizes, also the program that PyTorch exported
    reason: str = ""
    fixed: bool = False  # PyTorch's export fixed an axis that was to be open: it ran at its one size


class Batch(nn.Module):
    def __init__(self, uses: Sequence[Use]) -> None:
        super().__init__()
        self.uses = uses
        for number, use in enumerate(uses):
            for place in use.weights:
                self.register_buffer(f"weight_{number}_{place}", use.operands[place])

    def forward(self, *inputs):
        given, results = iter(inputs), []
        for number, use in enumerate(self.uses):
            operands = [getattr(self, f"weight_{number}_{place}") if place in use.weights else next(given) for place in range(len(use.operands))]
            results += tensors_of(use.call(*operands))
        return tuple(results)


def eager(use: Use, operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return _judge.eager(use.call, operands)


def inputs_of(uses: Sequence[Use], which: Callable[[Use], Sequence[torch.Tensor]]) -> tuple[torch.Tensor, ...]:
    return tuple(operand for use in uses for place, operand in enumerate(which(use)) if place not in use.weights)


def export(uses: Sequence[Use]) -> torch.export.ExportedProgram:
    shapes = None
    if any(use.open_axes for use in uses):
        shapes = (tuple({axis: AUTO for axis in use.open_axes.get(place, ())} for use in uses for place in range(len(use.operands)) if place not in use.weights),)
    with quiet():
        return torch.export.export(Batch(uses).eval(), inputs_of(uses, lambda use: use.operands), dynamic_shapes=shapes)


def fixed_by_pytorch(program: torch.export.ExportedProgram, uses: Sequence[Use]) -> set[str]:
    """The uses of which the export made a number of a size that was to be open, because the operator distinguishes it."""
    names = program.graph_signature.user_inputs
    shapes = {node.name: node.meta["val"].shape for node in program.graph_module.graph.nodes if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)}
    found, number = set(), 0

    def is_one_size(size) -> bool:
        limits = None if isinstance(size, int) else program.range_constraints.get(size.node.expr)
        return isinstance(size, int) or size.node.expr.is_number or (limits is not None and limits.lower == limits.upper)

    for use in uses:
        for place in range(len(use.operands)):
            if place not in use.weights:
                if any(is_one_size(shapes[names[number]][axis]) for axis in use.open_axes.get(place, ())):
                    found.add(use.label)
                number += 1
    return found


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


def run(uses: Sequence[Use]) -> list[Outcome]:
    """Uses that cannot go with the others are run by themselves."""
    uses = list(uses)
    if not uses:
        return []
    try:
        program = export(uses)
    except Exception as error:  # noqa: BLE001: whatever PyTorch raises
        return [Outcome(uses[0], "not_exported", first_line(error))] if len(uses) == 1 else halves(uses)
    try:
        file = io.BytesIO()
        with quiet():
            torch.export.save(program, file)
        engine = polyphase.compile(file.getvalue())
    except polyphase.Error as error:
        return [Outcome(uses[0], "refused", str(error))] if len(uses) == 1 else halves(uses)
    fixed = fixed_by_pytorch(program, uses)
    sets = [lambda use: use.operands]
    if any(use.others for use in uses):
        sets.append(lambda use: use.operands if use.others is None or use.label in fixed else use.others)
    reasons = [""] * len(uses)
    for which in sets:
        try:
            results = engine(*inputs_of(uses, which))
        except polyphase.Error as error:
            if len(uses) > 1:
                return halves(uses)
            with contextlib.suppress(Exception), quiet():
                program.module()(*inputs_of(uses, which))
                return [Outcome(uses[0], "wrong", str(error))]
            return [Outcome(uses[0], "both_refuse", str(error))]
        results = iter([results] if isinstance(results, torch.Tensor) else list(results))
        for number, use in enumerate(uses):
            expected = eager(use, which(use))
            found = [next(results) for _ in expected]
            reasons[number] = reasons[number] or _judge.judge(use.call, which(use), found).reason
    return [Outcome(use, "wrong" if reason else "right", reason, use.label in fixed) for use, reason in zip(uses, reasons)]


def halves(uses: list[Use]) -> list[Outcome]:
    return run(uses[: len(uses) // 2]) + run(uses[len(uses) // 2 :])
