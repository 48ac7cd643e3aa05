"""Reads the whole tree against the rules of the house (ARCHITECTURE.md, CONTRIBUTING.md) and prints every breach."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Which rooms of src/ a room may include, besides itself. What stands in nobody's list is included by nobody.
BELOW_API = ("base ops plugin graph kernel memory wire import passes backends engine lower runtime export tune quantize").split()
MAY_INCLUDE = {
    "base": ["polyphase"],  # include/polyphase has the few types that callers and rooms share: DType, Result
    "ops": ["base"],
    "plugin": ["ops", "base", "polyphase"],
    "graph": ["ops", "base"],
    "kernel": ["ops", "base"],
    "memory": ["base"],
    "wire": ["base"],
    "import": ["wire", "graph", "ops", "base"],
    "passes": ["graph", "ops", "kernel", "base"],
    "backends": ["kernel", "ops", "base"],
    "engine": ["ops", "base"],
    "lower": ["graph", "ops", "kernel", "memory", "engine", "base"],
    "runtime": ["engine", "kernel", "memory", "ops", "base"],
    "export": ["wire", "graph", "ops", "base"],
    "tune": BELOW_API[:14],
    "quantize": BELOW_API[:14],
    "api": [*BELOW_API, "polyphase"],
}
# Parts of a room that do not see each other.
STRANGERS = [("import/onnx", "import/torch"), ("import/onnx", "import/network"), ("import/torch", "import/network"),
             ("backends/cpu", "backends/cuda"), ("backends/cpu", "backends/no_cuda"), ("backends/cuda", "backends/no_cuda")]
ONLY_IN_SOURCES = re.compile(r"(fmt|nlohmann|google/protobuf|flatbuffers|CLI)/")  # too slow to compile for a header
ONNX_PROTO = "onnx/onnx.pb.h"
ONNX_READERS = ("src/wire/", "src/import/onnx/", "src/export/", "tests/")

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
INSTRUCTION_SET = re.compile(r"\b_mm\d*_|immintrin|\b__m\d{3}")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
LEFT_OF_A_MERGE = re.compile(r"<{7} |>{7} |={7}$")
MACHINE_PATH = re.compile(r"/(work|root|home)/\w")
DESTROYED_AT_EXIT = re.compile(r"^\s*static (const )?(auto|std::(?!array|atomic|mutex|string_view)\w+(<.*>)?) \w+( =|\{)")
EMPTY_NAMES = re.compile(r"^(common|misc)$|(^|_)(utils?|helpers?|manager)$")
FIRST_LINE = {".cpp": "// ", ".h": "// ", ".cu": "// ", ".cuh": "// ", ".py": '"""', ".cmake": "# ", ".txt": "# ",
              ".apt": "# ", ".sh": "# ", ".cases": "# ", ".ir": "# ", ".fbs": "// "}
