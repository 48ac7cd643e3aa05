"""Runs every check and test of the repository in the order that finds mistakes soonest; `make test` calls it.

    check.py          what fits into 35 minutes on two cores from a fresh clone: large suites as seeded slices
    check.py --full   everything at full size (pytest gets --full, POLYPHASE_FULL=1 tells the others), and clang-tidy over everything

A step that fails does not stop the ones that can still say something. The last line counts what the runners counted.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = str(ROOT / ".venv" / "bin" / "python")
TIDY_BUDGET_S = 60
# What --full asks of the C++ tests that draw random cases; the sanitizers see the usual number.
RANDOM_CASES = {"POLYPHASE_FUZZ_CASES": "20000", "POLYPHASE_RANDOM_GRAPHS": "2000", "POLYPHASE_FUZZ_USES": "10000"}
CTEST_LINE = re.compile(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)")
PYTEST_WORD = re.compile(r"(\d+) (passed|failed|skipped|errors?)")
WARNING = re.compile(r": warning: .*\[-W")
OLDEST_GCC = "12"  # newer ones warn of more, which shall not stop a user
CLUTTER = re.compile(r"^\s*(Start\s+\d+:|\d+/\d+ Test\s+#\d+: .* Passed)")


@dataclasses.dataclass
class Step:
    name: str
    command: list[str]
    runner: str = ""  # "ctest" or "pytest": whose counts to read from the output
    needs: tuple[str, ...] = ()
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    beside: bool = False  # runs while the next ones do, until one that needs it


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def build(preset: str, *targets: str) -> Step:
    return Step(f"build {preset}", ["scripts/build", preset, *targets])


def ctest(preset: str, *options: str, wrap: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Step:
    jobs = str(os.cpu_count() or 2)
    return Step(f"tests {preset}", [*wrap, ctest_program(), "--preset", preset, "-j", jobs, "--no-tests=error", *options],
                "ctest", ("setup python", f"build {preset}"), env or {})  # some write their models by Python


def ctest_program() -> str:
    own = ROOT / ".venv" / "bin" / "ctest"
    return str(own) if own.exists() else "ctest"


def steps(full: bool) -> list[Step]:
    # ThreadSanitizer of clang 14 cannot place its shadow memory where newer kernels spread mappings widely: setarch -R.
    still = ("setarch", os.uname().machine, "-R")
    tidy = ["--budget-s", str(TIDY_BUDGET_S)] if not full else []
    asan = "asan-all" if full else "asan"
    plan = [
        Step("setup python", ["scripts/setup", "python"], beside=True),  # waits for the network
        Step("format", [PYTHON, "scripts/lint.py", "--format"]),
        build(asan),
        ctest(asan),
        build("tidy", "polyphase_generated"),
        Step("tidy", [PYTHON, "scripts/lint.py", "--tidy", "build/tidy", *tidy], needs=("build tidy",)),
    ]
    if any("LABELS threads" in path.read_text() for path in (ROOT / "tests").glob("*/CMakeLists.txt")):
        plan += [build("tsan", "polyphase_thread_tests"), ctest("tsan", "-L", "threads", wrap=still)]
    if full:
        plan += [build("fuzz", "polyphase_fuzzers"), ctest("fuzz", "-L", "fuzz"), build("clang"), ctest("clang"), build("dev"), ctest("dev", env=RANDOM_CASES)]
    # What asks for meaning alone has run under the sanitizers.
    plan += [build("release"), ctest("release")] if full else [build("release", "polyphase_optimised_tests"), ctest("release", "-LE", "meaning")]
    if any((ROOT / "tests" / "python").glob("**/test_*.py")):
        more = ["--full"] if full else []
        spread = ["-n", str(os.cpu_count() or 2), "--dist", "loadfile"]  # a file's tests share what it exported
        plan.append(Step("python", [PYTHON, "-m", "pytest", "-q", *spread, *more, "tests/python"], "pytest",
                         ("setup python", "build release"),
                         {"POLYPHASE_BUILD": str(ROOT / "build" / "release")}))
    return plan


def read_counts(runner: str, output: str, counts: Counts) -> None:
    if runner == "ctest":
        for _, failed, total in CTEST_LINE.findall(output):
            counts.failed += int(failed)
            counts.passed += int(total) - int(failed)
    elif runner == "pytest":
        closing = output.strip().splitlines()[-1] if output.strip() else ""
        for number, word in PYTEST_WORD.findall(closing):
            field = "failed" if word.startswith("error") else word
            setattr(counts, field, getattr(counts, field) + int(number))


def compiler_version(preset: str) -> str:
    cache = (ROOT / "build" / preset / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    return subprocess.run([compiler[1], "-dumpversion"], capture_output=True, text=True, check=True).stdout.split(".")[0].strip()


def warned(step: Step, output: list[str]) -> bool:
    """Whether the compiler warned of something: the release build, which is everybody's, does not stop there."""
    if not step.name.startswith("build ") or not any(WARNING.search(line) for line in output):
        return False
    return compiler_version(step.name.removeprefix("build ")) == OLDEST_GCC


def begin(step: Step, full: bool, output: int | typing.IO) -> subprocess.Popen:
    env = os.environ | {"POLYPHASE_FULL": "1" if full else "0", "BUILD_KEEP_GOING": "1"} | step.env
    return subprocess.Popen(step.command, cwd=ROOT, env=env, text=True, errors="replace", stdout=output, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL)


def run(step: Step, full: bool, counts: Counts) -> bool:
    print(f"\n== {step.name}", flush=True)
    process = begin(step, full, subprocess.PIPE)
    output = []
    for line in process.stdout:
        output.append(line)
        if step.runner != "ctest" or not CLUTTER.match(line):
            print(line, end="", flush=True)
    process.wait()
    before = counts.passed + counts.failed
    read_counts(step.runner, "".join(output), counts)
    if step.runner and counts.passed + counts.failed == before:
        print(f"{step.name}: no test ran")
        counts.failed += 1
        return False
    if process.returncode and not step.runner:
        counts.failed += 1
    elif warned(step, output):  # a failure, but what it built can be tested
        print(f"{step.name}: warnings are errors here")
        counts.failed += 1
    return process.returncode == 0


@dataclasses.dataclass
class Beside:
    """A step that runs beside the others, and the file that takes what it says."""
    process: subprocess.Popen
    said: typing.IO

    def finish(self, name: str, counts: Counts) -> bool:
        self.process.wait()
        self.said.seek(0)
        print(f"\n== {name}\n{self.said.read()}", end="", flush=True)
        counts.failed += self.process.returncode != 0
        return self.process.returncode == 0


def row(name: str, outcome: str, seconds: float) -> str:
    return f"  {name:<16}{outcome:<10}{seconds:7.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full

    counts, results, table, running = Counts(), {}, [], {}
    for step in steps(full):
        started = time.monotonic()
        if step.beside:
            said = tempfile.TemporaryFile("w+")
            running[step.name] = Beside(begin(step, full, said), said)
            continue
        for name in [name for name in step.needs if name in running]:
            results[name] = running.pop(name).finish(name, counts)
            table.append(row(name, "ok" if results[name] else "FAILED", time.monotonic() - started))
        started = time.monotonic()
        missing = [name for name in step.needs if not results.get(name, False)]
        if missing:
            print(f"\n== {step.name}: left out, because {missing[0]} failed")
        results[step.name] = not missing and run(step, full, counts)
        table.append(row(step.name, "ok" if results[step.name] else "left out" if missing else "FAILED", time.monotonic() - started))
    good = all(results.values()) and counts.failed == 0
    print("\n" + "\n".join(table) + "\n")
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
