"""docs/performance.md, its pictures and the table of docs/guides/upsampling.md, out of the reports in docs/measured.

    .venv/bin/python bench/performance_page.py [REPORT.json…]     takes these reports in first (bench … --json), by what they measured, on what and with how many threads

The pages say nothing that was not measured: words about how the numbers came to be stand here, every number comes from a report.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import sys

import compiling
import padding
from measure import Result, geometric_mean, least_memory_peer
from work import computed

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEASURED, PAGE, GUIDE, PICTURES = ROOT / "docs/measured", ROOT / "docs/performance.md", ROOT / "docs/guides/upsampling.md", ROOT / "docs/images/performance"
MARK = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)
TITLES = {"layers": "Transposed convolutions of deployed networks", "random": "Drawn geometries", "networks": "Whole networks", "packages": "Networks of public packages", "papers": "Networks of published papers", "memory": "Memory of whole networks", "compiling": "Compiling and loading", "padding": "Padding and crops", "upsampling": "Ways to double an image's sides"}
WORDS = {
    "layers": "The suite: layers of GANs, U-Nets, super-resolution, vocoders, codecs and heads (`bench/layers.json`), batch 1, channels-first in and out for every system but the\n"
              "one whose name ends in `last`, which is given channels-last tensors.",
    "random": "Drawn by a seed from the same families (`bench/geometries.py`), so that nothing can be tuned to a list.",
    "networks": "At the sizes at which they are used (`bench/nets.py`), exported by PyTorch. `inductor` is `torch.compile` with frozen weights,\n"
                "which gets three of the networks wrong (`docs/cases/batch_norm_inductor.md`).",
    "packages": "Networks of torchvision, segmentation-models, MONAI, diffusers and transformers at working sizes (`bench/package_nets.py`), exported by PyTorch: what a user brings.",
    "papers": "Restoration, segmentation, generators of images and sound, written down from their papers (`bench/paper_nets.py`), exported by PyTorch: what users bring that no package has.",
    "memory": "The most memory that a fresh process has held (`VmHWM`) which reads the network from files and runs it, Python and NumPy included; in brackets what it holds when the\n"
              "system is imported and has nothing to do. Every system is given the form in which it needs least: Polyphase its engine file, which is mapped; ONNX Runtime the ONNX file or\n"
              "its optimised model in its own format; OpenVINO the ONNX file or its cache of compiled models; PyTorch the module.",
    "compiling": "Networks of some 100 M parameters (`bench/compiling.py`), from an ONNX file to an engine file, `polyphase.compile(model, engine_file=…)`, and from there to a session; files in the\n"
                 "page cache, each time a process of its own. Copying is reading the model and writing as many bytes as the engine has through one small buffer, flushed to the disk as engines\n"
                 "are. What passed includes the disk and what else the machine does.",
    "padding": "Time over the uncropped layer's at equal output size: the input is longer or shorter by whole strides. `padding` crops both sides, `asymmetric` one,\n"
               "`beyond d(k-1)` more than a kernel's reach; `negative` appends outputs that no tap reaches, as output padding does.",
    "upsampling": "Equal input, equal output: `docs/guides/upsampling.md` says when to choose which.",
}

ALLOWED = ("Precision auto lets a system round what it multiplies to bf16: ours by `precision=\"auto\"`, which rounds what it has filtered as well or filters four outputs at once in FP32, PyTorch by autocast, OpenVINO by its hint. Results may be off by 2e-2\n"
           "of their L2 norm, all systems alike.")


def kind(report: dict) -> str:
    return "memory" if report["settings"]["memory"] else report["settings"]["what"]


def key(report: dict) -> str:
    settings = report["settings"]
    return "_".join([settings["what"], *(["memory"] if settings["memory"] else []), report["machine"]["cluster"], settings["dtype"], *(["auto"] if settings.get("precision") == "auto" else []), f"{settings['threads']}t", *([settings["isa"]] if settings["isa"] != "native" else [])])


def reports() -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(MEASURED.glob("*.json"))}


def provenance(report: dict) -> str:
    settings, machine = report["settings"], report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    drawn = ("seed", "count") if settings["what"] in ("random", "padding") else ()
    words = {name: settings[name] for name in ("filter", *drawn, "threads", "dtype", "precision", "isa", "seconds", "rounds") if settings.get(name, "") not in ("", "native", "model")}
    given = " ".join([*(["--suite"] if settings["suite"] else []), *(f"--{name} {value}" for name, value in words.items()), *(f"--{name}" for name in ("memory", "processor-time") if settings[name.replace("-", "_")])])
    times = "processor time of the one thread" if settings["processor_time"] else "wall time"
    return f"{machine['name']} ({machine['cluster']}), {report['date'][:10]}, {versions}; medians of {times}. `bench {settings['what']} {given}`"


def milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def ratio_summary(report: dict) -> str:
    ratios = sorted(row["ratio"] for row in report["rows"] if row["ratio"])
    tenth = ratios[: max(1, len(ratios) // 10)]
    text = (f"Best peer's time over ours: geometric mean **{geometric_mean(ratios):.2f}**, least {ratios[0]:.2f}, worst tenth up to {tenth[-1]:.2f}; "
            f"{sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} at 1 or better.")
    peers = [peer for peer in report["rows"][0]["results"] if peer != "polyphase"]
    each = []
    for peer in peers:
        found = [row["results"][peer]["ms"] / row["results"]["polyphase"]["ms"] for row in report["rows"] if row["results"][peer]["ms"] and row["results"]["polyphase"]["ms"]]
        if found:
            each.append(f"{peer} {geometric_mean(found):.2f} ({len(found)})")
    text += f" Each alone: {', '.join(each)}."
    rows = [row for row in report["rows"] if row["flops"] >= 2e8 and row["bound"] == "compute" and row["ratio"]]
    if rows:
        large = [row["flops"] / report["roof"]["flops"] / (row["results"]["polyphase"]["ms"] * 1e-3) for row in rows]
        best = geometric_mean([share / row["ratio"] for share, row in zip(large, rows)])
        text += (f" Of the FMA peak ({report['roof']['flops'] / 1e9:.0f} GFLOP/s, a loop on registers alone), {len(large)} rows of 0.2 GFLOP or more: geometric mean "
                 f"{100 * geometric_mean(large):.0f} %, least {100 * min(large):.0f} %; the best peers {100 * best:.0f} %")
        if report["settings"]["dtype"] == "fp32":
            text += f", so that a system which computes every product cannot be more than {1 / best:.2f} times as fast on these rows. Above the peak is Winograd's filtering, which computes fewer."
        else:
            text += ". The peak is that of FP32."
    return text


def ratio_table(report: dict) -> list[str]:
    peers = list(report["rows"][0]["results"])
    counted = any(row["flops"] for row in report["rows"])
    lines = ["| | " + ("GFLOP | " if counted else "") + " | ".join(f"{peer} ms" for peer in peers) + " | best peer / ours |" + (" of peak |" if counted else ""),
             "|---|" + "---:|" * (len(peers) + 1 + 2 * counted)]
    for row in report["rows"]:
        ours = row["results"]["polyphase"]["ms"]
        cells = [row["name"], *([f"{row['flops'] / 1e9:.3f}"] if counted else []), *(milliseconds(row["results"][peer]["ms"]) for peer in peers), f"{row['ratio']:.2f}" if row["ratio"] else "–"]
        if counted:
            cells.append(f"{100 * row['flops'] / report['roof']['flops'] / (ours * 1e-3):.0f} %" if ours else "–")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def memory_summary(report: dict) -> str:
    ratios = sorted(ratio for row in report["rows"] if (ratio := least_memory(row)[1]))
    peers = [peer for peer in report["rows"][0]["results"] if peer != "polyphase"]
    each = [f"{peer} {geometric_mean([row['results'][peer]['peak_bytes'] / row['results']['polyphase']['peak_bytes'] for row in report['rows']]):.2f}" for peer in peers]
    return (f"The least of the peers' peaks over ours: geometric mean **{geometric_mean(ratios):.2f}**, least {ratios[0]:.2f}; {sum(ratio > 1 for ratio in ratios)} of {len(ratios)} above 1. "
            f"Each alone: {', '.join(each)}.")


def least_memory(row: dict) -> tuple[str | None, float | None]:
    return least_memory_peer({peer: Result(**result) for peer, result in row["results"].items()})


def memory_table(report: dict) -> list[str]:
    peers = list(report["rows"][0]["results"])
    lines = ["| | " + " | ".join(f"{peer} MiB" for peer in peers) + " | least peer / ours |", "|---|" + "---:|" * (len(peers) + 1)]
    for row in report["rows"]:
        cells = [f"{result['peak_bytes'] / 2**20:.0f} ({result['import_bytes'] / 2**20:.0f})" if result["peak_bytes"] else "–" for result in row["results"].values()]
        least, ratio = least_memory(row)
        lines.append(f"| {row['name']} | " + " | ".join(cells) + f" | {ratio:.2f} ({least}) |")
    return lines


def compiling_table(report: dict) -> list[str]:
    lines = ["| | parameters | model MB | engine MB | compile: processor s | passed s | peak MiB | copying: processor s | passed s | load: processor ms | GB/s |", "|---|" + "---:|" * 10]
    for row in report["rows"]:
        compiled, copied, loaded = row["compile"], row["copy"], row["load"]
        lines.append(f"| {row['name']} | {row['parameters'] / 1e6:.0f} M | {row['model_bytes'] / 1e6:.0f} | {row['engine_bytes'] / 1e6:.0f} | {compiled['processor']:.2f} | {compiled['wall']:.2f} "
                     f"| {compiled['peak_bytes'] / 2**20:.0f} | {copied['processor']:.2f} | {copied['wall']:.2f} | {1e3 * loaded['processor']:.0f} | {row['engine_bytes'] / loaded['processor'] / 1e9:.1f} |")
    return lines


def padding_table(report: dict) -> list[str]:
    names = list(dict.fromkeys(name for row in report["rows"] for name in row["ms"] if name != "none"))
    lines = ["| layer | uncropped ms | " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) + 1)]
    for row in report["rows"]:
        lines.append(f"| {row['name']} | {milliseconds(row['ms']['none'])} | " + " | ".join(f"{row['ratios'][name]:.2f}" if name in row["ratios"] else "–" for name in names) + " |")
    return lines


def pictures_of(name: str, report: dict) -> list[str]:
    drawn = {"layers": ("ratios", "roofline"), "random": ("ratios", "roofline"), "networks": ("ratios",), "packages": ("ratios",), "papers": ("ratios",), "memory": (), "compiling": (), "padding": ("",), "upsampling": ("",)}[kind(report)]
    return [f"{name}_{what}" if what else name for what in drawn]


def section(name: str, report: dict) -> list[str]:
    what, threads = kind(report), report["settings"]["threads"]
    title = f"{TITLES[what]}: {report['machine']['cluster']}, {computed(report['settings'])}"
    if what != "compiling":  # which takes the threads that there are
        title += f", {threads} thread{'s' if threads > 1 else ''}"
    tables = {"padding": lambda: (f"{padding.summary(report['rows'])}.", padding_table(report)), "memory": lambda: (memory_summary(report), memory_table(report)),
              "compiling": lambda: (f"{compiling.summary(report['rows'])}.", compiling_table(report))}
    summary, table = tables[what]() if what in tables else (ratio_summary(report), ratio_table(report))
    shown = [f"![{title}](images/performance/{picture}.svg)" for picture in pictures_of(name, report)]
    allowed = [ALLOWED] if report["settings"].get("precision") == "auto" else []
    return [f"## {title}", "", WORDS[what], *allowed, "", summary, "", *shown, *([""] if shown else []), "<details><summary>Every row</summary>", "", *table, "", "</details>", "", f"Measured: {provenance(report)}", ""]


def page(found: dict[str, dict]) -> str:
    order = list(TITLES)
    names = sorted(found, key=lambda name: (order.index(kind(found[name])), name))
    head = ["# How fast it is", "", "<!-- Written by bench/performance_page.py out of docs/measured. -->", "",
            "Polyphase beside every system that was installed, in one run: each result is checked against FP64 before it is timed, systems take turns, each in a process of its own.",
            "Ratios are the best peer's time over ours, row by row, so the peer that they are held against is better than any one system. Machines and days differ by more than",
            "most improvements: compare within a table, and measure your own (`make bench`; CONTRIBUTING.md, \"Measure\"). What a layer is bound by is in the rooflines.", ""]
    return "\n".join(head + [line for name in names for line in section(name, found[name])]).rstrip() + "\n"


def guide_table(report: dict) -> str:
    lines = ["| | form | GFLOP as written | polyphase ms | best peer ms |", "|---|---|---:|---:|---:|"]
    last = ""
    for row in report["rows"]:
        place, form = row["name"].split(": ")
        best = row["results"][row["best_peer"]]["ms"] if row["best_peer"] else None
        lines.append(f"| {place if place != last else ''} | {form} | {row['flops'] / 1e9:.2f} | {milliseconds(row['results']['polyphase']['ms'])} | {milliseconds(best)} ({row['best_peer']}) |")
        last = place
    return "\n".join([*lines, "", f"Measured: {provenance(report)}", ""])


def guide(text: str, found: dict[str, dict]) -> str:
    report = next(report for name, report in found.items() if name.startswith("upsampling"))
    return MARK.sub(lambda _: guide_table(report), text)


def take_in(path: pathlib.Path) -> None:
    import plots

    report = json.loads(path.read_text())
    name = key(report)
    MEASURED.mkdir(parents=True, exist_ok=True)
    (MEASURED / f"{name}.json").write_text(json.dumps(report, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
    if not pictures_of(name, report):
        return
    drawn = PICTURES / "new"
    plots.draw(report, drawn)
    for picture in drawn.glob("*.svg"):
        kind = picture.stem.removeprefix(report["settings"]["what"])
        picture.replace(PICTURES / f"{name}{kind}.svg")
    shutil.rmtree(drawn)


def main() -> None:
    for path in sys.argv[1:]:
        take_in(pathlib.Path(path))
    found = reports()
    PAGE.write_text(page(found))
    if GUIDE.exists():
        GUIDE.write_text(guide(GUIDE.read_text(), found))


if __name__ == "__main__":
    main()
