"""Makes the PyTorch of this environment importable without the gigabytes of GPU libraries that its wheel asks for.

The wheel from PyPI is linked against cuBLAS, cuDNN, NCCL and others. Nothing of them runs on a CPU, but the loader wants a
library of each name with each symbol. So one small library is made that has every missing symbol, answering
100 (no device) to every call, and a link of each missing name points at it. The CUDA runtime itself is the real one.

    libtorch_cuda.so ──▶ libcudart.so.13            real (nvidia-cuda-runtime)
                     ├─▶ libcublas.so.13  ─┐
                     └─▶ libcudnn.so.9 ... ┴─▶ libno_gpu.so
"""
import collections
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

GPU_LIBRARY = re.compile(r"lib(cu|nv|nccl)")
GPU_SYMBOL = re.compile(r"(cu|nccl|nvshmem|nvml|nvrtc|nvtx|_*cuda)")
STAND_IN = "libno_gpu.so"


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def imports() -> bool:
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


def read_libraries(libraries: list[pathlib.Path]) -> tuple[set[str], dict[str, str]]:
    """The names that the libraries ask for, and each symbol that none of them defines with the version it is wanted in."""
    needed, wanted, defined = set(), {}, set()
    for library in libraries:
        needed |= set(re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", str(library))))
        for line in output_of("readelf", "-W", "--dyn-syms", str(library)).splitlines():
            fields = line.split()
            if len(fields) < 8:
                continue
            name, _, version = fields[7].partition("@")
            if fields[6] != "UND":
                defined.add(name)
            elif fields[4] == "GLOBAL":
                wanted[name] = version
    return needed, {name: version for name, version in wanted.items() if name not in defined}


def build_stand_in(symbols: dict[str, str], target: pathlib.Path) -> None:
    by_version = collections.defaultdict(list)
    for name, version in sorted(symbols.items()):
        if version.startswith("lib") or version == "NVSHMEM":
            by_version[version].append(name)
        elif not version and GPU_SYMBOL.match(name):
            by_version["no_gpu"].append(name)
    labels = "".join(f".globl {n}\n.type {n},@function\n{n}:\n" for names in by_version.values() for n in names)
    nodes = "".join(f"{v} {{ global: {' '.join(n + ';' for n in names)} }};\n" for v, names in by_version.items())
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder, "no_gpu.s"), pathlib.Path(folder, "no_gpu.map")
        source.write_text(f'.text\n{labels}mov $100, %eax\nret\n.section .note.GNU-stack,"",@progbits\n')
        script.write_text(nodes)
        subprocess.run(
            ["gcc", "-shared", "-nostdlib", f"-Wl,--version-script={script}", "-o", str(target), str(source)], check=True)


def main() -> int:
    if imports():
        return 0
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        print("torch_without_gpu: PyTorch is not installed in this environment")
        return 1
    lib = pathlib.Path(spec.origin).parent / "lib"
    for link in lib.iterdir():
        if link.is_symlink():
            link.unlink()
    (lib / STAND_IN).unlink(missing_ok=True)

    nvidia = list(lib.parent.parent.glob("nvidia/*/lib/*.so*"))
    present = {path.name for path in lib.iterdir()} | {path.name for path in nvidia}
    needed, symbols = read_libraries(sorted(lib.glob("*.so")) + nvidia)
    build_stand_in(symbols, lib / STAND_IN)
    for name in sorted(needed - present):
        if GPU_LIBRARY.match(name):
            os.symlink(STAND_IN, lib / name)
    return 0 if imports() else 1


if __name__ == "__main__":
    sys.exit(main())
