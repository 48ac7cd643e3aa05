"""Polyphase beside every other system that is installed: one command, checked results, rounds that alternate.

    bench layers [FILE.json]     transposed convolutions of deployed networks (bench/layers.json; --suite: the 36 of the suite)
    bench random                 transposed convolutions drawn from the families (--seed, --count)
    bench networks               whole networks
    bench packages               networks of public packages (torchvision, segmentation-models, MONAI, diffusers, transformers; after scripts/setup networks)
    bench papers                 networks of published papers (restoration, segmentation, generators of images and sound)
    bench upsampling             the ways to double an image's sides, at equal output
    bench padding                ours alone: what paddings and crops cost at equal output size
    bench halves                 ours alone: what models stored in FP16 and BF16 take beside FP32, layers and networks
    bench compiling              ours alone: compiling and loading networks of 100 M parameters, beside copying as many bytes
    bench model FILE.onnx        yours (--shape NAME=1x3x64x64 for open sizes)
    bench cases [FILE.json]      prints layers as kernels_bench reads them

Every system runs in a process of its own, one at a time. Times are medians in milliseconds; ratio is the best peer's time over ours.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterable

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import geometries  # noqa: E402
import layers  # noqa: E402
from worker import HELD, PEERS, Worker  # noqa: E402


NETWORKS = {"networks": "nets", "packages": "package_nets", "papers": "paper_nets"}  # what is asked for, and the module that has it


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("layers", "random", "networks", "packages", "papers", "upsampling", "padding", "halves", "compiling", "model", "cases"))
    parser.add_argument("file", nargs="?", type=pathlib.Path)
    parser.add_argument("--suite", action="store_true", help="of the layers, those of the suite")
    parser.add_argument("--filter", default="", help="only names that hold this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="how many to draw (default 200; of padding 2 of every family)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZES")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=("fp32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--precision", choices=("model", "auto"), default="model", help="auto: systems that can may compute in bf16 whatever the model stores (ours by precision='auto', PyTorch by autocast, OpenVINO by its hint)")
    parser.add_argument("--isa", choices=tuple(HELD), default="native", help="hold every system to these instructions")
    parser.add_argument("--peers", default=",".join(peer for peer in PEERS if peer != "tuned"), help=f"of {', '.join(PEERS)}; tuned is ours with measured kernels")
    parser.add_argument("--seconds", type=float, default=0.2, help="of each system in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true", help="what each process computed instead of what passed, for one thread on a machine that others use too")
    parser.add_argument("--memory", action="store_true", help="each system's peak memory too: in a fresh process for every row, that reads the model in the form in which the system needs least (ours an engine file)")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plots", type=pathlib.Path, help="a folder for roofline and bars, as SVG and PNG")
    args = parser.parse_args()
    unknown = set(args.peers.split(",")) - set(PEERS)
    if unknown:
        parser.error(f"there is no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if args.processor_time and args.threads != 1:
        parser.error("--processor-time is for one thread: those of some systems compute while they wait")
    args.count = args.count or (2 if args.what == "padding" else 200)
    if args.what == "model" and args.file is None:
        parser.error("model needs the file of one")
    return args


def chosen_layers(args: argparse.Namespace) -> list[layers.Layer]:
    found = geometries.draw(args.seed, args.count) if args.what == "random" else layers.read(args.file or layers.SHIPPED)
    return [layer for layer in found if args.filter in layer.name and (layer.suite or not args.suite)]


def items(args: argparse.Namespace) -> Iterable:
    import suites

    if args.what in NETWORKS:
        return suites.of_networks(NETWORKS[args.what], args.filter, args.dtype)
    if args.what == "upsampling":
        return suites.of_upsampling(args.filter, args.dtype)
    if args.what == "model":
        shapes = {name: [int(size) for size in sizes.split("x")] for name, sizes in (word.split("=") for word in args.shape)}
        return [suites.of_model(args.file, shapes)]
    return suites.of_layers(chosen_layers(args), args.dtype)


def sweep_padding(args: argparse.Namespace) -> int:
    import padding
    import report

    rows = []
    for row in padding.sweep(args.seed, args.count, args.seconds, args.rounds, args.threads, args.processor_time, args.filter):
        rows.append(row)
        print(f"{row['name'][:44]:45}{row['ms']['none']:9.3f} ms  " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in row["ratios"].items() if name != "none"), flush=True)
    print(padding.summary(rows))
    write(args, report.frame(settings_of(args)) | {"rows": rows})
    return 0


def measure_halves(args: argparse.Namespace) -> int:
    import halves
    import report

    rows = []
    for row in halves.measured(chosen_layers(args), args.filter, args.threads, args.isa, args.seconds, args.rounds, args.processor_time):
        rows.append(row)
        print(f"{row['name'][:44]:45}{row['ms']['fp32']:9.3f} ms  " + ", ".join(f"{dtype} {row['ratios'][dtype]:.2f}" for dtype in halves.DTYPES[1:] if dtype in row["ratios"]), flush=True)
    print(halves.summary(rows))
    write(args, report.frame(settings_of(args)) | {"rows": rows})
    return 0


def measure_compiling(args: argparse.Namespace) -> int:
    import compiling
    import report

    rows = []
    for row in compiling.measured(args.filter, args.rounds):
        rows.append(row)
        print(f"{row['name']:8}{row['parameters'] / 1e6:6.0f} M, engine {row['engine_bytes'] / 1e6:.0f} MB; seconds of processor (and passed): "
              + ", ".join(f"{what} {row[what]['processor']:.2f} ({row[what]['wall']:.2f})" for what in compiling.WORK), flush=True)
    print(compiling.summary(rows))
    write(args, report.frame(settings_of(args)) | {"rows": rows})
    return 0


def settings_of(args: argparse.Namespace) -> dict:
    """What was asked for, but not where the answers go: reports are read on other machines."""
    return {name: value.name if isinstance(value, pathlib.Path) else value for name, value in vars(args).items() if name not in ("json", "plots")}


def write(args: argparse.Namespace, found: dict) -> None:
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    if args.plots:
        import plots

        plots.draw(found, args.plots)


def main() -> int:
    args = arguments()
    if args.what == "cases":
        print("\n".join(layer.words() for layer in chosen_layers(args)))
        return 0
    import measure
    import report
    from roof import Roof

    if args.what == "padding":
        return sweep_padding(args)
    if args.what == "halves":
        return measure_halves(args)
    if args.what == "compiling":
        return measure_compiling(args)
    peers = [peer for peer in PEERS if peer in args.peers.split(",") and not (peer == "inductor" and args.what in ("layers", "random", "upsampling"))]
    workers = {peer: Worker(peer, args.threads, args.isa) for peer in peers}
    roof, rows = Roof.measured(args.threads), []
    print(report.heading(peers), flush=True)
    try:
        for item in items(args):
            check = item.check if args.precision == "model" else None
            results = measure.measure(dataclasses.replace(item.work, precision=args.precision), item.want, workers, args.seconds, args.rounds, check, args.memory, args.processor_time)
            rows.append(report.Row.of(item, results, roof))
            print(report.line(rows[-1], peers, roof), flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    print(f"FMA peak {roof.flops / 1e9:.1f} GFLOP/s, memory {roof.bandwidths[-1][1] / 1e9:.1f} GB/s of {args.threads} thread{'s' if args.threads > 1 else ''}")
    print("\n".join([*report.summary(rows, roof), *report.losses(rows), *report.memory(rows, peers), *report.refusals(rows)]))
    write(args, report.as_json(rows, roof, settings_of(args)))
    return 1 if any(row.results["polyphase"].ms is None for row in rows if "polyphase" in row.results) else 0


if __name__ == "__main__":
    sys.exit(main())
