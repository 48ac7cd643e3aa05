"""Checks the layout (clang-format) and reads for mistakes (clang-tidy) in all C++ of the repository.

    lint.py --format [--fix]                      every file
    lint.py --tidy build/tidy [--budget-s 240]    every source of that build, last changed first, until the time is up

Preset tidy compiles file by file, so a source that lacks an include fails here, though the presets that compile several sources
at a time never notice. `scripts/build tidy polyphase_generated` makes all that is needed of it.

clang-tidy's clean answers are kept under .cache/tidy, keyed by the source, every header of ours that it includes and the
configuration, so a second run reads only what changed.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "tidy"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
INCLUDE_ROOTS = ("src", "include", "tests", ".")


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def cpp_files() -> list[str]:
    listed = run("git", "ls-files", "-co", "--exclude-standard", "*.cpp", "*.h", "*.cu", "*.cuh").stdout.split("\n")
    return sorted({name for name in listed if name and (ROOT / name).exists()})


def check_format(fix: bool) -> int:
    program = str(ROOT / ".venv" / "bin" / "clang-format")
    if not os.path.exists(program):
        program = shutil.which("clang-format") or sys.exit("lint: no clang-format; run scripts/setup tools")
    files = cpp_files()
    if not files:
        return 0
    result = run(program, *(["-i"] if fix else ["--dry-run", "--Werror", "--ferror-limit=1"]), *files)
    wrong = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error:" in line})
    for name in wrong:
        print(f"{name}: not laid out as .clang-format says; `make format` does it")
    if result.returncode and not wrong:
        print(result.stderr)
    print(f"clang-format: {len(files)} files, {len(wrong)} not as they should be")
    return 1 if result.returncode else 0


def key_of(source: pathlib.Path, command: str) -> str:
    """A hash of everything of ours that clang-tidy would read for this source."""
    seen, todo = {}, [source]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        text = path.read_text(errors="replace")
        seen[path] = text
        for name in INCLUDE.findall(text):
            for candidate in [path.parent / name, *(ROOT / root / name for root in INCLUDE_ROOTS)]:
                if candidate.is_file():
                    todo.append(candidate.resolve())
                    break
    digest = hashlib.sha256(command.encode() + (ROOT / ".clang-tidy").read_bytes())
    for path in sorted(seen):
        digest.update(seen[path].encode())
    return digest.hexdigest()[:32]


def newest_first(names: list[str]) -> list[str]:
    order = {}
    for line in run("git", "log", "--format=", "--name-only", "-n", "400").stdout.splitlines():
        order.setdefault(line, len(order))
    return sorted(names, key=lambda name: (order.get(name, -1), name))


def plain_command(command: str) -> list[str]:
    """The compiler and its options, without ccache before it and without what instruments the code."""
    words = shlex.split(command)
    launcher = [i for i, word in enumerate(words) if os.path.basename(word) == "ccache"]
    return [word for word in words[launcher[0] + 1 if launcher else 0:] if not word.startswith("-fsanitize")]


def read_one(program: str, folder: pathlib.Path, name: str, key: str) -> tuple[str, str]:
    result = run(program, "-p", str(folder), "--quiet", f"--header-filter={ROOT}/(src|include|apps|tests)/.*", name)
    if result.returncode == 0:
        (CACHE / key).touch()
        return name, ""
    said = (result.stdout + result.stderr).splitlines()
    return name, "\n".join(line for line in said if not re.match(r"\d+ warnings? (generated|treated)", line))


def check_tidy(build: pathlib.Path, budget_s: float) -> int:
    program = shutil.which("clang-tidy") or sys.exit("lint: no clang-tidy; run scripts/setup tools")
    CACHE.mkdir(parents=True, exist_ok=True)
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.is_relative_to(build.resolve()):
            continue
        # A kernel is compiled once per cluster; one reading of it, for the widest, is enough.
        commands[str(path.relative_to(ROOT))] = {"directory": entry["directory"], "file": str(path),
                                                 "arguments": plain_command(entry["command"])}
    folder = CACHE / "database"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(commands.values())))

    keys = {name: key_of(ROOT / name, " ".join(commands[name]["arguments"])) for name in commands}
    todo = [name for name in newest_first(list(commands)) if not (CACHE / keys[name]).exists()]
    started, failures, read = time.monotonic(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        waiting = iter(todo)
        running = set()
        while True:
            while len(running) < (os.cpu_count() or 2) and time.monotonic() - started < budget_s:
                name = next(waiting, None)
                if name is None:
                    break
                running.add(pool.submit(read_one, program, folder, name, keys[name]))
            if not running:
                break
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                name, complaint = future.result()
                read += 1
                if complaint:
                    failures += 1
                    print(complaint.strip())
    left = len(todo) - read
    print(f"clang-tidy: {len(commands)} sources, {len(commands) - len(todo)} known to be clean, {read} read, "
          f"{failures} with findings" + (f", {left} left for `make lint` (time budget {budget_s:.0f} s)" if left else ""))
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", action="store_true")
    parser.add_argument("--fix", action="store_true", help="lay the files out instead of complaining")
    parser.add_argument("--tidy", type=pathlib.Path, metavar="build/tidy")
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    args = parser.parse_args()
    status = 0
    if args.format:
        status |= check_format(args.fix)
    if args.tidy:
        status |= check_tidy(ROOT / args.tidy, args.budget_s)
    return status


if __name__ == "__main__":
    sys.exit(main())
