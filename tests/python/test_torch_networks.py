"""Whole networks of public packages through PyTorch's door, against FP64 PyTorch: exported to a program, with fixed and with open sizes,
and by torch.compile.

Part of the full run alone: it needs requirements/networks.txt. Run as a program it measures times as well and writes the table docs/models.md.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import inspect
import io
import json
import logging
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np
import onnxruntime
import torch
from conftest import ROOT
from networks import Family
from test_families import rms
from torch_networks import TORCH_NETWORKS

os.environ["HF_HUB_OFFLINE"] = "1"
AUTO = torch.export.Dim.AUTO


class NotExported(Exception):
    """torch.export refuses the module: nothing to compare with."""


def exported(family: Family, inputs: dict[str, torch.Tensor], dynamic: bool) -> torch.export.ExportedProgram:
    shapes = tuple({axis: AUTO for axis in family.dynamic[name]} for name in family.inputs) if dynamic else None
    if dynamic and any(parameter.kind is parameter.VAR_POSITIONAL for parameter in inspect.signature(family.module.forward).parameters.values()):
        shapes = (shapes,)  # all of them are one parameter of forward
    try:
        with warnings.catch_warnings(), torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            return torch.export.export(family.module, tuple(inputs.values()), dynamic_shapes=shapes)
    except Exception as error:  # noqa: BLE001: it fails in many ways, and each is its own
        lines = str(error).strip().splitlines()
        raise NotExported(f"{type(error).__name__}: {lines[0][:150] if lines else ''}") from error


def fixed_axes(program: torch.export.ExportedProgram, family: Family) -> list[str]:
    """What was to be open, and PyTorch has fixed: an axis with one element, or one that is a single element somewhere in the network."""
    shapes = [node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder" and node.name in program.graph_signature.user_inputs]
    return [f"{name}, axis {axis}" for (name, axes), shape in zip(family.dynamic.items(), shapes) for axis in axes if str(shape[axis]).isdigit()]


def program_of(family: Family, dynamic: bool) -> bytes:
    program = exported(family, family.inputs, dynamic)
    if dynamic and fixed_axes(program, family):
        program = exported(family, family.other_inputs, dynamic)
        fixed = fixed_axes(program, family)
        if fixed:
            raise NotExported(f"torch.export fixes {'; '.join(fixed)}")
    written = io.BytesIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.export.save(program, written)
    return written.getvalue()


@dataclasses.dataclass
class Form:
    network: str
    dynamic: bool
    left_out: str = ""
    failure: str = ""
    error: float = 0.0  # of Polyphase, as a share of the result's RMS
    eager: float = 0.0  # of PyTorch in FP32
    reference: list[str] = dataclasses.field(default_factory=list)  # steps on plain loops
    good: bool = False


def as64(value: torch.Tensor) -> torch.Tensor:
    return value.double() if value.is_floating_point() else value


@contextlib.contextmanager
def in_fp64():
    """What a module makes of integers by default, or asks for as float(), is FP64 too: else the reference has the very rounding errors of PyTorch in FP32."""
    usual = torch.Tensor.float
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = usual
        torch.set_default_dtype(torch.float32)


DRAWS = 25
MOST_BY_LUCK = 10  # times eager's error on one input, whatever the medians say


def errors(inputs: tuple[torch.Tensor, ...], ours, theirs, true) -> tuple[float, float]:
    """How far `ours` and `theirs` are from `true`, as shares of its RMS. Where ours is past the bound, the medians over inputs with their
    elements in other orders: gates that saturate enlarge a few roundings by orders of magnitude (LR-ASPP as made: some ten of a layer's 480 are
    not saturated), and one input says then which of two programs was lucky (0.25 to 5 times the other's error), not which is right.
    The one past what luck does, if there is any, stands for all."""
    def shares(case: tuple[torch.Tensor, ...]) -> tuple[float, float]:
        found, eager, right = ours(case), theirs(case), true(case)
        if found.shape != right.shape:
            raise ValueError(f"the shape is {found.shape}, not {right.shape}")
        return float(rms(found - right) / rms(right)), float(rms(eager - right) / rms(right))

    first = shares(inputs)
    if good(*first) or not np.isfinite(first[0]):
        return first
    orders = torch.Generator().manual_seed(1)

    def shuffled(value: torch.Tensor) -> torch.Tensor:
        return value.flatten()[torch.randperm(value.numel(), generator=orders)].reshape(value.shape) if value.is_floating_point() else value

    drawn = [first, *(shares(tuple(map(shuffled, inputs))) for _ in range(DRAWS))]
    unlucky = [(error, eager) for error, eager in drawn if not error <= MOST_BY_LUCK * eager]
    error, eager = unlucky[0] if unlucky else np.median(drawn, axis=0)
    return float(error), float(eager)


def good(error: float, eager: float) -> bool:
    return bool(np.isfinite(error) and error <= max(2 * eager, 3e-7))


def in_64(name: str, module: torch.nn.Module):
    """The network in FP64. It is built anew (weight_norm refuses a deep copy), and given the module's weights: not every builder is seeded."""
    module64 = TORCH_NETWORKS[name]().module
    module64.load_state_dict(module.state_dict())
    module64.double()

    def call(inputs: tuple[torch.Tensor, ...]) -> np.ndarray:
        with torch.no_grad(), in_fp64():
            return module64(*map(as64, inputs)).numpy()
    return call


def prepare() -> None:
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)


