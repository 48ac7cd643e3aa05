"""docs/compatibility.md: what the uses of the compatibility suite came to, read back from the page and added to.

    page.py --new                      only overloads that the page says nothing of: after a converter was added
    page.py --seconds 600 --seed 3     calls of every overload and samples of PyTorch's, in an order that the seed draws, until the time is up
    page.py --samples 0.05 --seed 3    this share of PyTorch's samples alone
    page.py --transposed 400           and so many transposed convolutions first; --fresh forgets what the page has

The counts of further runs are added, so that a page may be made in slices. Exit code 1: something is wrong.
"""
from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in (ROOT / "tests/python", ROOT / "tests/compat"):
    sys.path.insert(0, str(folder))

import batches  # noqa: E402
import layouts  # noqa: E402
import opinfo  # noqa: E402
import overloads  # noqa: E402
import torch  # noqa: E402
import transposed  # noqa: E402
import transposed_runs  # noqa: E402
from batches import Use  # noqa: E402

PAGE = ROOT / "docs/compatibility.md"
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool")
WAYS = (*layouts.LAYOUTS, "open")
FEATURES = ("stride", "padding", "output_padding", "dilation", "groups", "depthwise", "bias", "unbatched", "channels_last", "strided", "constant weight", "output_size", "open sizes")
DONE = re.compile(r"(\d+) calls of overloads and samples, (\d+) transposed convolutions; PyTorch ([^;]+); seeds ([\d, ]*)")
LEGEND = """What came out right, of the calls that `tests/compat` made: the engine's results are held against eager PyTorch's, and FP64 says how far off each may be
(`tests/compat/batches.py`, `polyphase.torch._judge`). **Nothing was wrong**: a wrong result ends the run that writes this page. A cell has four counts:
*contiguous · channels_last · other strides · open sizes*. The first three have fixed sizes; other strides are those of slices of every second element, of transposed
arrays and of `expand` (stride 0), which the engine is called with as they lie. Open sizes: every axis of more than one element stays open in the exported program,
unless PyTorch's export fixes it. An empty cell: PyTorch has no such call, or none was drawn. What PyTorch refuses, and what it cannot export, is not counted. For the
same of your own network: `polyphase compat MODEL`, `polyphase.compat(net, (x,))`.
"""