LONG_FILE = 500


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # a source archive without .git
        skip = {"build", ".venv", ".git", ".cache"}
        return sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                      if p.is_file() and p.relative_to(ROOT).parts[0] not in skip)
    return sorted(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def check_include(path: str, quote: str, name: str) -> str:
    parts = path.split("/")
    target = name.split("/")[0]
    if quote == "<":
        if parts[0] == "src" and path.endswith(".h") and ONLY_IN_SOURCES.match(name):
            return f"includes <{name}> in a header; include it in the .cpp, it is slow to compile"
        return ""
    if name == ONNX_PROTO:
        return "" if path.startswith(ONNX_READERS) else f"only {ONNX_READERS} may include {ONNX_PROTO}"
    if parts[0] == "include" or parts[0] in ("apps", "python"):
        own = (ROOT / path).parent / name
        if target != "polyphase" and not own.is_file() and not (ROOT / parts[0] / name).is_file():
            return f'includes "{name}"; {parts[0]}/ stands on include/polyphase alone'
        return ""
    if parts[0] != "src":
        return ""
    room = parts[1]
    if room == "wire" and name.startswith("google/protobuf/") and path.endswith(".cpp"):
        return ""
    if target != room and target not in MAY_INCLUDE[room]:
        allowed = ", ".join(MAY_INCLUDE[room]) or "nothing"
        return f'includes "{name}", but room {room} may include only itself and: {allowed}'
    for one, other in STRANGERS:
        for mine, theirs in ((one, other), (other, one)):
            if path.startswith(f"src/{mine}/") and name.startswith(f"{theirs}/"):
                return f'includes "{name}", but {mine} and {theirs} do not know each other'
    return ""


def check_cpp(path: str, lines: list[str]) -> list[str]:
    found = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        problem = check_include(path, match[1], match[2]) if match else ""
        if path.startswith("src/"):
            if re.match(r"\s*throw\b", line):
                problem = "throws; a user's fault is a Result, ours is a CHECK"
            if INSTRUCTION_SET.search(line) and not path.startswith("src/backends/cpu/simd/"):
                problem = "names an instruction set outside backends/cpu/simd"
            if DESTROYED_AT_EXIT.match(line):
                problem = "is destroyed at exit while other threads may still run; see base/lasting.h"
        if problem:
            found.append(f"{path}:{number}: {problem}")
    if path.endswith((".h", ".cuh")) and "#pragma once" not in lines:
        found.append(f"{path}: no #pragma once")
    return found


def check_first_line(path: str, lines: list[str]) -> list[str]:
    start = FIRST_LINE.get(pathlib.Path(path).suffix)
    if lines and lines[0].startswith("#!"):
        lines, start = lines[1:], start or "# "
    if start is None:
        return []
    if not lines or not lines[0].startswith(start) or len(lines[0]) < len(start) + 5:
        return [f"{path}: the first line does not say what the file is for (a comment that starts with {start.strip()})"]
    return []


def check_source_lists(files: list[str]) -> list[str]:
    """Every .cpp under src/, apps/ and tests/ stands in the CMakeLists.txt of its folder or of a folder above."""
    found = []
    lists = {path: (ROOT / path).read_text() for path in files if path.endswith("CMakeLists.txt")}
    for path in files:
        if not path.endswith(".cpp") or path.split("/")[0] not in ("src", "apps", "tests", "python", "bench"):
            continue
        folder = pathlib.PurePosixPath(path).parent
        for above in [folder, *folder.parents]:
            text = lists.get(str(above / "CMakeLists.txt"), "")
            name = str(pathlib.PurePosixPath(path).relative_to(above))
            if re.search(rf"(^|[\s(/\"]){re.escape(name)}($|[\s)\"])", text, re.MULTILINE):
                break
        else:
            found.append(f"{path}: in no CMakeLists.txt, so it is never compiled")
    room_of = {}  # library -> the room in whose folder it is defined
    for path, text in lists.items():
        if path.startswith("src/"):
            room_of |= {name: path.split("/")[1] for name in re.findall(r"polyphase_room\(\s*NAME\s+(\w+)", text)}
    for path, text in lists.items():
        for room, rooms in re.findall(r"polyphase_room\(\s*NAME\s+(\w+)[^)]*?\bROOMS\s+([\w\s]*?)(?:\bLIBS\b[^)]*)?\)", text):
            for target in rooms.split():
                folder = room_of.get(target, target)
                own = room_of.get(room, room)
                if own in MAY_INCLUDE and folder != own and folder not in MAY_INCLUDE[own]:
                    found.append(f"{path}: room {room} links {target}, which it may not include")
    return found


def named_types(text: str) -> set[str]:
    """The types that a source defines at the scope of a namespace that has a name, by their full name."""
    found, spaces = set(), []
    for line in text.splitlines():
        if match := re.match(r"namespace( [\w:]+)? \{$", line):
            spaces.append((match[1] or " ?").strip())
        elif re.match(r"\}  // namespace", line) and spaces:
            spaces.pop()
        elif (match := re.match(r"(?:struct|class|enum(?: class)?) (\w+)(?!\w|::)[^;(]*\{", line)) and spaces and "?" not in spaces:
            found.add("::".join([*spaces, match[1]]))
    return found


def check_type_names(files: list[str]) -> list[str]:
    """A type of a namespace has one definition: of two, the linker takes the members of either."""
    homes: dict[str, list[str]] = {}
    for path in files:
        one_of_each_cluster = path.startswith("src/backends/cpu/simd/")
        if path.endswith((".cpp", ".h")) and path.split("/")[0] in ("src", "include", "apps", "python") and not one_of_each_cluster:
            for name in named_types((ROOT / path).read_text()):
                homes.setdefault(name, []).append(path)
    return [f"{paths[1]}: {name} is defined in {paths[0]} as well" for name, paths in sorted(homes.items()) if len(paths) > 1]


def main() -> int:
    files = tracked_files()
    found, long_files, read = [], [], 0
    rooms = {path.split("/")[1] for path in files if path.startswith("src/") and path.count("/") > 1}
    found += [f"src/{room}: a room that the table does not know" for room in sorted(rooms - set(MAY_INCLUDE))]
    for path in files:
        if pathlib.Path(path).suffix in (".md", ".onnx", ".pt2", ".npz", ".npy", ".png", ".wav", ".ppe", ".json", ".svg"):
            continue
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        read += 1
        lines = text.splitlines()
        found += check_first_line(path, lines)
        if path.endswith((".cpp", ".h", ".cu", ".cuh")):
            if path.split("/")[0] != "src" or path.split("/")[1] in MAY_INCLUDE:
                found += check_cpp(path, lines)
            if len(lines) > LONG_FILE:
                long_files.append(f"{path}: {len(lines)} lines")
        for part in pathlib.PurePosixPath(path).with_suffix("").parts:
            if EMPTY_NAMES.search(part):
                found.append(f"{path}: the name '{part}' says nothing")
        for number, line in enumerate(lines, 1):
            if LEFT_OF_A_MERGE.match(line):
                found.append(f"{path}:{number}: a merge that was not settled: {line[:20]}")
            if UNFINISHED.search(line):
                found.append(f"{path}:{number}: {UNFINISHED.search(line)[0]}: finish it, or file an issue")
            if MACHINE_PATH.search(line):
                found.append(f"{path}:{number}: the path of one machine: {MACHINE_PATH.search(line)[0]}")
    found += check_source_lists(files)
    found += check_type_names(files)
    for line in long_files:
        print(f"look twice, over {LONG_FILE} lines: {line}")
    for line in found:
        print(line)
    print(f"{read} files read, {len(found)} breaches")
    return 1 if found or not read else 0


if __name__ == "__main__":
    sys.exit(main())
