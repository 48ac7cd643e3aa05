"""Times whole networks in ONNX Runtime and in `polyphase bench`, side by side, and prints the ratios.

usage: compare_onnxruntime.py POLYPHASE MODEL.onnx... [--threads N] [--rounds 3] [--seconds 0.5] [--shape NAME=1x3x64x64]

Inputs are normally distributed; a symbolic size is taken from --shape. The outputs of both are compared before any time
is taken. Rounds alternate between the two, and each side's figure is its fastest median, so that a busy machine disturbs
both alike.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort


def session(path: str, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def make_inputs(sess: ort.InferenceSession, shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    inputs = {}
    for value in sess.get_inputs():
        shape = shapes.get(value.name, value.shape)
        if not all(isinstance(size, int) for size in shape):
            sys.exit(f"input '{value.name}' has symbolic sizes {shape}; say --shape {value.name}=...")
        if value.type != "tensor(float)":
            sys.exit(f"input '{value.name}' is a {value.type}; this benchmark feeds float tensors")
        inputs[value.name] = rng.standard_normal(shape).astype(np.float32)
    return inputs


def median_ms(sess: ort.InferenceSession, inputs: dict[str, np.ndarray], seconds: float) -> float:
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        started = time.perf_counter()
        sess.run(None, inputs)
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2] * 1e3


def polyphase(program: str, *words: str) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--shape", action="append", default=[])
    args = parser.parse_args()
    shapes = {name: [int(size) for size in sizes.split("x")] for name, sizes in (item.split("=") for item in args.shape)}

    print(f"{'network':<34}{'ORT ms':>10}{'ours ms':>10}{'ratio':>8}")
    ratios = []
    for model in args.models:
        sess = session(model, args.threads)
        inputs = make_inputs(sess, shapes)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(f"{folder}/in.npz", **inputs)
            engine = f"{folder}/net.ppe"
            polyphase(args.program, "compile", model, "-o", engine)
            polyphase(args.program, "run", engine, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz")
            ours = np.load(f"{folder}/out.npz")
            for value, expected in zip(sess.get_outputs(), sess.run(None, inputs)):
                error = np.linalg.norm(ours[value.name] - expected) / max(np.linalg.norm(expected), 1e-30)
                if not error < 1e-4:
                    sys.exit(f"{model}: output '{value.name}' differs by {error:.2e} of its norm")
            theirs_ms, ours_ms = math.inf, math.inf
            given = [word for name, value in inputs.items() for word in ("--shape", f"{name}={'x'.join(map(str, value.shape))}")]
            for _ in range(args.rounds):
                theirs_ms = min(theirs_ms, median_ms(sess, inputs, args.seconds))
                said = polyphase(args.program, "bench", engine, "--threads", str(args.threads), "--json", *given)
                ours_ms = min(ours_ms, json.loads(said)["median_ms"])
        ratios.append(theirs_ms / ours_ms)
        print(f"{pathlib.Path(model).stem:<34}{theirs_ms:>10.2f}{ours_ms:>10.2f}{ratios[-1]:>8.2f}", flush=True)
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, worst {min(ratios):.2f}")


if __name__ == "__main__":
    main()
