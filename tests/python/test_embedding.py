"""Polyphase as a library of others: installed, moved, found by CMake and pkg-config, linked by the examples; its ABI."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import onnxruntime
import pytest

from conftest import find_build

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "fsrcnn_x3" / "fsrcnn_x3.onnx"
MOST_RUNTIME_BYTES = 5_000_000
ABI = ROOT / "abi"


def run(*command, cwd=None, env=None, input=None, expect=0) -> bytes:
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=os.environ | (env or {}), input=input, capture_output=True, check=False)
    assert done.returncode == expect, f"{command} ended with {done.returncode}:\n{done.stdout[-3000:].decode()}{done.stderr[-3000:].decode()}"
    return done.stdout


def cmake() -> str:
    own = ROOT / ".venv" / "bin" / "cmake"
    return str(own) if own.exists() else "cmake"


@pytest.fixture(scope="module")
def build() -> pathlib.Path:
    build = find_build()
    if not (build / "lib" / "libpolyphase.so").exists():
        pytest.fail(f"{build} has no libpolyphase.so: build it whole, without sanitizers")
    return build


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory) -> pathlib.Path:
    """Installed through DESTDIR, then moved: nothing may remember where it was built or put."""
    stage = tmp_path_factory.mktemp("stage")
    run(cmake(), "--install", build, "--prefix", "/opt/polyphase", env={"DESTDIR": str(stage)})
    moved = tmp_path_factory.mktemp("moved") / "a prefix"
    shutil.move(stage / "opt" / "polyphase", moved)
    return moved


@pytest.fixture(scope="module")
def libraries(prefix) -> pathlib.Path:
    return next(prefix.glob("lib*/**/libpolyphase.so")).parent


def picture(height: int, width: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((1, 1, height, width), np.float32)


def expected(pixels: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: pixels})[0]


def build_example(name: str, prefix, folder) -> pathlib.Path:
    """Built from a copy outside the tree, so that nothing of the tree is found by accident."""
    shutil.copytree(ROOT / "examples" / name, folder / name)
    run(cmake(), "-S", folder / name, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", "-G", "Ninja")
    run(cmake(), "--build", folder / "build")
    return folder / "build"


def test_the_c_example_gives_onnx_runtimes_picture(prefix, tmp_path):
    program = build_example("c", prefix, tmp_path) / "upscale"
    pixels = picture(20, 31, 1)
    pixels.tofile(tmp_path / "in")
    said = run(program, MODEL, 20, 31, tmp_path / "in", tmp_path / "out").decode()
    assert said.splitlines()[:2] == ["input y: N 1 H W", "output y_x3: N 1 3*H 3*W"] and "60 x 93" in said
    result = np.fromfile(tmp_path / "out", np.float32).reshape(1, 1, 60, 93)
    np.testing.assert_allclose(result, expected(pixels), atol=2e-5)
    run(program, tmp_path / "none.onnx", 20, 31, tmp_path / "in", tmp_path / "out", expect=1)


def test_the_cpp_example_writes_two_halves_into_one_picture(prefix, tmp_path):
    program = build_example("cpp", prefix, tmp_path) / "tiles"
    pixels = picture(18, 25, 2)
    pixels.tofile(tmp_path / "in")
    run(program, MODEL, 18, 25, tmp_path / "in", tmp_path / "out")
    result = np.fromfile(tmp_path / "out", np.float32).reshape(1, 1, 54, 75)
    np.testing.assert_allclose(result[..., :36], expected(pixels[..., :12]), atol=2e-5)
    np.testing.assert_allclose(result[..., 36:], expected(pixels[..., 12:]), atol=2e-5)


@pytest.mark.parametrize("how", ["cmake", "pkg-config"])
def test_the_runtime_only_example_answers_every_request(polyphase, prefix, libraries, tmp_path, how):
    engine = tmp_path / "model.ppe"
    polyphase("compile", MODEL, "-o", engine)
    if how == "cmake":
        program = build_example("runtime_only", prefix, tmp_path) / "serve"
    else:
        linked = tmp_path / "prefix"  # pkg-config and make both stumble over spaces
        linked.symlink_to(prefix)
        shutil.copytree(ROOT / "examples" / "runtime_only", tmp_path / "made")
        run("make", cwd=tmp_path / "made", env={"PKG_CONFIG_PATH": str(linked / libraries.relative_to(prefix) / "pkgconfig")})
        program = tmp_path / "made" / "serve"
    requests = [picture(9, 14, seed) for seed in range(5)]
    answer = run(program, engine, 9, 14, input=b"".join(request.tobytes() for request in requests))
    results = np.frombuffer(answer, np.float32).reshape(5, 1, 1, 27, 42)
    for request, result in zip(requests, results):
        np.testing.assert_allclose(result, expected(request), atol=2e-5)


def test_the_runtime_is_small_and_knows_no_protobuf(build, libraries, tmp_path):
    library = libraries / "libpolyphase_runtime.so.0"
    run("strip", "-o", tmp_path / "stripped.so", library)
    if "CMAKE_BUILD_TYPE:STRING=Release" in (build / "CMakeCache.txt").read_text():
        assert (tmp_path / "stripped.so").stat().st_size <= MOST_RUNTIME_BYTES
    assert b"protobuf" not in run("ldd", library)
    assert b"google" not in run("nm", "-C", library) and b"onnx::" not in run("nm", "-C", library)
    assert b"soname: [libpolyphase_runtime.so.0]" in run("readelf", "-d", library).replace(b"Library ", b"")


def declared_c_functions() -> set[str]:
    return set(re.findall(r"\b(polyphase_\w+)\(", (ROOT / "include/polyphase/c_api.h").read_text()))


def declared_cpp_functions() -> set[str]:
    """Free functions of the namespace polyphase::api and those in it, by their full name."""
    names = set()
    for header in (ROOT / "include" / "polyphase").glob("*.h"):
        for space, text in re.findall(r"^namespace (polyphase::api[\w:]*) \{\n(.*?)^\}  // namespace \1$", header.read_text(), re.MULTILINE | re.DOTALL):
            names |= {f"{space}::{name}" for name in re.findall(r"^(?!struct|class|using|//)\w[\w:<>, *]* (\w+)\(", text, re.MULTILINE)}
    return names


@pytest.mark.parametrize("name", ["polyphase", "polyphase_runtime"])
def test_a_library_shows_what_the_headers_declare_and_nothing_else(libraries, name):
    lines = run("nm", "-DC", "--defined-only", libraries / f"lib{name}.so").decode().splitlines()
    shown = {line.split(" ", 2)[2].split("@@")[0] for line in lines if line.split(" ", 2)[1] != "A"}
    c_functions = {symbol for symbol in shown if re.fullmatch(r"\w+", symbol)}
    compiling = {symbol for symbol in declared_c_functions() if "compile" in symbol}
    assert c_functions == declared_c_functions() - (compiling if name == "polyphase_runtime" else set())
    assert not [symbol for symbol in shown - c_functions if not symbol.startswith("polyphase::")]
    internal = ("Access", "Workshop", "State", "report_of", "inner_view", "expect_", "::cpu::", "Registry")
    assert not [symbol for symbol in shown if any(word in symbol.split("(")[0] for word in internal)]
    if name == "polyphase":
        names = {re.sub(r"\[abi:\w+\]", "", symbol.split("(")[0]) for symbol in shown}
        missing = declared_cpp_functions() - names
        assert not missing, "declared in include/polyphase, not exported: add it to src/api/exports.map.in"


# ---------------------------------------------------------------- from version to version

DECLARATION = re.compile(r"^((?:const |struct )?\w+\*?) (polyphase_\w+)\(([^;]*)\);", re.MULTILINE)


def abi_of_header(include: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The ABI that a header promises: of a library of empty functions, one per declaration.

    The real library is compiled against the same header, so it keeps each promise, and what it shows is tested above. Its own
    debug information would drag the C++ behind the handles into the comparison.
    """
    header = re.sub(r"//.*", "", (include / "polyphase/c_api.h").read_text())
    bodies = [f"{kind} {name}({parameters}) {{ {'' if kind == 'void' else 'return 0;'} }}" for kind, name, parameters in DECLARATION.findall(header)]
    source = folder / "promise.c"
    source.write_text('#include "polyphase/dlpack.h"\n#include "polyphase/c_api.h"\n' + "\n".join(bodies))
    run("cc", "-std=c99", "-g", "-fPIC", "-shared", "-Wl,-soname,libpolyphase.so", f"-I{include}", source, "-o", folder / "promise.so")
    run("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", folder / "promise.abi", folder / "promise.so")
    return folder / "promise.abi"


