"""polyphase.compat's answer: rows of plain data that print as a table and are written as JSON or Markdown."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import ArgumentError, FileError
from ._native import version
from ._options import Path

SCHEMA = 1  # raised when a key changes its meaning or goes
OUTCOMES = ("wrong", "missing", "refused", "not run", "right")  # the worst first


class Compatibility:
    """Which operator configurations of a network come out right, from polyphase.compat; as text a table.

    rows: one dict for each distinct configuration, in the order of the network: 'operation', 'attributes', 'operands' (each None, or 'dtype',
        'sizes' as the network has them, 'constant', and of PyTorch's calls 'layout'), 'nodes' (how many are so), 'first_node', 'outcome'
        ('right', 'wrong', 'refused', 'missing' or 'not run': the worst of its cases), 'reason', and 'cases': one dict for each run, with
        'sizes' of the open sizes, 'operands' (their sizes in elements), 'kernel', 'outcome', 'reason', 'error' and 'tolerance' (of a file the
        relative RMS, of PyTorch's calls the worst element as a share of the largest).
    notes: what else there is to say.
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.rows: list[dict[str, Any]] = report["rows"]
        self.notes: list[str] = report["notes"]
        self._report = report

    @property
    def ok(self) -> bool:
        """Nothing is wrong, refused or missing, and something ran unless there is nothing to run."""
        outcomes = {row["outcome"] for row in self.rows}
        return outcomes <= {"right", "not run"} and (not outcomes or "right" in outcomes)

    def json(self) -> str:
        """The same keys that `polyphase compat --json` writes (docs/debugging.md)."""
        counts = {outcome: sum(row["outcome"] == outcome for row in self.rows) for outcome in OUTCOMES}
        head = {"schema": SCHEMA, "command": "compat", "polyphase": version, "ok": self.ok}
        middle = {key: self._report[key] for key in ("model_name", "producer", "reference", "seed")}
        tail = {"counts": counts, "constant_nodes": self._report["constant_nodes"], "rows": self.rows, "notes": self.notes, "seconds": self._report["seconds"]}
        return json.dumps({**head, **middle, **tail}, indent=2, default=str) + "\n"

    def save(self, path: Path) -> None:
        """Writes a table (.md) or JSON (.json), under a temporary name and then renamed.

        Raises Error: invalid_argument (another ending), io.
        """
        place = pathlib.Path(os.fsdecode(path))
        if place.suffix not in (".json", ".md"):
            raise ArgumentError(f"the file '{place}' is neither JSON nor Markdown by its name.", hint="Give a path that ends in .json or .md.")
        text = self.json() if place.suffix == ".json" else self._markdown()
        from ._files import write_whole  # its modules take a megabyte, which only this needs

        try:
            write_whole(place, text.encode("utf-8", errors="replace"), private=False)
        except OSError as error:
            reason = error.strerror
            raise FileError(f"cannot write '{place}': {reason}.", "io", hint="Give a path in a folder that is there and may be written.") from error

    def __str__(self) -> str:
        lines = []
        table = [("operator", "nodes", "operands", "kernel", "", "error", "first node"), *(_cells(row) for row in self._worst_first())]
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        for cells, row in zip(table, [None, *self._worst_first()]):
            lines.append("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
            if row and row["attributes"]:
                lines.append(f"      {row['attributes'][:200]}")
            if row and row["reason"]:
                lines.append(f"      why: {row['reason']}")
        lines += [f"note      {note}" for note in self.notes]
        return "\n".join([*lines, "", self._summary()])

    def __repr__(self) -> str:
        return f"<polyphase.Compatibility: {self._summary()}>"

    def _worst_first(self) -> list[dict[str, Any]]:
        return sorted(self.rows, key=lambda row: OUTCOMES.index(row["outcome"]))

    def _summary(self) -> str:
        counts = [(outcome, sum(row["outcome"] == outcome for row in self.rows)) for outcome in OUTCOMES]
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts if count) or "nothing to test"
        one = "" if len(self.rows) == 1 else "s"
        return f"{len(self.rows)} configuration{one} ({said}), {'nothing is wrong' if self.ok else 'NOT all right'} in {self._report['seconds']:.3g} s"

    def _markdown(self) -> str:
        name = _escaped(self._report["model_name"] or "the network")
        lines = [f"# Compatibility of {name}", "", f"Polyphase {version}, seed {self._report['seed']}, against {self._report['reference']}: {self._summary()}.", "",
                 "| operator | attributes | nodes | operands | sizes | kernel | outcome | largest error | first node |", "|---|---|--:|---|---|---|---|--:|---|"]
        for row in self._worst_first():
            operation, nodes, operands, kernel, _, error, first = _cells(row)
            sizes = "; ".join(" ".join(f"{name}={size}" for name, size in case["sizes"].items()) for case in row["cases"])
            outcome = row["outcome"] + (f": {row['reason']}" if row["reason"] else "")
            lines.append("| " + " | ".join(map(_escaped, (operation, row["attributes"], nodes, operands, sizes, kernel, outcome, error, first))) + " |")
        return "\n".join([*lines, *(f"\n{_escaped(note)}" for note in self.notes)]) + "\n"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    kernels = list(dict.fromkeys(case["kernel"] for case in row["cases"] if case["kernel"]))
    outcome = row["outcome"] if row["outcome"] == "right" else row["outcome"].upper()
    return (row["operation"], str(row["nodes"]), ", ".join(map(_operand, row["operands"])), " / ".join(kernels), outcome, _error(row["cases"]), row["first_node"])


def _operand(operand: Mapping[str, Any] | None) -> str:
    if operand is None:
        return "-"
    words = [operand["dtype"], "x".join(size if size.isalnum() else f"({size})" for size in operand["sizes"]) or "scalar"]
    if operand.get("layout", "contiguous") != "contiguous":
        words.append(operand["layout"])
    return " ".join([*words, *(["constant"] if operand["constant"] else [])])


def _error(cases: Sequence[Mapping[str, Any]]) -> str:
    ran = [case for case in cases if case["outcome"] in ("right", "wrong")]
    if not ran:
        return ""
    worst = max(ran, key=lambda case: float(case["error"]))
    return "exact" if float(worst["error"]) == 0 else f"{float(worst['error']):.2g} of {worst['tolerance']:.2g}"


def _escaped(text: str) -> str:
    """A cell of Markdown: names come out of models."""
    tame = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return re.sub(r"([|<`*_\[])", r"\\\1", tame)
