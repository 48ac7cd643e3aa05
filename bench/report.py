"""Tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import platform
from collections.abc import Sequence

import measure
import polyphase
from measure import OURS, Result
from roof import Roof
from suites import Item


@dataclasses.dataclass
class Row:
    name: str
    flops: float
    bytes: float
    results: dict[str, Result]
    roof_seconds: float = 0.0
    bound: str = ""

    @classmethod
    def of(cls, item: Item, results: dict[str, Result], roof: Roof) -> Row:
        known = item.flops > 0
        return cls(item.work.name, item.flops, item.bytes, results, roof.seconds(item.flops, item.bytes) if known else 0.0, roof.bound(item.flops, item.bytes) if known else "")

    @property
    def ours(self) -> float | None:
        return self.results[OURS].ms if OURS in self.results else None

    @property
    def best(self) -> str | None:
        return measure.best_peer(self.results)

    @property
    def ratio(self) -> float | None:
        """The best peer's time over ours: above 1 we are faster."""
        best = self.best
        return self.results[best].ms / self.ours if best and self.ours else None

    def of_peak(self, roof: Roof, peer: str) -> float | None:
        ms = self.results[peer].ms
        return self.flops / roof.flops / (ms * 1e-3) if ms and self.flops else None

    def of_roof(self, peer: str) -> float | None:
        ms = self.results[peer].ms
        return self.roof_seconds / (ms * 1e-3) if ms and self.roof_seconds else None


def heading(peers: Sequence[str]) -> str:
    return f"{'':38}{'GFLOP':>8}" + "".join(f"{peer:>13}" for peer in peers) + f"{'best peer':>13}{'ratio':>7}{'of FMA':>8}{'of roof':>9}  bound"


def line(row: Row, peers: Sequence[str], roof: Roof) -> str:
    cells = "".join(f"{row.results[peer].ms:13.3f}" if row.results[peer].ms is not None else f"{'–':>13}" for peer in peers)
    peak, of_roof = (row.of_peak(roof, OURS), row.of_roof(OURS)) if OURS in row.results else (None, None)
    return (f"{row.name[:37]:38}{row.flops / 1e9:8.3f}{cells}{row.best or '–':>13}" + (f"{row.ratio:7.2f}" if row.ratio else f"{'–':>7}")
            + (f"{100 * peak:7.0f}%" if peak else f"{'–':>8}") + (f"{100 * of_roof:8.0f}%" if of_roof else f"{'–':>9}") + f"  {row.bound}")


def memory(rows: Sequence[Row], peers: Sequence[str]) -> list[str]:
    """Peak memory of the processes, where it was asked for."""
    if not any(result.import_bytes for row in rows for result in row.results.values()):
        return []
    lines = ["peak memory in MiB, of it with nothing to do:", f"{'':38}" + "".join(f"{peer:>18}" for peer in peers) + f"{'least peer':>13}{'ratio':>7}"]
    for row in rows:
        cells = [f"{result.peak_bytes / 2**20:.0f} ({result.import_bytes / 2**20:.0f})" if result.peak_bytes else "–" for result in (row.results[peer] for peer in peers)]
        least, ratio = measure.least_memory_peer(row.results)
        lines.append(f"{row.name[:37]:38}" + "".join(f"{cell:>18}" for cell in cells) + f"{least or '–':>13}" + (f"{ratio:7.2f}" if ratio else f"{'–':>7}"))
    return lines


def refusals(rows: Sequence[Row]) -> list[str]:
    """What systems could not do, each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for peer, result in row.results.items():
            if result.why_not:
                found.setdefault((peer, result.why_not), []).append(row.name)
    return [f"{peer}: {why} ({len(names)}: {', '.join(names[:3])}{', …' if len(names) > 3 else ''})" for (peer, why), names in found.items()]


def losses(rows: Sequence[Row]) -> list[str]:
    found = sorted((loss, row.name) for row in rows if (loss := measure.loss(row.results)) is not None)
    if not found:
        return []
    mean = measure.geometric_mean([1 + loss for loss, _ in found]) - 1
    large = [f"{name} {100 * loss:.0f} %" for loss, name in reversed(found) if loss > 0.1]
    return [f"estimates against measured times: {100 * mean:.1f} % slower in the geometric mean of {len(found)}, at most {100 * found[-1][0]:.0f} %; "
            f"{len(large)} beyond 10 %{': ' if large else ''}{', '.join(large)}"]


def summary(rows: Sequence[Row], roof: Roof) -> list[str]:
    ratios = sorted(row.ratio for row in rows if row.ratio)
    if not ratios:
        return []
    tenth = ratios[: max(1, len(ratios) // 10)]
    lines = [f"against the best peer of each row: geometric mean {measure.geometric_mean(ratios):.2f}, worst {ratios[0]:.2f}, worst tenth up to {tenth[-1]:.2f}, "
             f"{sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} at 1.0 or better"]
    large = [row.of_peak(roof, OURS) for row in rows if row.flops >= 2e8 and row.bound == "compute" and row.ours]
    if large:
        lines.append(f"of the FMA peak, {len(large)} rows of 0.2 GFLOP or more that compute bounds: geometric mean {100 * measure.geometric_mean(large):.0f} %, least {100 * min(large):.0f} %")
    moved = [row.of_roof(OURS) for row in rows if row.bound == "memory" and row.ours]
    if moved:
        lines.append(f"of the memory's rate, {len(moved)} rows that it bounds: geometric mean {100 * measure.geometric_mean(moved):.0f} %, least {100 * min(moved):.0f} %")
    return lines


def versions() -> dict[str, str]:
    out = {"python": platform.python_version()}
    for package in ("torch", "onnxruntime", "openvino"):
        try:
            out[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return out | {"polyphase": polyphase.version}


def frame(settings: dict) -> dict:
    """What every report says of where, when and with what it was made."""
    device = polyphase.devices()[0]
    return {
        "schema": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"name": device["name"], "cluster": device["cluster"], "cores": device["cores"]},
        "versions": versions(),
        "settings": settings,
    }


def as_json(rows: Sequence[Row], roof: Roof, settings: dict) -> dict:
    return frame(settings) | {
        "roof": {"flops": roof.flops, "bandwidths": [list(pair) for pair in roof.bandwidths]},
        "rows": [{"name": row.name, "flops": row.flops, "bytes": row.bytes, "bound": row.bound, "roof_ms": row.roof_seconds * 1e3, "best_peer": row.best, "ratio": row.ratio,
                  "results": {peer: dataclasses.asdict(result) for peer, result in row.results.items()}} for row in rows],
    }