def differs(old, new) -> bool:
    done = subprocess.run(["abidiff", "--no-added-syms", str(old), str(new)], capture_output=True, text=True, check=False)
    assert done.returncode & 3 == 0, done.stdout + done.stderr
    print(done.stdout)
    return done.returncode != 0


def functions_of(abi: pathlib.Path) -> set[str]:
    return set(re.findall(r"<elf-symbol name='(\w+)'", abi.read_text()))


def test_the_c_abi_is_that_of_the_recorded_version(tmp_path):
    """Fails when a C function or struct is removed or changed: raise the ABI's number (abi/README.md says how) or take it back."""
    number = re.search(r"POLYPHASE_ABI_VERSION (\d+)", (ROOT / "include/polyphase/c_api.h").read_text())[1]
    assert f"set(POLYPHASE_ABI {number})" in (ROOT / "cmake/Libraries.cmake").read_text()
    now = abi_of_header(ROOT / "include", tmp_path)
    assert functions_of(now) == declared_c_functions()
    recorded = ABI / f"libpolyphase.{number}.abi"
    if os.environ.get("POLYPHASE_RECORD_ABI") == "1":
        assert not recorded.exists() or not differs(recorded, now), "a changed ABI has a new number"
        shutil.copy(now, recorded)
    assert not differs(recorded, now)
    assert functions_of(recorded) == functions_of(now), "new functions are recorded too: abi/README.md says how"


