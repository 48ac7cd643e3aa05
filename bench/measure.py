"""Side by side: every system's result is checked against FP64 first, then rounds alternate between them."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
from work import Unable, Work
from worker import SETTLE_SECONDS, Worker, timed

# Of the relative RMS error: what a system may be off and still be timed. BF16 and FP16 results are rounded once at the end at least.
TOLERANCE = {"fp32": 2e-5, "fp16": 4e-3, "bf16": 2e-2}
OURS, TUNED = "polyphase", "tuned"  # the same program with measured kernels is no peer


@dataclasses.dataclass
class Result:
    """One system on one work."""

    ms: float | None = None  # the median of the rounds' medians
    spread: float = 0.0  # (largest - smallest) / median over the rounds
    error: float | None = None  # relative RMS against FP64
    why_not: str = ""
    peak_bytes: int = 0
    import_bytes: int = 0  # of it, what the system takes before it has anything to do


def relative_error(found: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    if [one.shape for one in found] != [one.shape for one in want]:
        return float("inf")
    worst = 0.0
    for got, right in zip(found, want, strict=True):
        size = float(np.linalg.norm(right.astype(np.float64)))
        off = float(np.linalg.norm(got.astype(np.float64) - right))
        if not np.isfinite(off):
            return float("inf")
        worst = max(worst, off / size if size else off)
    return worst


def measure(work: Work, want: Sequence[np.ndarray], workers: dict[str, Worker], seconds: float, rounds: int, check: Callable[[str, Sequence[np.ndarray]], str] | None = None,
            memory: bool = False, processor: bool = False) -> dict[str, Result]:
    """`want`: the outputs in FP64. `check(peer, outputs)` may say what else is wrong with a result."""
    results = {peer: Result() for peer in workers}
    imported = {peer: import_bytes(worker) for peer, worker in workers.items()} if memory else {}
    able: list[str] = []
    for peer, worker in workers.items():
        result = results[peer]
        try:
            found = least_memory(worker, work) if memory else worker.load(work)
            result.error = relative_error(found, want)
            wrong = f"wrong: relative error {result.error:.1e}" if result.error > TOLERANCE[work.narrowest] else check(peer, found) if check else ""
            if wrong:
                raise Unable(wrong)
            able.append(peer)
        except Unable as error:
            result.why_not = str(error)
    medians: dict[str, list[float]] = {peer: [] for peer in able}
    for round_ in range(rounds):
        for peer in able if round_ % 2 == 0 else reversed(able):
            try:
                times = workers[peer].time(seconds, 3, processor)
                medians[peer].append(statistics.median(times))
            except Unable as error:
                results[peer].why_not = str(error)
    for peer in able:
        result, found = results[peer], medians[peer]
        if found and not result.why_not:
            result.ms = statistics.median(found) * 1e3
            result.spread = (max(found) - min(found)) / statistics.median(found)
            result.peak_bytes = workers[peer].peak_bytes()
            result.import_bytes = imported[peer] if memory else 0
    return results


def alternating(runs: dict[str, Callable[[], object]], seconds: float, rounds: int, processor: bool) -> dict[str, float]:
    """Milliseconds of each, within this process: medians of rounds, each `seconds` of one after the other."""
    time.sleep(SETTLE_SECONDS)  # PyTorch's, which have just computed what is right, would count as this process's
    medians: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(rounds):
        for name in runs if round_ % 2 == 0 else reversed(runs):
            medians[name].append(statistics.median(timed(runs[name], seconds, 3, processor)))
    return {name: statistics.median(found) * 1e3 for name, found in medians.items()}


def import_bytes(worker: Worker) -> int:
    try:
        worker.restart()
        return worker.import_bytes()
    except Unable:
        return 0  # loading will say why


def least_memory(worker: Worker, work: Work) -> Sequence[np.ndarray]:
    """Loads the work into a fresh process, in the form in which the system needs least."""
    forms = worker.forms(work)
    peaks = []
    for form in forms if len(forms) > 1 else []:
        worker.restart()
        worker.load(form)
        peaks.append(worker.peak_bytes())
    worker.restart()
    return worker.load(forms[peaks.index(min(peaks))] if peaks else forms[0])


def best_peer(results: dict[str, Result]) -> str | None:
    timed = {peer: result.ms for peer, result in results.items() if peer not in (OURS, TUNED) and result.ms is not None}
    return min(timed, key=timed.__getitem__) if timed else None


def least_memory_peer(results: dict[str, Result]) -> tuple[str | None, float | None]:
    """The peer with the least peak memory, and that over ours: above 1 we need less."""
    peaks = {peer: result.peak_bytes for peer, result in results.items() if peer not in (OURS, TUNED) and result.peak_bytes}
    least = min(peaks, key=peaks.__getitem__) if peaks else None
    ours = results[OURS].peak_bytes if OURS in results else 0
    return least, peaks[least] / ours if least and ours else None


def loss(results: dict[str, Result]) -> float | None:
    """What our estimates cost: our default engine's time over the tuned one's, less 1."""
    default, tuned = (results[peer].ms if peer in results else None for peer in (OURS, TUNED))
    return default / tuned - 1 if default and tuned else None


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")