def run_form(name: str, dynamic: bool) -> Form:
    prepare()
    import polyphase

    form = Form(name, dynamic)
    try:
        family = TORCH_NETWORKS[name]()
        if dynamic and not any(family.dynamic.values()):
            return dataclasses.replace(form, left_out="takes one size")
        program = program_of(family, dynamic)
        engine = polyphase.compile(program)
        form.reference = [step["node"] for step in engine.info()["steps"] if step["reference"]]

        def run(inputs: tuple[torch.Tensor, ...]) -> np.ndarray:
            out = engine(*[value.numpy() for value in inputs])
            return out[0] if isinstance(out, (list, tuple)) else out

        true = in_64(name, family.module)
        with torch.no_grad():
            for inputs in (family.inputs, family.other_inputs) if dynamic else (family.inputs,):
                error, eager = errors(tuple(inputs.values()), run, lambda case: family.module(*case).numpy(), true)
                form.error, form.eager = max(form.error, error), max(form.eager, eager)
        form.good = good(form.error, form.eager)
        return form
    except NotExported as error:
        return dataclasses.replace(form, left_out=str(error))
    except Exception:  # noqa: BLE001
        return dataclasses.replace(form, failure=traceback.format_exc()[-900:])


@dataclasses.dataclass
class Compiled:
    """torch.compile(network, backend="polyphase")."""

    network: str
    parameters: int = 0
    whole: bool = False
    islands: int = 0
    taken: int = 0  # of so many operators
    operators: int = 0
    reasons: list[str] = dataclasses.field(default_factory=list)  # of graphs that PyTorch runs
    failure: str = ""
    error: float = 0.0
    eager: float = 0.0
    good: bool = False
    times: dict[str, float] = dataclasses.field(default_factory=dict)  # of one call, in seconds, on one thread; by who runs it