CHANGES = {
    "a function is gone": (r"^polyphase_status polyphase_compile\(.*?;", ""),
    "a parameter has another type": (r"size_t index, polyphase_port", "uint32_t index, polyphase_port"),
    "a result has another type": (r"size_t polyphase_engine_input_count", "int32_t polyphase_engine_input_count"),
    "a struct has a member in between": (r"  double timeout_seconds;", "  int32_t patience;\n  double timeout_seconds;"),
    "a struct lost a member": (r"  int64_t high;", ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_check_of_the_abi_sees(tmp_path, change):
    shutil.copytree(ROOT / "include", tmp_path / "include")
    header = tmp_path / "include/polyphase/c_api.h"
    changed = re.sub(*CHANGES[change], header.read_text(), count=1, flags=re.MULTILINE | re.DOTALL)
    assert changed != header.read_text()
    header.write_text(changed)
    assert differs(ABI / "libpolyphase.0.abi", abi_of_header(tmp_path / "include", tmp_path))


def test_the_check_of_the_abi_lets_functions_be_added(tmp_path):
    shutil.copytree(ROOT / "include", tmp_path / "include")
    header = tmp_path / "include/polyphase/c_api.h"
    header.write_text(header.read_text().replace("polyphase_status polyphase_compile(", "void polyphase_new(int32_t a);\npolyphase_status polyphase_compile("))
    assert not differs(ABI / "libpolyphase.0.abi", abi_of_header(tmp_path / "include", tmp_path))