@dataclasses.dataclass
class Table:
    right: dict[str, collections.Counter]  # overload → (dtype, way) → count
    refused: dict[str, collections.Counter]  # overload → reason → count
    transposed: dict[tuple[int, str], collections.Counter]  # (rank, dtype) → feature → count; "" counts all
    calls: int = 0
    geometries: int = 0
    seeds: tuple[int, ...] = ()

    @classmethod
    def empty(cls) -> Table:
        return cls(collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter))

    @classmethod
    def read(cls, text: str) -> Table:
        table = cls.empty()
        done = DONE.search(text)
        if done and done[3] == torch.__version__:
            table.calls, table.geometries = int(done[1]), int(done[2])
            table.seeds = tuple(int(seed) for seed in done[4].split(",") if seed.strip())
        else:
            return table  # another PyTorch: nothing of it holds
        reasons = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
        for name, rest in re.findall(r"^\| `([a-z]+\.[^`]+)` \|(.*)\|$", text, re.MULTILINE):
            cells = [cell.strip() for cell in rest.split("|")]
            table.right[name]  # an overload without a call has a row too
            for dtype, cell in zip(DTYPES, cells):
                for way, count in zip(WAYS, cell.split("·") if cell else []):
                    table.right[name][dtype, way] += int(count)
            for count, number in re.findall(r"(\d+) \[(\d+)\]", cells[len(DTYPES)]):
                table.refused[name][reasons[number]] += int(count)
        for rank, dtype, rest in re.findall(r"^\| (\d)d \| (\w+) \|(.*)\|$", text, re.MULTILINE):
            for feature, cell in zip(("", *FEATURES), rest.split("|")):
                table.transposed[int(rank), dtype][feature] += int(cell)
        return table

    def text(self) -> str:
        reasons = sorted({reason for found in self.refused.values() for reason in found})
        seeds = ", ".join(map(str, self.seeds))
        lines = ["# Compatibility with PyTorch, overload by overload", "", "Written by `tests/compat/page.py`, slice by slice; a test holds its list to `polyphase converters`.", "",
                 f"{self.calls} calls of overloads and samples, {self.geometries} transposed convolutions; PyTorch {torch.__version__}; seeds {seeds}. `make test-all` runs all samples and 20,000 geometries.", "",
                 LEGEND, "## Transposed convolutions", "", "Drawn by a seed from all that PyTorch can write (`tests/compat/transposed.py`): how many were right, in all and of those with the feature.", "",
                 f"| rank | dtype | all | {' | '.join(FEATURES)} |", "|---|---|--:|" + "--:|" * len(FEATURES)]
        for (rank, dtype), counts in sorted(self.transposed.items()):
            lines.append(f"| {rank}d | {dtype} | {' | '.join(str(counts[feature]) for feature in ('', *FEATURES))} |")
        lines += ["", f"## {len(self.right)} overloads", "", f"| overload | {' | '.join(DTYPES)} | refused |", "|---|" + "---|" * (len(DTYPES) + 1)]
        for name in sorted(self.right):
            cells = []
            for dtype in DTYPES:
                counts = [self.right[name][dtype, way] for way in WAYS]
                cells.append("·".join(map(str, counts)) if any(counts) else "")
            refused = ", ".join(f"{count} [{reasons.index(reason) + 1}]" for reason, count in sorted(self.refused[name].items()))
            lines.append(f"| `{name}` | {' | '.join([*cells, refused])} |")
        lines += ["", "## Reasons of refusals", "", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
        return "\n".join(lines) + "\n"

    def note(self, name: str, dtype: str, way: str, outcome: batches.Outcome) -> str:
        """What is wrong, or nothing."""
        if outcome.kind == "wrong":
            return f"{name} {outcome.use.label}: {outcome.reason}"
        if outcome.kind == "right":
            if way != "open" or not outcome.fixed:
                self.right[name][dtype, way] += 1
        elif outcome.kind == "refused":
            self.refused[name][plain(outcome.reason)] += 1
        self.calls += outcome.kind in ("right", "refused")
        return ""


def plain(reason: str) -> str:
    """Without the names and numbers of one use, and without what to do."""
    reason = re.sub(r"^node '[^']*': ", "", reason).split(". ")[0].rstrip(".")
    reason = re.sub(r"'[^']*'", "'…'", re.sub(r"\d+", "#", reason))
    return reason.replace("|", "/").replace("\n", " ")[:160]


@dataclasses.dataclass
class Planned:
    name: str
    way: str
    use: Use


def ways_of(use: Use, rng: random.Random) -> Iterator[tuple[str, Use]]:
    for layout in layouts.LAYOUTS:
        laid = layouts.laid_out(use, layout, rng)
        if laid is not None and opinfo.has_numbers(laid):
            yield layout, laid
    more = layouts.opened(use)
    if more is not None:
        yield "open", more


def planned(converters: list[dict], rng: random.Random, only: set[str] | None, share: float) -> Iterator[list[Planned]]:
    """In lists whose uses may go together: first one call of every overload, then samples of PyTorch's."""
    closed: list[Planned] = []
    open_: list[Planned] = []
    own = [(name, use) for name, use in overloads.uses(converters) if only is None or name in only]
    rng.shuffle(own)
    first = {name: use for name, use in reversed(own)}
    own = [*first.items(), *((name, use) for name, use in own if use is not first[name])]
    for name, use in own:
        found = list(ways_of(use, rng))
        for way, made in found if only is not None else [found[0], *rng.sample(found[1:], min(len(found) - 1, 2))]:
            (open_ if way == "open" else closed).append(Planned(name, way, made))
        yield from full(closed, transposed_runs.CLOSED)
        yield from full(open_, transposed_runs.OPEN)
    if share:
        claimed = {entry["name"] for entry in converters}
        for use in opinfo.uses(claimed, rng.randrange(1 << 30), share, most=4):
            names = opinfo.overloads_of(use) & claimed
            name = next((name for name in sorted(names) if name.split(".")[1] == use.label.split()[0].rpartition(".")[2]), min(names))
            way, made = rng.choice(list(ways_of(use, rng)))
            (open_ if way == "open" else closed).append(Planned(name, way, made))
            yield from full(closed, transposed_runs.CLOSED)
            yield from full(open_, transposed_runs.OPEN)
    yield from full(closed, 1)
    yield from full(open_, 1)


def full(pending: list[Planned], count: int) -> Iterator[list[Planned]]:
    if len(pending) >= count:
        yield list(pending)
        pending.clear()


def add_transposed(table: Table, seed: int, count: int) -> list[str]:
    good, _, _ = transposed_runs.sort_out(geometries := transposed.cases(seed, count), seed)
    by_label = {geometry.label(): geometry for geometry in geometries}
    wrong = []
    for outcome in transposed_runs.run_good(good):
        if outcome.kind != "right":
            if outcome.kind != "both_refuse":
                wrong.append(f"{outcome.use.label}: {outcome.reason}")
            continue
        g = by_label[outcome.use.label]
        has = {"stride": max(g.stride) > 1, "padding": max(g.padding) > 0, "output_padding": max(g.output_padding) > 0, "dilation": max(g.dilation) > 1, "groups": g.groups > 1,
               "depthwise": g.groups > 1 and g.inputs == g.outputs == 1, "bias": g.bias, "unbatched": g.batch == 0, "channels_last": g.channels_last, "strided": g.strided,
               "constant weight": g.constant, "output_size": g.wish == "output_size", "open sizes": g.open_sizes and not outcome.fixed}
        counts = table.transposed[g.axes, str(g.dtype).removeprefix("torch.")]
        counts[""] += 1
        for feature in FEATURES:
            counts[feature] += has[feature]
        table.geometries += 1
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--samples", type=float, default=0, help="no calls of overloads, but this share of the operators and dtypes of PyTorch's samples")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transposed", type=int, default=0, help="so many transposed convolutions first")
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program polyphase of the same build")
    asked = parser.parse_args()
    converters = json.loads(subprocess.run([asked.program, "converters", "--json"], capture_output=True, check=True).stdout)["converters"]
    names = {entry["name"] for entry in converters}
    table = Table.read(PAGE.read_text()) if PAGE.exists() and not asked.fresh else Table.empty()
    for gone in set(table.right) - names:
        del table.right[gone]
    missing = {name for name in names if not table.right[name] and not table.refused[name]}
    if not asked.new:
        table.seeds = tuple(sorted({*table.seeds, asked.seed}))
    end, wrong = time.monotonic() + asked.seconds, []
    for first in range(0, asked.transposed, 200):
        if time.monotonic() < end:
            wrong += add_transposed(table, asked.seed * 100 + first // 200, min(200, asked.transposed - first))
            PAGE.write_text(table.text())
    for group in planned(converters, random.Random(asked.seed), missing if asked.new else set() if asked.samples else None, 0 if asked.new else asked.samples or 1.0):
        if time.monotonic() > end:
            break
        by_use = {id(each.use): each for each in group}
        for outcome in batches.run([each.use for each in group]):
            each = by_use[id(outcome.use)]
            wrong.append(table.note(each.name, overloads.dtype_of(each.use), each.way, outcome))
        PAGE.write_text(table.text())
    wrong = [reason for reason in wrong if reason]
    print("\n".join(wrong[:40]), f"{table.calls} calls, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
