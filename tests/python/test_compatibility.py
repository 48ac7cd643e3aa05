"""Compatibility with PyTorch, case by case (tests/compat): every way to write a transposed convolution, every overload in every dtype, layout
and with open sizes, and PyTorch's own samples of them. Slices with `make test`; at full size 20,000 geometries and all samples."""
from __future__ import annotations

import json
import pathlib
import random
import re
import sys

import pytest
from conftest import wants_full

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "compat"))

GEOMETRIES = 400  # of one seed
FULL_SEEDS = range(1000, 1050)
SLICE = 120
# What PyTorch says when it runs a call, and what else it says of the same when it exports it.
SAME_REASON = [("Output size is too small", "negative dimension"), ("output padding must be smaller",), ("requested an output size",)]
SHARE = 0.01  # of the operators and dtypes of PyTorch's samples
OVERLOAD_SHARE = 0.006  # of the overloads and dtypes


def pytest_generate_tests(metafunc):
    full, seed = wants_full(metafunc.config), metafunc.config.getoption("--slice-seed")
    if "geometry_seed" in metafunc.fixturenames:
        metafunc.parametrize("geometry_seed", FULL_SEEDS if full else [seed])
    if "sample_part" in metafunc.fixturenames:
        metafunc.parametrize("sample_part", range(16) if full else [None])


@pytest.fixture(scope="module")
def converters(polyphase) -> list[dict]:
    return json.loads(polyphase("converters", "--json").stdout)["converters"]


@pytest.fixture(scope="module")
def claimed(converters) -> set[str]:
    return {entry["name"] for entry in converters}


def test_transposed_convolutions(geometry_seed, full):
    import transposed
    import transposed_runs as runs

    good, empty, bad = runs.sort_out(transposed.cases(geometry_seed, GEOMETRIES if full else SLICE), geometry_seed)
    outcomes = runs.run_good(good)
    assert len(outcomes) == len(good) > 0.7 * (len(good) + len(empty) + len(bad))
    # An exported program may refuse sizes that the module takes: PyTorch's export found a bound that is too narrow.
    narrow = [outcome for outcome in outcomes if outcome.kind == "both_refuse"]
    assert len(narrow) <= 0.01 * len(outcomes), "\n".join(f"{outcome.use.label}: {outcome.reason}" for outcome in narrow)
    wrong = [f"{outcome.use.label}: {outcome.kind}: {outcome.reason}" for outcome in outcomes if outcome.kind not in ("right", "both_refuse")]
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


def failures_of(uses, allowed=lambda outcome: False) -> list[str]:
    """What is wrong, or refused though no reason for it is known."""
    import batches

    found = []
    for group, size in (([use for use in uses if not use.open_axes], 40), ([use for use in uses if use.open_axes], 10)):
        for first in range(0, len(group), size):
            for outcome in batches.run(group[first : first + size]):
                if outcome.kind == "wrong" or (outcome.kind == "refused" and not allowed(outcome)):
                    found.append(f"{outcome.use.label} {[list(operand.shape) for operand in outcome.use.operands]}: {outcome.kind}: {outcome.reason}")
    return found


def test_overloads_in_every_layout(converters, slice_seed, full):
    """Engines called with channels-last, sliced, transposed and expanded arrays as they lie, and with open sizes."""
    import overloads
    import page

    rng = random.Random(slice_seed)
    drawn = [use for _, use in overloads.uses(converters) if full or rng.random() < OVERLOAD_SHARE]
    uses = [made for use in drawn for _, made in page.ways_of(use, rng)]
    assert {way for way in page.WAYS for use in uses if use.label.endswith(way)} == set(page.WAYS)
    wrong = failures_of(uses, lambda outcome: True)
    assert not wrong, "\n".join(wrong[:20])


def test_the_page_has_every_overload(converters):
    import page

    text = page.PAGE.read_text()
    listed = re.findall(r"^\| `([a-z]+\.[^`]+)` \|", text, re.MULTILINE)
    assert set(listed) == {entry["name"] for entry in converters}, "tests/compat/page.py --new --program build/PRESET/apps/cli/polyphase"
    table = page.Table.read(text)
    if table.calls:  # written with this PyTorch
        assert table.text() == text
        lacking = [name for name in listed if not table.right[name] and not table.refused[name]]
        assert lacking == ["aten.convolution_overrideable.default"], "no call was made of these"  # PyTorch itself cannot run it on a CPU


def test_samples_of_pytorch(sample_part, claimed, slice_seed):
    import opinfo
    import refusals

    share, seed = (SHARE, slice_seed) if sample_part is None else (1.0, 1)
    uses = list(opinfo.uses(claimed, seed, share, part=sample_part, parts=16))
    assert uses
    failures = failures_of(uses, lambda outcome: refusals.is_listed(outcome.use.label, outcome.reason))
    assert not failures, "\n".join(failures[:20])