def best_time(call, least_s: float = 0.3) -> float:
    call()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < least_s and len(times) < 200):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def run_compiled(name: str, measured: bool = False) -> Compiled:
    prepare()
    import polyphase

    row = Compiled(name)
    try:
        family = TORCH_NETWORKS[name]()
        row.parameters = sum(parameter.numel() for parameter in family.module.parameters())
        inputs = tuple(family.inputs.values())
        with warnings.catch_warnings(), torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            explained = polyphase.explain(family.module, *inputs)
            row.whole, row.islands, row.taken, row.operators = (explained[key] for key in ("whole", "islands", "taken", "operators"))
            row.reasons = [graph["eager"]["reason"] for graph in explained["graphs"] if graph["eager"]]
            torch._dynamo.reset()
            fast = torch.compile(family.module, backend="polyphase", options={"cache": False})
            row.error, row.eager = errors(inputs, lambda case: fast(*case).numpy(), lambda case: family.module(*case).numpy(), in_64(name, family.module))
            row.good = good(row.error, row.eager)
            if measured:
                row.times = {"polyphase": best_time(lambda: fast(*inputs)), "eager": best_time(lambda: family.module(*inputs))}
                row.times |= peers(family, inputs)
    except Exception:  # noqa: BLE001
        row.failure = traceback.format_exc()[-900:]
    return row


def peers(family: Family, inputs: tuple[torch.Tensor, ...]) -> dict[str, float]:
    """One call in torch.compile's own backend and in ONNX Runtime, where they take the network."""
    times = {}
    with contextlib.suppress(Exception):
        torch._dynamo.reset()
        inductor = torch.compile(family.module)
        times["inductor"] = best_time(lambda: inductor(*inputs))
    with contextlib.suppress(Exception), tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "m.onnx")
        torch.onnx.export(family.module, inputs, path, dynamo=True, external_data=False, verbose=False)
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        arrays = {port.name: value.numpy() for port, value in zip(session.get_inputs(), inputs)}
        times["onnxruntime"] = best_time(lambda: session.run(None, arrays))
    return times


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", TORCH_NETWORKS)


# torch.export refuses it: a branch on data.
NOT_EXPORTED = {"transformers_encodec_decoder"}


def test_program_of_a_network(name):
    forms = [run_form(name, dynamic) for dynamic in (False, True)]
    compared = [form for form in forms if not form.left_out]
    assert bool(compared) == (name not in NOT_EXPORTED), f"no form could be exported: {forms}"
    for form in compared:
        assert not form.failure, form.failure
        assert form.good, f"error {form.error:.2e} of the RMS, PyTorch's own in FP32 {form.eager:.2e}: {form}"
        assert not form.reference, f"these steps run plain loops: {form}"


def test_torch_compile_of_a_network(name):
    row = run_compiled(name)
    assert not row.failure, row.failure
    assert row.good, f"error {row.error:.2e} of the RMS, PyTorch's own in FP32 {row.eager:.2e}"
    assert row.whole == (name not in IN_ISLANDS), f"{row.islands} islands take {row.taken} of {row.operators} operators; {row.reasons}"


# What torch.compile does not hand over whole: why.
NO_CALLS_INTO = "Dynamo ends a graph at functions of the package that it is told to skip"
IN_ISLANDS = {
    "monai_basic_unet": NO_CALLS_INTO,
    "monai_basic_unet_plus_plus": NO_CALLS_INTO,
    "monai_flexible_unet": NO_CALLS_INTO,
    "monai_swin_unetr": "what follows from sizes alone is computed by PyTorch",
    "transformers_clipseg": "Dynamo ends a graph at a context manager of the package",
    "transformers_clipseg_decoder": "Dynamo ends a graph at a message to the log",
    "transformers_dpt": "Dynamo ends a graph at a context manager of the package",
    "transformers_encodec_decoder": "branches on data, where Dynamo ends a graph",
    "transformers_mimi_decoder": "branches on data, where Dynamo ends a graph",
    "transformers_segformer": "Dynamo ends a graph at a context manager of the package",
}


def test_most_networks_are_whole():
    assert set(IN_ISLANDS) <= set(TORCH_NETWORKS)
    assert len(TORCH_NETWORKS) >= 40 and len(TORCH_NETWORKS) - len(IN_ISLANDS) >= 36


def cell(form: Form) -> str:
    if form.left_out:
        return "–" if form.left_out == "takes one size" else f"PyTorch cannot export it: {form.left_out}"
    return f"{form.error:.1e} / {form.eager:.1e}"


