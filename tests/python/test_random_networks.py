"""Random networks that upsample, from both exporters, static and dynamic: PyTorch's shapes, and its numbers to FP64.

The bound: RMS error against FP64 PyTorch at most thrice that of FP32 elsewhere (ONNX Runtime on the same file, PyTorch itself), or at
most 6e-7 of the output's RMS. It is wider than that of the families, for some of these networks give but a few numbers: they are here to
find what is wrong, not what is rounded. No step may run an operator's reference loops, and one thread gives the bits of two.
A failing network reproduces by its name: pytest tests/python/test_random_networks.py --network 17-dynamo-dynamic
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import io
import json
import multiprocessing
import os
import pathlib
import random
import tempfile
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import Program, wants_full
from export import EXPORTERS, export_onnx
from networks import Family
from random_networks import RandomNetwork

FULL_COUNT = 300
SLICE_SECONDS = 12
FORMS = [(exporter, dynamic) for exporter in EXPORTERS for dynamic in (False, True)]


def name_of(seed: int, exporter: str, dynamic: bool) -> str:
    return f"{seed}-{exporter}-{'dynamic' if dynamic else 'static'}"


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values.astype(np.float64))))) if values.size else 0.0


def other_example(network: RandomNetwork, seed: int) -> torch.Tensor | None:
    """An input of other sizes that PyTorch takes."""
    chosen = random.Random(seed)
    for _ in range(8):
        sizes = [size + chosen.choice([0, 1, 2, 3, 4, 8]) for size in network.example.shape[2:]]
        other = torch.randn(network.example.shape[0] + chosen.randint(0, 2), network.example.shape[1], *sizes)
        try:
            network(other)
            return other
        except (RuntimeError, ValueError):
            continue
    return None


class Unexportable(Exception):
    pass


def export(network: RandomNetwork, path, exporter: str, dynamic: bool):
    axes = {0: "N"} | {axis + 2: f"S{axis}" for axis in range(network.rank)}
    family = Family(network, {"x": network.example}, {"x": axes}, {})
    try:
        return export_onnx(family, path, exporter, dynamic)
    except Exception as problem:  # whatever PyTorch cannot export is not ours to judge
        raise Unexportable(f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem).strip() else ''}") from problem


def run_elsewhere(model, x: torch.Tensor) -> np.ndarray | None:
    """ONNX Runtime's answer; None where it refuses the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": x.numpy()})[0]
    except Exception:  # its own exceptions have no common base
        return None


def fixed_sizes(model, example: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the exporter fixed a size, of the input or in between (a pixel_unshuffle to one image), so that the model no longer takes the other input."""
    axes = onnx.load(model, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    if any(axis.HasField("dim_value") and axis.dim_value != size for axis, size in zip(axes, other.shape)):
        return True
    return run_elsewhere(model, other) is None and run_elsewhere(model, example) is not None


def check_numbers(polyphase, engine, model, seed: int, x: torch.Tensor, folder) -> None:
    with torch.no_grad():
        right = RandomNetwork(seed).double()(x.double()).numpy()
        theirs = [RandomNetwork(seed)(x).numpy()]
    ort = run_elsewhere(model, x)
    ours = polyphase.run_arrays(engine, {"x": x.numpy()}, folder, "--threads", 1)["out"]
    if ort is not None and (ort.shape != right.shape or rms(ort - right) > 1e-2 * rms(right)):
        # ONNX Runtime is wrong, or the exporter wrote another network: then its answer is the one there is.
        if ours.shape != right.shape or rms(ours - right) > 1e-2 * rms(right):
            right, theirs = ort, []
        else:
            ort = None
    theirs += [] if ort is None else [ort]
    both = polyphase.run_arrays(engine, {"x": x.numpy()}, folder, "--threads", 2)["out"]
    assert ours.shape == right.shape
    assert ours.tobytes() == both.tobytes(), "two threads give other bits than one"
    scale, error, peer = rms(right), rms(ours - right), max(rms(other - right) for other in theirs)
    bound = max(3 * peer, (1e-5 if right is ort else 6e-7) * scale)
    assert error <= bound, f"RMS error {error:.3e} of {scale:.3e}; elsewhere it is {peer:.3e}"


def check_network(polyphase, folder, seed: int, exporter: str, dynamic: bool) -> None:
    network = RandomNetwork(seed)
    print(network.text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = export(network, folder / "model.onnx", exporter, dynamic)
    polyphase("compile", model, "-o", folder / "model.ppe")
    steps = json.loads(polyphase("inspect", folder / "model.ppe", "--json").stdout)["steps"]
    slow = [f"{step['node']} ({step['operation']})" for step in steps if step["reference"]]
    assert not slow, f"these steps run reference loops: {slow}"
    check_numbers(polyphase, folder / "model.ppe", model, seed, network.example, folder)
    other = other_example(network, seed) if dynamic else None
    if other is not None and not fixed_sizes(model, network.example, other):
        check_numbers(polyphase, folder / "model.ppe", model, seed, other, folder)


def try_network(program, deadline: float | None, seed: int, exporter: str, dynamic: bool) -> tuple[str, str]:
    """What came of it, in a process of its own: done, unexportable, late or failed, and in what words."""
    if deadline is not None and time.time() > deadline:
        return "late", ""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        try:
            check_network(Program(program), pathlib.Path(folder), seed, exporter, dynamic)
            return "done", ""
        except Unexportable as problem:
            return "unexportable", str(problem)
        except Exception as problem:  # the others shall say what they have to say
            return "failed", f"--network {name_of(seed, exporter, dynamic)}: {type(problem).__name__}: {str(problem)[:1500]}"


def test_random_networks(polyphase, tmp_path, slice_seed, request, capsys):
    """Networks until the time is up, with --full a number of them in all forms, or those that --network names."""
    for seed, exporter, form in [name.split("-") for name in request.config.getoption("--network")]:
        check_network(polyphase, tmp_path, int(seed), exporter, form == "dynamic")
    if request.config.getoption("--network"):
        return
    full = wants_full(request.config)
    deadline = None if full else time.time() + SLICE_SECONDS
    first = slice_seed * 100_000
    # The slice takes one form of each: PyTorch's new exporter needs seconds.
    tasks = [(seed, *form) for seed in range(first, first + FULL_COUNT) for form in (FORMS if full else [FORMS[(0, 2, 3, 1, 2, 3)[seed % 6]]])]
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(functools.partial(try_network, polyphase.path, deadline), *zip(*tasks)))
    count = collections.Counter(outcome for outcome, _ in results)
    with capsys.disabled():
        print(f"\n{count['done']} random networks from seed {first} (--slice-seed {slice_seed}), "
              f"{count['unexportable']} that PyTorch could not export")
    failed = [words for outcome, words in results if outcome == "failed"]
    if failed:
        pytest.fail(f"{len(failed)} networks:\n" + "\n".join(failed), pytrace=False)
    assert count["done"] >= 5
