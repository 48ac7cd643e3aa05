"""What models take that are stored in FP16 and BF16, beside the same ones in FP32: ours alone, layers or whole networks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import measure
import suites
from layers import Layer
from work import Unable

DTYPES = ("fp32", "fp16", "bf16")


def measured(layers: Sequence[Layer], filter_: str, threads: int, isa: str, seconds: float, rounds: int, processor: bool) -> Iterator[dict]:
    """A row for each layer and each network whose name holds `filter_`, timed in rounds that alternate between the dtypes."""
    from peers import polyphase_peer  # here, so that reports can be read where it is not built

    for all_items in (lambda dtype: suites.of_layers(layers, dtype), lambda dtype: suites.of_networks("nets", filter_, dtype)):
        for items in zip(*(all_items(dtype) for dtype in DTYPES), strict=True):
            runs = {}
            for dtype, item in zip(DTYPES, items, strict=True):
                try:
                    runner = polyphase_peer.Runner(item.work, threads, isa)
                except Unable as error:  # PyTorch writes some networks in BF16 with weights of FP32
                    if dtype == "fp32":
                        raise SystemExit(f"bench: {item.work.name}: {error}") from error
                    print(f"{item.work.name} in {dtype}: {error}", file=sys.stderr)
                    continue
                if measure.relative_error(runner.outputs(), item.want) > measure.TOLERANCE[dtype]:
                    raise SystemExit(f"bench: {item.work.name} in {dtype}: a wrong result")
                runs[dtype] = runner.run
            ms = measure.alternating(runs, seconds, rounds, processor)
            yield {"name": items[0].work.name, "ms": ms, "ratios": {dtype: one / ms["fp32"] for dtype, one in ms.items()}}


def summary(rows: Sequence[dict]) -> str:
    if not rows:
        return "nothing was measured"
    words = []
    for dtype in DTYPES[1:]:
        ratios = [row["ratios"][dtype] for row in rows if dtype in row["ratios"]]
        if ratios:
            words.append(f"{dtype} geometric mean {measure.geometric_mean(ratios):.2f}, most {max(ratios):.2f}, {sum(ratio <= 1.05 for ratio in ratios)} of {len(ratios)} within 5 % or faster")
    return "Time over that in fp32: " + "; ".join(words)
