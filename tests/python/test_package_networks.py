"""Networks of public packages as their users have them, from both exporters, static and dynamic, as test_families.py asks of families.

Part of the full run alone: it needs requirements/networks.txt. Run as a program it writes the table docs/networks.md.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import io
import json
import logging
import multiprocessing
import os
import pathlib
import sys
import tempfile
import traceback
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from conftest import ROOT, Program, find_program
from export import EXPORTERS, export_onnx
from package_networks import PACKAGE_NETWORKS
from test_families import rms

os.environ["HF_HUB_OFFLINE"] = "1"
FORMS = [(exporter, dynamic) for exporter in EXPORTERS for dynamic in (False, True)]


class NotExported(Exception):
    """PyTorch's exporter refuses, or ONNX Runtime does not take what it wrote: nothing to compare with."""


def export(family, path: pathlib.Path, exporter: str, dynamic: bool) -> onnxruntime.InferenceSession:
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            export_onnx(family, path, exporter, dynamic)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session.run(None, {name: value.numpy() for name, value in family.inputs.items()})
        return session
    except Exception as error:  # noqa: BLE001: exporters fail in many ways, and each is theirs
        raise NotExported(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:100] if str(error).strip() else ''}") from error


def run_form(name: str, exporter: str, dynamic: bool) -> dict:
    """What is known of one form: errors as shares of the output's RMS, steps on reference loops, or why it cannot be compared."""
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    polyphase = Program(find_program())
    row = {"network": name, "exporter": exporter, "dynamic": dynamic}
    try:
        family = PACKAGE_NETWORKS[name]()
        if dynamic and not any(family.dynamic.values()):
            return row | {"left_out": "takes one size"}
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            session = export(family, folder / "m.onnx", exporter, dynamic)
            row["operators"] = len({node.op_type for node in onnx.load(folder / "m.onnx").graph.node})
            polyphase("compile", folder / "m.onnx", "-o", folder / "m.ppe")
            steps = json.loads(polyphase("inspect", folder / "m.ppe", "--json").stdout)["steps"]
            row |= {"steps": len(steps), "reference": [step["node"] for step in steps if step["reference"]]}
            module64 = family.module.double()
            row |= {"error": 0.0, "ort": 0.0}
            for inputs in (family.inputs, family.other_inputs) if dynamic else (family.inputs,):
                arrays = {key: value.numpy() for key, value in inputs.items()}
                with torch.no_grad():
                    right = module64(*[value.double() for value in inputs.values()]).numpy()
                try:
                    theirs = session.run(None, arrays)[0]
                except Exception:  # noqa: BLE001: the export fixed what it was told to leave open
                    row["one_size"] = True
                    continue
                ours = polyphase.run_arrays(folder / "m.ppe", arrays, folder)["out"]
                if ours.shape != right.shape:
                    return row | {"failure": f"the shape is {ours.shape}, not {right.shape}"}
                error, ort = rms(ours - right) / rms(right), rms(theirs - right) / rms(right)
                row |= {"error": max(row["error"], error), "ort": max(row["ort"], ort)}
            row["good"] = bool(row["error"] <= max(2 * row["ort"], 3e-7))
            return row
    except NotExported as error:
        return row | {"left_out": str(error)}
    except AssertionError as error:
        return row | {"failure": str(error)[-700:]}
    except Exception:  # noqa: BLE001
        return row | {"failure": traceback.format_exc()[-700:]}


def all_rows(names: list[str]) -> list[dict]:
    jobs = [(name, *form) for name in names for form in FORMS]
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count() or 2, multiprocessing.get_context("spawn")) as pool:
        rows = []
        for future in [pool.submit(run_form, *job) for job in jobs]:
            rows.append(future.result())
            if sys.stderr.isatty() or os.environ.get("VERBOSE"):
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        return rows


def pytest_generate_tests(metafunc):
    metafunc.parametrize("name", PACKAGE_NETWORKS)


def test_package_network(name):
    rows = [run_form(name, *form) for form in FORMS]
    compared = [row for row in rows if "left_out" not in row]
    assert compared, f"no form could be exported: {rows}"
    for row in compared:
        assert "failure" not in row, row["failure"]
        assert row["good"], f"error {row['error']:.2e} of the RMS, ONNX Runtime {row['ort']:.2e}: {row}"
        assert not row["reference"], f"these steps run reference loops: {row}"


def table(rows: list[dict]) -> str:
    out = ["# Networks of public packages", "",
           "Random weights, both of PyTorch's exporters, static and dynamic sizes (two sizes with one engine); the largest RMS error of a form",
           "against FP64 PyTorch as a share of the output's RMS, ONNX Runtime's beside it. No step of a form that is listed runs reference loops.",
           "A form that is missing is one that PyTorch's exporter or ONNX Runtime refuses, or a dynamic one of a network that takes one size.",
           "`tests/python/test_package_networks.py` makes this table and holds it.", "",
           "| network | operators | steps | exporter, sizes: Polyphase / ONNX Runtime |", "|---|---|---|---|"]
    for name in PACKAGE_NETWORKS:
        forms = [row for row in rows if row["network"] == name]
        cells = []
        for row in forms:
            if "left_out" in row:
                continue
            what = f"{row['exporter']}, {'dynamic' if row['dynamic'] else 'static'}"
            mark = f" **{row['failure'].strip().splitlines()[-1][:80]}**" if "failure" in row else "" if row["good"] and not row["reference"] else " **not yet**"
            cells.append(f"{what}: {row.get('error', 0):.1e} / {row.get('ort', 0):.1e}{mark}")
        done = next((row for row in forms if "steps" in row), {})
        out.append(f"| {name} | {done.get('operators', '')} | {done.get('steps', '')} | {'<br>'.join(cells)} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    wished = sys.argv[1:] or list(PACKAGE_NETWORKS)
    found = all_rows(wished)
    if not sys.argv[1:]:
        (ROOT / "docs" / "networks.md").write_text(table(found))
    bad = [row for row in found if "failure" in row or ("good" in row and (not row["good"] or row["reference"]))]
    for each in bad:
        print(json.dumps(each, indent=1).replace("\\n", "\n"))
    left = [row for row in found if "left_out" in row]
    print(f"{len(found)} forms: {len(found) - len(bad) - len(left)} good, {len(bad)} not, {len(left)} not comparable")
    for each in left:
        print(each["network"], each["exporter"], each["dynamic"], each["left_out"])
