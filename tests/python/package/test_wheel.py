"""The wheel runs engines where there is neither a compiler nor PyTorch, on every CPython that is here; and `pip install .`.

Part of the full run alone: it needs requirements/wheel.txt and builds once more (from the compiler's cache where there is one).
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import small_models

ROOT = pathlib.Path(__file__).resolve().parents[3]
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PROGRAM = """
import importlib.util, shutil, sys
import numpy as np
import polyphase
assert importlib.util.find_spec("torch") is None and not any(map(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++")))
assert sys.prefix in polyphase.__file__, polyphase.__file__
x = np.load("x.npy")
for engine in (polyphase.load("up.ppe"), polyphase.compile("up.onnx")):
    np.testing.assert_allclose(engine(x), np.load("y.npy"), atol=1e-6)
try:
    engine([1])
except polyphase.Error as error:
    print(polyphase.version, error.code, error.message)
"""


def run(*command, **options) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def interpreters() -> list[tuple[str, str]]:
    """Every CPython that can be found, by version; POLYPHASE_PYTHONS lists more of them, separated by colons."""
    found = {}
    candidates = [*os.environ.get("POLYPHASE_PYTHONS", "").split(":"), *map(shutil.which, [f"python{version}" for version in VERSIONS]), sys.executable]
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), candidate)
    return sorted(found.items())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("dist")
    run(ROOT / "scripts/wheel", folder)
    [made] = folder.glob("*.whl")
    return made


def test_pytorch_finds_the_backend_in_it(wheel):
    with zipfile.ZipFile(wheel) as file:
        [entries] = [name for name in file.namelist() if name.endswith(".dist-info/entry_points.txt")]
        assert "[torch_dynamo_backends]\npolyphase = polyphase.torch:backend" in file.read(entries).decode().replace("\r", "")


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> pathlib.Path:
    import polyphase

    folder = tmp_path_factory.mktemp("example")
    small_models.up(folder / "up.onnx")
    polyphase.compile(folder / "up.onnx").save(folder / "up.ppe")
    x = np.random.default_rng(1).standard_normal((1, 3, 5, 6), dtype=np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", small_models.up_expected(x))
    (folder / "program.py").write_text(PROGRAM)
    return folder


def bare_environment(python: pathlib.Path) -> dict[str, str]:
    """No compiler on the way, nothing of this build."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CC", "CXX")}
    return kept | {"PATH": str(python.parent)}


def test_its_tags_and_what_it_needs(wheel):
    assert re.fullmatch(r"polyphase-[\d.]+-cp310-abi3-manylinux_2_\d+_x86_64\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        metadata = files.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    assert {"polyphase/__init__.py", "polyphase/_native.abi3.so", "polyphase/_native.pyi", "polyphase/py.typed"} <= set(names)
    assert sorted(re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE)) == ["nanobind-backend", "numpy"]
    assert "Requires-Python: >=3.10" in metadata
    assert not [name for name in names if name.endswith((".cpp", ".h", ".a"))]


@pytest.mark.parametrize(("version", "python"), interpreters())
def test_it_runs_where_there_is_no_compiler_and_no_pytorch(wheel, example, tmp_path, version, python):
    run(python, "-m", "venv", tmp_path / "venv")
    own = tmp_path / "venv/bin/python"
    run(own, "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel, env=bare_environment(own))
    done = run(own, "program.py", cwd=example, env=bare_environment(own))
    assert done.stdout.endswith("invalid_argument input 'x' is a list, which is no array.\n") and done.stderr == ""


def test_pip_install_from_the_sources(example, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    own = tmp_path / "venv/bin/python"
    compiler = run("bash", "-c", "source scripts/toolchain.sh; find_cxx", cwd=ROOT).stdout.strip()  # as scripts/wheel: its objects are there
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"CXX": compiler}
    run(own, "-m", "pip", "install", "--quiet", ".", cwd=ROOT, env=environment)
    done = run(own, "program.py", cwd=example, env=bare_environment(own))
    assert "invalid_argument" in done.stdout
