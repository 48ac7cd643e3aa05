"""Compatibility with PyTorch, case by case (tests/compat): every way to write a transposed convolution, and PyTorch's own samples of
every operator that the importer claims. Slices with `make test`; at full size 20,000 geometries and all samples."""
from __future__ import annotations

import json
import pathlib
import sys

import pytest
from conftest import wants_full

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "compat"))

GEOMETRIES = 400  # of one seed
FULL_SEEDS = range(1000, 1050)
SLICE = 120
# What PyTorch says when it runs a call, and what else it says of the same when it exports it.
SAME_REASON = [("Output size is too small", "negative dimension"), ("output padding must be smaller",), ("requested an output size",)]
SHARE = 0.02  # of the operators and dtypes of PyTorch's samples


def pytest_generate_tests(metafunc):
    full, seed = wants_full(metafunc.config), metafunc.config.getoption("--slice-seed")
    if "geometry_seed" in metafunc.fixturenames:
        metafunc.parametrize("geometry_seed", FULL_SEEDS if full else [seed])
    if "sample_part" in metafunc.fixturenames:
        metafunc.parametrize("sample_part", range(16) if full else [None])


@pytest.fixture(scope="module")
def claimed(polyphase) -> set[str]:
    return {row["name"] for row in json.loads(polyphase("converters", "--json").stdout)["converters"]}


def test_transposed_convolutions(geometry_seed, full):
    import transposed
    import transposed_runs as runs

    good, empty, bad = runs.sort_out(transposed.cases(geometry_seed, GEOMETRIES if full else SLICE), geometry_seed)
    outcomes = runs.run_good(good)
    assert len(outcomes) == len(good) > 0.7 * (len(good) + len(empty) + len(bad))
    wrong = [f"{outcome.use.label}: {outcome.kind}: {outcome.reason}" for outcome in outcomes if outcome.kind != "right"]
    assert not wrong, "\n".join(wrong[:10])
    stayed_open = [outcome for outcome in outcomes if outcome.use.open_axes and not outcome.fixed]
    assert len(stayed_open) > 0.5 * sum(bool(use.open_axes) for use in good)
    for use in empty:
        assert runs.TOO_SMALL in runs.refusal(use), use.label
    for use, words in bad:
        found = runs.refusal(use)
        assert found, f"{use.label}: PyTorch refuses it: {words}"
        same = next((said for said in SAME_REASON if said[0] in words), None)
        assert same is None or any(part in found for part in same), f"{use.label}: {found}, where PyTorch says {words}"


def test_samples_of_pytorch(sample_part, claimed, slice_seed):
    import batches
    import opinfo
    import refusals

    share, seed = (SHARE, slice_seed) if sample_part is None else (1.0, 1)
    uses = list(opinfo.uses(claimed, seed, share, part=sample_part, parts=16))
    assert uses
    failures = []
    for first in range(0, len(uses), 30):
        for outcome in batches.run(uses[first : first + 30]):
            if outcome.kind == "wrong" or (outcome.kind == "refused" and not refusals.is_listed(outcome.use.label, outcome.reason)):
                failures.append(f"{outcome.use.label} {[list(operand.shape) for operand in outcome.use.operands]}: {outcome.kind}: {outcome.reason}")
    assert not failures, "\n".join(failures[:20])