def summary(compiled: dict[str, Compiled]) -> str:
    whole = sum(row.whole for row in compiled.values())
    means = []
    for who, name in (("eager", "eager PyTorch"), ("inductor", "Inductor"), ("onnxruntime", "ONNX Runtime")):
        ratios = [row.times[who] / row.times["polyphase"] for row in compiled.values() if who in row.times and "polyphase" in row.times]
        means.append(f"{np.exp(np.mean(np.log(ratios))):.2g}× {name}'s ({len(ratios)} networks)" if ratios else f"{name}: –")
    return f"{whole} of {len(compiled)} networks are taken whole. Speed as a geometric mean: {', '.join(means)}."


def table(forms: dict[tuple[str, bool], Form], compiled: dict[str, Compiled]) -> str:
    out = ["# Networks of PyTorch", "",
           "Networks of public packages with random weights, at small sizes. **Program**: written by `torch.export`, compiled to an engine without PyTorch; RMS error",
           "against FP64 as a share of the result's RMS, that of PyTorch in FP32 beside it; with open sizes one engine runs two sizes. **torch.compile**: `backend=\"polyphase\"`;",
           "whole, or how many islands take how many of the operators, PyTorch the rest. **Times**: how many times as long as Polyphase (by `torch.compile`) one call takes in eager",
           "PyTorch, in Inductor and in ONNX Runtime, one thread each, in one run; – where that one does not take the network. `tests/python/test_torch_networks.py` makes this table.", "",
           summary(compiled), "",
           "| network | parameters | program | program, open sizes | torch.compile | error | eager | Inductor | ONNX Runtime |", "|---|---|---|---|---|---|---|---|---|"]
    for name in sorted(compiled):
        row = compiled[name]
        place = "whole" if row.whole else f"{row.islands} islands, {row.taken} of {row.operators}"
        ratios = [f"{row.times[who] / row.times['polyphase']:.2g}×" if who in row.times and "polyphase" in row.times else "–" for who in ("eager", "inductor", "onnxruntime")]
        out.append(f"| {name} | {row.parameters:,} | {cell(forms[name, False])} | {cell(forms[name, True])} | {place} | {row.error:.1e} / {row.eager:.1e} | {' | '.join(ratios)} |")
    return "\n".join(out) + "\n"


def is_good(row: Form | Compiled) -> bool:
    return not row.failure and (row.good or bool(getattr(row, "left_out", "")))


def main(names: list[str]) -> int:
    """One process after the other, so that nothing else runs beside what is timed. Rows are kept in build/torch_networks.json:
    without names, those that are not good yet are run, and the page is written once all are."""
    kept_in = ROOT / "build" / "torch_networks.json"
    kept = json.loads(kept_in.read_text()) if kept_in.exists() else {}
    rows = {name: (Form(**static), Form(**dynamic), Compiled(**compiled)) for name, (static, dynamic, compiled) in kept.items()}
    for name in names or [name for name in TORCH_NETWORKS if name not in rows or not all(map(is_good, rows[name]))]:
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            rows[name] = (pool.submit(run_form, name, False).result(), pool.submit(run_form, name, True).result(), pool.submit(run_compiled, name, True).result())
        for row in rows[name]:
            if not is_good(row):
                print(json.dumps(dataclasses.asdict(row)), file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(f"{len(rows)} of {len(TORCH_NETWORKS)}: {name}", file=sys.stderr, flush=True)
        kept_in.write_text(json.dumps({name: [dataclasses.asdict(row) for row in three] for name, three in rows.items()}))
    forms = {(name, dynamic): rows[name][dynamic] for name in rows for dynamic in (False, True)}
    page = table(forms, {name: three[2] for name, three in rows.items()})
    if set(rows) == set(TORCH_NETWORKS) and all(is_good(row) for three in rows.values() for row in three):
        (ROOT / "docs" / "models.md").write_text(page, encoding="utf-8")
        return 0
    print(page)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
