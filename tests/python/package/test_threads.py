"""The Python package among threads, forks and signals, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import polyphase
import pytest
import small_models
from onnx import TensorProto, helper


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> polyphase.Engine:
    """Twenty convolutions: about a second on a picture of 256 by 256."""
    return polyphase.compile(slow_model(tmp_path_factory.mktemp("slow") / "slow.onnx"))


def slow_model(path):
    weights = np.full((128, 128, 3, 3), 1e-3, np.float32)
    nodes = [helper.make_node("Conv", [f"v{i}", "w"], [f"v{i + 1}"], name=f"conv{i}", pads=[1] * 4) for i in range(20)]
    return small_models.save(path, nodes, [("v0", TensorProto.FLOAT, [1, 128, "H", "W"])], [("v20", TensorProto.FLOAT, None)], [("w", weights)])


def turning_model(path):
    """A loop whose first input says how often it turns."""
    state, go = helper.make_tensor_value_info("s", TensorProto.FLOAT, [4]), helper.make_tensor_value_info("go", TensorProto.BOOL, [])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Sin", ["s"], ["t"], name="sin")], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), go, state],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])])
    return small_models.save(path, [helper.make_node("Loop", ["turns", "", "x"], ["y"], name="loop", body=body)],
                             [("turns", TensorProto.INT64, []), ("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, None)])


LARGE = np.ones((1, 128, 512, 512), np.float32)


def test_other_threads_go_on_during_a_run(slow):
    session = slow.session(threads=1)
    session.run([LARGE[:, :, :16, :16]])
    running, beats = threading.Event(), []

    def beat():
        running.set()
        while running.is_set():
            beats.append(time.monotonic())
            time.sleep(0.002)

    other = threading.Thread(target=beat)
    other.start()
    running.wait()
    with pytest.raises(polyphase.CancelledError):
        session.run([LARGE], deadline=0.5)
    running.clear()
    other.join()
    assert len(beats) > 20


def test_runs_overlap_and_give_the_serial_bits(slow):
    x = [np.random.default_rng(i).standard_normal((1, 128, 24, 24 + i), dtype=np.float32) for i in range(4)]
    alone = [slow.session(1).run([one])["v20"] for one in x]
    session, found = slow.session(2), [None] * 4
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, [session.run([x[i]])["v20"] for _ in range(3)])) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for expected, several in zip(alone, found, strict=True):
        for one in several:
            np.testing.assert_array_equal(one, expected)


def test_first_calls_from_many_threads_share_one_session(slow):
    engine = polyphase.load(slow.to_bytes())
    x, shapes = LARGE[:, :, :8, :8], []
    threads = [threading.Thread(target=lambda: shapes.append(engine(x).shape)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == [(1, 128, 8, 8)] * 8


def run_program(text: str, *arguments, expect: int = 0, timeout: float = 100) -> subprocess.CompletedProcess:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env=env, check=False)
    assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


INTERRUPT = """
    import os, signal, sys, threading, time
    import numpy as np, polyphase
    from test_threads import slow_model, LARGE

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background begins with it ignored

    def interrupt(after):
        threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()

    def ends_at_once(session, inputs):
        began = time.monotonic()
        interrupt(0.4)
        try:
            session.run(inputs)
            print("ended")
        except KeyboardInterrupt:
            print("run", "at once" if time.monotonic() - began < 4 else "late")

    session = polyphase.compile(sys.argv[1]).session(1)
    ends_at_once(session, [LARGE])
    for _ in range(3):  # sizes whose runs are brief are not watched, others are
        session.run([LARGE[:, :, :2, :2]])
    ends_at_once(session, [LARGE])
    turns = polyphase.compile(sys.argv[2]).session(1)
    for _ in range(3):  # brief, but of the same sizes as the next
        turns.run([np.int64(1), np.ones(4, np.float32)])
    ends_at_once(turns, [np.int64(10**8), np.ones(4, np.float32)])
    interrupt(0.1)
    try:
        while True:
            polyphase.compile(sys.argv[1])
    except KeyboardInterrupt:
        print("compile")

    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    small = np.ascontiguousarray(LARGE[:, :, :128, :128])
    expected = session.run([small])["v20"]
    interrupt(0.02)
    print(np.array_equal(session.run([small])["v20"], expected))
    time.sleep(0.2)
    print(len(seen), signal.getsignal(signal.SIGINT) is not before)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupt(0.02)
    print(np.array_equal(session.run([small])["v20"], expected))

    def nested(stage, done):  # a run within a compilation
        if stage == "lower":
            session.run([small])
    signal.signal(signal.SIGINT, before)
    polyphase.compile(sys.argv[1], progress=nested)
    interrupt(0.05)
    try:
        time.sleep(2)
    except KeyboardInterrupt:
        print("as before")
