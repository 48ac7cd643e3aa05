"""polyphase.explain's answer: plain data that prints as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

_WIDTH = 118
_WORDS = 12


class Explanation(dict[str, Any]):
    """What will run where, from polyphase.explain: a dict of plain data, and as text a table.

    'operators' and 'taken' count operators, 'islands' engines, 'whole' says that nothing is left to PyTorch; 'graphs' has, for
    each graph that torch.compile finds: 'operators' (in order: 'node', 'operator', 'where' ('polyphase' or 'pytorch'), 'island',
    'reason', 'advice', 'line'), 'eager' (why all of it runs in PyTorch, or None), 'break' ('reason' and 'line' of what ends it
    before the network ends, or None) and 'slow' (steps on plain loops, with what each kernel says).
    """

    def __str__(self) -> str:
        islands = self["islands"]
        lines = [f"Polyphase runs {self['taken']} of {self['operators']} operators, in {islands} {'engine' if islands == 1 else 'engines'}; "
                 f"PyTorch runs {self['operators'] - self['taken']}."]
        for number, graph in enumerate(self["graphs"]):
            if len(self["graphs"]) > 1:
                lines.append(f"\ngraph {number}")
            if graph["eager"]:
                lines += _row("  PyTorch", f"all {len(graph['operators'])} operators: {graph['eager']['reason']} {graph['eager']['advice']}")
            else:
                lines += _steps(graph["operators"])
            for slow in graph["slow"]:
                lines += _row("  slow", f"{slow['operation']} of {slow['operands']} runs on plain loops ({slow['first_node']}).")
            if graph["break"]:
                lines += _row("  break", f"{graph['break']['reason']} {graph['break']['line']}")
        return "\n".join(lines)


def _steps(operators: list[Mapping[str, Any]]) -> list[str]:
    """Neighbours in one engine are one row, and each operator that PyTorch runs is one."""
    lines: list[str] = []
    run: list[str] = []

    def finish(island: Any) -> None:
        if run:
            names = dict.fromkeys(run)
            shown = [name + (f" ×{run.count(name)}" if run.count(name) > 1 else "") for name in names]
            more = [f"and {len(shown) - _WORDS} others"] if len(shown) > _WORDS else []
            lines.extend(_row(f"  engine {island}", f"{len(run)} operators: {', '.join([*shown[:_WORDS], *more])}"))
            run.clear()

    island = None
    for row in operators:
        if row["where"] == "polyphase":
            if row["island"] != island:
                finish(island)
                island = row["island"]
            run.append(row["operator"].removeprefix("aten.").removesuffix(".default"))
        else:
            finish(island)
            place = f" ({row['line']})" if row["line"] else ""
            lines.extend(_row("  PyTorch", f"{row['operator']}{place}: {row['reason']} {row['advice']}"))
    finish(island)
    return lines


def _row(where: str, text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), _WIDTH, initial_indent=f"{where:<13}", subsequent_indent=" " * 13, break_long_words=False)
