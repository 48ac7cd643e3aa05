"""Where the program under test is, and a runner that shows what it said when it fails."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_program() -> pathlib.Path:
    """POLYPHASE names the program, POLYPHASE_BUILD its build; otherwise the newest of the builds."""
    if "POLYPHASE" in os.environ:
        return pathlib.Path(os.environ["POLYPHASE"])
    if "POLYPHASE_BUILD" in os.environ:
        return pathlib.Path(os.environ["POLYPHASE_BUILD"]) / "apps/cli/polyphase"
    built = sorted(ROOT.glob("build/*/apps/cli/polyphase"), key=lambda path: path.stat().st_mtime)
    if not built:
        pytest.exit("no build/*/apps/cli/polyphase: run scripts/build first, or set POLYPHASE", returncode=2)
    return built[-1]


def find_build() -> pathlib.Path:
    """The build folder of the program under test: its test programs lie there too."""
    return find_program().parents[2]


def pytest_configure(config):
    """The Python package of the same build, for tests/python/package and the programs that it starts."""
    try:
        folder = str(find_build() / "python")
    except pytest.exit.Exception:  # said by the first test that needs a build
        return
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])


class Program:
    """The command line, called as a user calls it."""

    def __init__(self, path: pathlib.Path):
        self.path = path

    def __call__(self, *arguments, expect: int = 0, timeout: float = 300) -> subprocess.CompletedProcess:
        done = subprocess.run([str(self.path), *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == expect, f"{arguments} ended with {done.returncode}, not {expect}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done

    def run_arrays(self, model, inputs: dict[str, np.ndarray], folder: pathlib.Path, *arguments) -> dict[str, np.ndarray]:
        """Runs a model or engine on arrays by name; the outputs by name."""
        np.savez(folder / "in.npz", **inputs)
        self("run", model, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz", *arguments)
        with np.load(folder / "out.npz") as outputs:
            return {name: outputs[name] for name in outputs.files}


@pytest.fixture(scope="session")
def polyphase() -> Program:
    return Program(find_program())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def up(folder):
    """An engine of the Python package: small_models.up."""
    import polyphase
    import small_models

    return polyphase.compile(small_models.up(folder / "up.onnx"))


@pytest.fixture(scope="module")
def two(folder):
    """An engine of the Python package: small_models.two."""
    import polyphase
    import small_models

    return polyphase.compile(small_models.two(folder / "two.onnx"))


@pytest.fixture(autouse=True, scope="session")
def cache_of_islands(tmp_path_factory):
    """What torch.compile's backend keeps on disk is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def two_threads():
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def full(request) -> bool:
    return wants_full(request.config)


@pytest.fixture(scope="session")
def slice_seed(request) -> int:
    return request.config.getoption("--slice-seed")


def wants_full(config) -> bool:
    return config.getoption("--full") or os.environ.get("POLYPHASE_FULL") == "1"


FULL_RUN_ALONE = ("test_package_networks.py", "test_static_archives.py", "test_torch_networks.py", "test_wheel.py")


def pytest_ignore_collect(collection_path, config):
    """What needs requirements/networks.txt or requirements/wheel.txt, which only the full run installs, or another build."""
    return True if collection_path.name in FULL_RUN_ALONE and not wants_full(config) else None


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="every case instead of a seeded slice; POLYPHASE_FULL=1 says the same")
    parser.addoption("--slice-seed", type=int, default=1, help="which slice of the large suites runs")
    parser.addoption("--network", action="append", default=[], help="a random network by its name, such as 17-dynamo-dynamic")
