"""A roofline of the machine with every layer on it, and bars of the ratios. Both are made from the benchmark's JSON."""

from __future__ import annotations

import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from work import computed  # noqa: E402

COLORS = {"polyphase": "#c2410c", "torch": "#7c8a99", "torch_last": "#475569", "inductor": "#94a3b8", "onnxruntime": "#2563eb", "openvino": "#16a34a"}


def caption(report: dict) -> str:
    settings, versions = report["settings"], report["versions"]
    machine = f"{report['machine']['name']}, {report['machine']['cluster']}, {settings['threads']} thread{'s' if settings['threads'] > 1 else ''}, {computed(settings)}"
    return f"{machine}, {report['date'][:10]}\n" + ", ".join(f"{name} {version}" for name, version in versions.items() if name != "python")


def roofline(report: dict, path: pathlib.Path) -> None:
    rows = [row for row in report["rows"] if row["flops"] and row["bytes"]]
    if not rows:
        return
    peak, memory = report["roof"]["flops"], report["roof"]["bandwidths"][-1][1]
    figure, axes = plt.subplots(figsize=(9, 5.5))
    intensities = [row["flops"] / row["bytes"] for row in rows]
    ends = [min(intensities) / 2, max(intensities) * 2, peak / memory]
    line = sorted(ends)
    axes.plot(line, [min(peak, x * memory) / 1e9 for x in line], color="black", linewidth=1.2, label=f"roof: {peak / 1e9:.0f} GFLOP/s, {memory / 1e9:.1f} GB/s")
    for peer in reversed(list(rows[0]["results"])):
        points = [(x, row["flops"] / (row["results"][peer]["ms"] * 1e-3) / 1e9) for x, row in zip(intensities, rows, strict=True) if row["results"][peer]["ms"]]
        if points:
            ours = peer == "polyphase"
            axes.scatter(*zip(*points, strict=True), s=26 if ours else 12, color=COLORS[peer], label=peer, alpha=0.95 if ours else 0.6, linewidths=0)
    axes.set(xscale="log", yscale="log", xlabel="FLOP per byte of input, weights and output", ylabel="GFLOP/s", title=caption(report))
    axes.title.set_fontsize(9)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=8, loc="lower right")
    _save(figure, path)


def bars(report: dict, path: pathlib.Path) -> None:
    rows = sorted((row for row in report["rows"] if row["ratio"]), key=lambda row: row["ratio"])
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.2 * len(rows)))
    axes.barh([row["name"] for row in rows], [row["ratio"] for row in rows], color=[COLORS[row["best_peer"]] for row in rows])
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xlabel="the best peer's time over ours (right of the line: Polyphase is faster)", title=caption(report))
    axes.title.set_fontsize(9)
    axes.tick_params(axis="y", labelsize=7)
    axes.margins(y=0.01)
    met = sorted({row["best_peer"] for row in rows})
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=COLORS[peer]) for peer in met], [f"best peer: {peer}" for peer in met], fontsize=8, loc="lower right")
    _save(figure, path)


def padding(report: dict, path: pathlib.Path) -> None:
    """A line of points for each layer: the time of each crop over the uncropped one's."""
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.3 * len(report["rows"])))
    names = list(dict.fromkeys(name for row in report["rows"] for name in row["ratios"] if name != "none"))
    for name in names:
        points = [(row["ratios"][name], place) for place, row in enumerate(report["rows"]) if name in row["ratios"]]
        axes.scatter(*zip(*points, strict=True), s=22, label=name, alpha=0.8, linewidths=0)
    axes.axvline(1, color="black", linewidth=1)
    axes.axvspan(0.9, 1.1, color="black", alpha=0.06)
    axes.set_yticks(range(len(report["rows"])), [row["name"] for row in report["rows"]], fontsize=7)
    axes.set(xlabel="time at equal output size, over the uncropped layer's", title=caption(report))
    axes.title.set_fontsize(9)
    axes.grid(True, axis="x", alpha=0.2)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, path)


def upsampling(report: dict, path: pathlib.Path) -> None:
    """For each place in a network the times of its forms: ours as bars, the best peer's as marks."""
    places = list(dict.fromkeys(row["name"].split(": ")[0] for row in report["rows"]))
    figure, all_axes = plt.subplots(1, len(places), figsize=(3.2 * len(places), 3.4), squeeze=False)
    for axes, place in zip(all_axes[0], places, strict=True):
        rows = [row for row in report["rows"] if row["name"].startswith(f"{place}: ")]
        forms = [row["name"].split(": ")[1] for row in rows]
        axes.bar(forms, [row["results"]["polyphase"]["ms"] or 0 for row in rows], color=COLORS["polyphase"], label="polyphase")
        best = [(form, row["results"][row["best_peer"]]["ms"]) for form, row in zip(forms, rows, strict=True) if row["best_peer"]]
        if best:
            axes.scatter(*zip(*best, strict=True), color=COLORS["onnxruntime"], s=18, label="best peer", zorder=3)
        axes.set_title(place, fontsize=8)
        axes.tick_params(axis="x", labelsize=7, rotation=70)
        axes.tick_params(axis="y", labelsize=7)
    all_axes[0][0].set_ylabel("ms")
    all_axes[0][0].legend(fontsize=7)
    figure.suptitle(caption(report), fontsize=8)
    _save(figure, path)


def _save(figure, path: pathlib.Path) -> None:
    figure.tight_layout()
    for ending in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=120, metadata={"Date": None} if ending == "svg" else None)
    plt.close(figure)


def draw(report: dict, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    what = report["settings"]["what"]
    if what == "padding":
        return padding(report, folder / "padding")
    if what == "upsampling":
        return upsampling(report, folder / "upsampling")
    roofline(report, folder / f"{what}_roofline")
    bars(report, folder / f"{what}_ratios")
