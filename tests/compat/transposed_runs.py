"""Runs drawn transposed convolutions: what PyTorch computes must come out, what it refuses must be refused."""
from __future__ import annotations

from collections.abc import Sequence

import batches
import torch
import transposed
from batches import Outcome, Use

import polyphase

CLOSED, OPEN = 40, 10  # uses of one program: exports with symbols take PyTorch long
# A result without elements: PyTorch's own loops refuse it in these words, oneDNN's let it pass for some dtypes and batches.
TOO_SMALL = "Output size is too small"


def sort_out(geometries: Sequence[transposed.Geometry], seed: int) -> tuple[list[Use], list[Use], list[tuple[Use, str]]]:
    """Uses with results; uses whose results are empty; uses that PyTorch refuses, with its words."""
    good, empty, bad = [], [], []
    for number, geometry in enumerate(geometries):
        use = transposed.use_of(geometry, seed * 1000 + number)
        try:
            results = [batches.eager(use, given)[0] for given in (use.operands, use.others) if given is not None]
        except Exception as error:  # noqa: BLE001: PyTorch raises RuntimeError, ValueError and more
            bad.append((use, str(error).strip().splitlines()[0]))
            continue
        (good if all(result.numel() for result in results) else empty).append(use)
    return good, empty, bad


def run_good(uses: Sequence[Use]) -> list[Outcome]:
    outcomes = []
    for group, size in (([use for use in uses if not use.open_axes], CLOSED), ([use for use in uses if use.open_axes], OPEN)):
        for first in range(0, len(group), size):
            outcomes += batches.run(group[first : first + size])
    return outcomes


def refusal(use: Use) -> str:
    """What compiling and running the use as a module raises, or nothing."""
    try:
        inputs = batches.inputs_of([use], lambda use: use.operands)
        with torch.no_grad():
            polyphase.compile(batches.Batch([use]).eval(), inputs)(*inputs)
    except polyphase.Error as error:
        return str(error)
    return ""

