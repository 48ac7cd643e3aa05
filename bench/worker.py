"""A process for one system: it loads work, runs it when told to, and says how long that took."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import multiprocessing
import os
import pathlib
import sys
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from work import Unable, Work

# What holds each system to AVX2: oneDNN's variable for PyTorch and OpenVINO, ATen's and MKL's beside it.
HELD = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}, "native": {}}
PEERS = ("polyphase", "tuned", "torch", "torch_last", "inductor", "onnxruntime", "openvino")
OF_MODULES = ("torch", "torch_last", "inductor")  # no other process imports PyTorch
LOAD_SECONDS, RUN_SECONDS = 600, 300
SETTLE_SECONDS = 0.1  # threads of some systems look for work that long after their last, on cores that are another's by then


class Worker:
    """The parent's end. Whatever happens in the other process, a call here gives a result or raises Unable."""

    def __init__(self, peer: str, threads: int, isa: str) -> None:
        self.peer, self._threads, self._isa = peer, threads, isa
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        env = {"OMP_NUM_THREADS": str(self._threads), **HELD[self._isa]}
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        self._process = context.Process(target=_serve, args=(other, self.peer, self._threads, self._isa), daemon=True)
        self._process.start()
        other.close()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    def load(self, work: Work) -> list[Any]:
        """The outputs of one run."""
        return self._ask(("load", self._needed(work)), LOAD_SECONDS)

    def forms(self, work: Work) -> list[Work]:
        """The ways in which the system may be given the work where memory counts: as it is, or made into its own format."""
        return self._ask(("forms", self._needed(work)), LOAD_SECONDS)

    def import_bytes(self) -> int:
        """The most memory that the process has held when the system was imported and had nothing to do."""
        return self._ask(("import",), LOAD_SECONDS)

    def _needed(self, work: Work) -> Work:
        return work if self.peer in OF_MODULES else dataclasses.replace(work, module=None)

    def time(self, seconds: float, least: int, processor: bool = False) -> list[float]:
        """Seconds of runs, as many as take that long; `processor`: those that the process computed, for one thread on a machine that others use too."""
        return self._ask(("time", seconds, least, processor), RUN_SECONDS)

    def peak_bytes(self) -> int:
        """The most memory that the process has held."""
        return self._ask(("memory",), 60)

    def restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.close()
        self._process.kill()
        self._process.join()

    def _ask(self, words: tuple, seconds: float) -> Any:
        reply: Any = None
        try:
            self._pipe.send(words)
            if self._pipe.poll(seconds):
                reply = self._pipe.recv()
        except (EOFError, OSError):
            reply = ("unable", f"its process ended with {self._process.exitcode}")
        if reply is None:
            reply = ("unable", f"it took more than {seconds:.0f} s")
        if reply[0] == "unable":
            if not self._process.is_alive() or "more than" in reply[1]:
                self.restart()
            raise Unable(reply[1])
        return reply[1]


def timed(run: Any, seconds: float, least: int, processor: bool) -> list[float]:
    """Seconds of runs, as `Worker.time` counts them, in this process."""
    times: list[float] = []
    clock = time.process_time if processor else time.perf_counter
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = clock()
        run()
        times.append(clock() - start)
    return times


def own_peak_bytes() -> int:
    """The most memory that this process has held (VmHWM)."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _serve(pipe: Connection, peer: str, threads: int, isa: str) -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115: the systems print what they like
    os.dup2(sys.stdout.fileno(), 2)
    runner: Any = None
    while True:
        try:
            words = pipe.recv()
        except EOFError:
            return
        try:
            module = importlib.import_module(f"peers.{peer}_peer") if words[0] in ("load", "forms", "import") else None
            if words[0] == "load":
                runner = None
                runner = module.Runner(words[1], threads, isa)
                reply = runner.outputs()
            elif words[0] == "forms":
                reply = module.forms(words[1], threads, isa) if hasattr(module, "forms") else [words[1]]
            elif words[0] == "time":
                if threads > 1:
                    time.sleep(SETTLE_SECONDS)
                    runner.run()
                reply = timed(runner.run, *words[1:])
            else:
                reply = own_peak_bytes()
            pipe.send(("done", reply))
        except Unable as error:
            pipe.send(("unable", str(error)))
        except ModuleNotFoundError as error:
            pipe.send(("unable", f"{error.name} is not installed"))
        except Exception:  # noqa: BLE001: a peer's fault must not end the benchmark
            pipe.send(("unable", traceback.format_exc().strip().splitlines()[-1][:200]))
