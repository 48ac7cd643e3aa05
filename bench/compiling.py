"""What compiling and loading networks of 100 M parameters costs, beside reading their weights and writing as many bytes as the engine has.

Each measurement is a process of its own: `compiling.py compile|copy|load MODEL ENGINE` prints what it took as JSON.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
from worker import own_peak_bytes


class Net:
    """A chain of layers as an ONNX model with random weights."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.weights: list = []
        self.parameters = 0
        self._rng = np.random.default_rng(1)

    def weight(self, *sizes: int) -> str:
        import onnx

        data = self._rng.standard_normal(sizes, dtype=np.float32) / np.float32(np.sqrt(np.prod(sizes[1:])))
        self.parameters += data.size
        self.weights.append(onnx.helper.make_tensor(f"w{len(self.weights)}", onnx.TensorProto.FLOAT, sizes, data.tobytes(), raw=True))
        return self.weights[-1].name

    def node(self, kind: str, inputs: list[str], **attributes) -> str:
        import onnx

        self.nodes.append(onnx.helper.make_node(kind, inputs, [f"t{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def conv(self, x: str, inner: int, outer: int, kernel: int = 3) -> str:
        return self.node("Relu", [self.node("Conv", [x, self.weight(outer, inner, kernel, kernel), self.weight(outer)], pads=[kernel // 2] * 4)])

    def up(self, x: str, inner: int, outer: int, kernel: int, stride: int, pad: int) -> str:
        return self.node("Relu", [self.node("ConvTranspose", [x, self.weight(inner, outer, kernel, kernel), self.weight(outer)], strides=[stride] * 2, pads=[pad] * 4)])

    def save(self, last: str, sizes: list[int], path: pathlib.Path) -> None:
        import onnx

        ports = [[onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)] for name, shape in (("x", sizes), (last, None))]
        graph = onnx.helper.make_graph(self.nodes, "net", *ports, self.weights)
        path.write_bytes(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9).SerializeToString())


def unet(path: pathlib.Path, width: int = 64, middle: int = 9) -> int:
    """Four levels of two convolutions each, and convolutions of 16 times the width between them."""
    net, x, skips, channels = Net(), "x", [], 3
    for level in range(4):
        outer = width << level
        x = net.conv(net.conv(x, channels, outer), outer, outer)
        skips.append((x, outer))
        x, channels = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), outer
    for _ in range(middle):
        x, channels = net.conv(x, channels, width << 4), width << 4
    for skip, outer in reversed(skips):
        x = net.node("Concat", [skip, net.up(x, channels, outer, 2, 2, 0)], axis=1)
        x, channels = net.conv(net.conv(x, 2 * outer, outer), outer, outer), outer
    net.save(net.conv(x, channels, 3, 1), [1, 3, 256, 256], path)
    return net.parameters


def dcgan(path: pathlib.Path, widths: tuple[int, ...] = (4096, 1024, 1024, 512, 3)) -> int:
    """A generator from 100 numbers: transposed convolutions of 4 by 4."""
    net = Net()
    x = net.up("x", 100, widths[0], 4, 1, 0)
    for inner, outer in zip(widths, widths[1:]):
        x = net.up(x, inner, outer, 4, 2, 1)
    net.save(x, [1, 100, 1, 1], path)
    return net.parameters


NETWORKS: dict[str, Callable[[pathlib.Path], int]] = {"U-Net": unet, "DCGAN": dcgan}


def measured(names: str, rounds: int) -> Iterator[dict]:
    """Rows: medians of rounds in which the processes take turns."""
    with tempfile.TemporaryDirectory() as folder:
        model, engine = pathlib.Path(folder) / "model.onnx", pathlib.Path(folder) / "model.ppe"
        for name, make in NETWORKS.items():
            if names not in name:
                continue
            row: dict = {"name": name, "parameters": make(model), "model_bytes": model.stat().st_size}
            found: dict[str, list[dict]] = {what: [] for what in WORK}
            for _ in range(rounds):
                for what in WORK:
                    done = subprocess.run([sys.executable, __file__, what, model, engine], check=True, capture_output=True, text=True)
                    found[what].append(json.loads(done.stdout))
            row["engine_bytes"] = engine.stat().st_size
            for what, times in found.items():
                row[what] = {key: statistics.median(one[key] for one in times) for key in times[0]}
            yield row


def summary(rows: list[dict]) -> str:
    compiling = [row["compile"]["processor"] / row["copy"]["processor"] for row in rows]
    rates = [row["engine_bytes"] / row["load"]["processor"] / 1e9 for row in rows]
    return (f"Compiling takes {min(compiling):.1f} to {max(compiling):.1f} times the processor time of reading the model and writing as many bytes as the engine has; "
            f"loading goes at {min(rates):.1f} to {max(rates):.1f} GB/s, checksums and all")


def _compile(model: str, engine: str) -> None:
    import polyphase

    polyphase.compile(model, engine_file=engine)


def _copy(model: str, engine: str) -> None:
    """Through a buffer that stays in the caches, flushed as an engine is."""
    size, piece = os.path.getsize(engine), bytearray(1 << 20)
    with open(model, "rb", buffering=0) as source, open(f"{engine}.copy", "wb", buffering=0) as target:
        while source.readinto(piece):
            pass
        for at in range(0, size, len(piece)):
            target.write(memoryview(piece)[: size - at])
        os.fsync(target.fileno())
    os.unlink(f"{engine}.copy")


def _load(model: str, engine: str) -> None:  # noqa: ARG001: as the others
    import polyphase

    polyphase.load(engine).session(threads=1)


WORK = {"compile": _compile, "copy": _copy, "load": _load}


def main() -> None:
    what, model, engine = sys.argv[1:]
    if what != "copy":
        import polyphase  # noqa: F401: importing is not what is measured
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    WORK[what](model, engine)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(json.dumps({"processor": user + system, "system": system, "wall": wall, "peak_bytes": own_peak_bytes()}))


if __name__ == "__main__":
    main()