"""


def test_ctrl_c_ends_runs_and_compilations(tmp_path):
    done = run_program(INTERRUPT, slow_model(tmp_path / "slow.onnx"), turning_model(tmp_path / "turns.onnx"))
    assert done.stdout.split("\n")[:-1] == ["run at once", "run at once", "run at once", "compile", "True", "1 True", "True", "as before"]


FORK = """
    import gc, multiprocessing, os
    import numpy as np

    engine = polyphase.load(open(sys.argv[1], "rb").read())
    x = np.ascontiguousarray(LARGE[:, :, :8, :8])
    expected = engine(x)
    session = engine.session(2)
    session.run([x])
    child = os.fork()
    if child == 0:
        good = np.array_equal(engine(x), expected)  # its own session is made anew
        for use in (lambda: session.run([x]), lambda: session(x)):
            try:
                use()
                good = False
            except polyphase.ArgumentError as error:
                good = good and "forked" in str(error)
        repr(session)
        del session
        gc.collect()
        os._exit(0 if good else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(np.array_equal(session.run([x])["v20"], expected))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(call, (engine, x)).shape)
"""
FORK_HEAD = """
import sys
import polyphase
from test_threads import LARGE

def call(engine, x):
    return engine(x)

if __name__ == "__main__":
"""


def test_forked_children(slow, tmp_path):
    slow.save(tmp_path / "slow.ppe")
    program = tmp_path / "program.py"
    program.write_text(FORK_HEAD + FORK)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, program, tmp_path / "slow.ppe"], capture_output=True, text=True, timeout=100, env=env, check=False)
    assert done.stdout.split("\n")[:-1] == ["0", "True", "(1, 128, 8, 8)"], done.stderr


LEAKS = """
    import gc, pathlib, sys
    import numpy as np, torch, polyphase

    def rest():
        engine = polyphase.compile(sys.argv[1])
        x = np.ones((1, 3, 8, 8), np.float32)
        y = np.zeros((1, 2, 16, 16), np.float32)
        for _ in range(3):
            engine(x); engine(torch.from_numpy(x)); engine(memoryview(x)); engine(x=x[:, :, ::-1])
            session = engine.session(2)
            session.run([x]); session.run([x], [y]); session.explain([x.shape]); session.output_shapes([x.shape])
            polyphase.load(engine.to_bytes()); engine.info(); engine.inputs
            for wrong in (x[0], None, x.astype("f8"), np.array([object()])):
                try:
                    engine(wrong)
                except polyphase.Error:
                    pass
            try:
                polyphase.compile(sys.argv[1], progress=lambda stage, done: 1 / 0)
            except ZeroDivisionError:
                pass
        polyphase.check(sys.argv[1])
        polyphase.compare_layers(sys.argv[1], [x])

    def memory():
        return int(pathlib.Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])

    rest()
    gc.collect()
    before = memory()
    for _ in range(30):
        rest()
    gc.collect()
    print((memory() - before) // 1024)
    kept = polyphase.load(polyphase.compile(sys.argv[1]).to_bytes())  # alive when the interpreter ends
    kept(np.ones((1, 3, 8, 8), np.float32))
"""


def test_nothing_is_left_behind(tmp_path):
    done = run_program(LEAKS, small_models.up(tmp_path / "up.onnx"))
    assert done.stderr == ""  # nanobind reports instances, functions and types that outlive the interpreter
    assert int(done.stdout) < 20, "MiB more after thirty rounds"


DAEMON = """
    import sys, threading, time
    import polyphase
    from test_threads import LARGE

    engine = polyphase.compile(sys.argv[1])

    def forever(work):
        while True:
            work()

    def run():
        engine(LARGE[:, :, :64, :64])

    def compile():
        polyphase.compile(sys.argv[1])

    for work in (run, compile) if sys.argv[2] == "both" else (run, run):
        threading.Thread(target=forever, args=(work,), daemon=True).start()
    time.sleep(float(sys.argv[3]))
    print("end")
"""


@pytest.mark.parametrize("seconds", [0.1, 0.13, 0.17, 0.21])
@pytest.mark.parametrize("threads", ["runs", "both"])
def test_the_interpreter_may_end_during_runs(tmp_path, threads, seconds):
    done = run_program(DAEMON, slow_model(tmp_path / "slow.onnx"), threads, seconds)
    assert done.stdout == "end\n"


SUBINTERPRETER = """
    import polyphase
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    child = interpreters.create()
    code = "try:\\n    import polyphase\\nexcept ImportError:\\n    pass"
    interpreters.run_string(child, code)
    interpreters.destroy(child)
    print(polyphase.devices()[0]["cores"] > 0)
"""


def test_subinterpreters_do_not_crash():
    assert run_program(SUBINTERPRETER).stdout == "True\n"


def test_signals_are_left_as_they_were(slow):
    before = signal.getsignal(signal.SIGINT)
    slow(LARGE[:, :, :8, :8])
    assert signal.getsignal(signal.SIGINT) is before
