"""Writes docs/errors.md: every message that the sources can give, with what it means and what to do.

    errors_page.py > docs/errors.md        test_errors_page.py holds the page to the sources and to what comes out at run time
"""
from __future__ import annotations

import dataclasses
import pathlib
import re

from cpp_reader import Choice, Hole, NotUnderstood, Sources, unescaped
from cpp_texts import Text, letters_in
from error_sites import FOLDERS, Refusal, Sites
from python_refusals import python_refusals

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

CODES = {
    "invalid_argument": "a call or an option is wrong: a name, a shape, a dtype or a value that the caller gave",
    "invalid_model": "the model breaks a rule of its own format or of an operator's definition",
    "unsupported": "legal, but Polyphase does not have it",
    "shape_mismatch": "sizes that are known only when the model runs contradict it",
    "io": "a file cannot be opened, read or written",
    "corrupt": "the bytes of a file are not what they claim to be",
    "incompatible": "a sound engine for another version, CPU or device",
    "out_of_memory": "a limit on memory was reached",
    "cancelled": "the caller or a deadline stopped the run",
}
# What the user was doing: the first pattern that the file's path has. {} is the file's own name, for operators.
GROUPS = [
    (r"src/wire/cut_model|src/api/extract|apps/cli/command_extract", "Cutting a part out of a model"),
    (r"src/export/|src/wire/splice_model|src/api/export|apps/cli/command_export", "Exports for other engines"),
    (r"src/wire/zip_archive|src/import/torch/(archive|guards|importer|program_read|sym_expr|input_names)\.", "Reading a program of torch.export"),
    (r"src/import/torch/(aten_node|translate|schema|table)\.", "Any operator of a program"),
    (r"src/import/torch/(?:convert_)?(\w+)\.", "Operators of a program: {}"),
    (r"src/wire/|src/import/onnx/(importer|import_onnx|opsets|functions|input_shapes)\.", "Reading an ONNX model"),
    (r"src/import/onnx/(missing|translate|node_context|subgraph)", "Any operator of an ONNX model"),
    (r"src/plugin/|src/graph/hold_rule|src/api/plugin\.|src/import/import_model", "Plugins"),
    (r"src/import/network/|src/api/n(etwork|n/)", "Writing a network layer by layer"),
    (r"src/import/compose/", "Any operator of an ONNX model"),
    (r"src/import/onnx/(branch|loop|scan)\.", "If, Loop and Scan of an ONNX model"),
    (r"src/import/onnx/(?:convert_)?(\w+)\.", "Operators of an ONNX model: {}"),
    (r"src/ops/conv_transpose_torch\.", "ConvTranspose as PyTorch has it"),
    (r"src/ops/(conv_transpose_onnx|onnx_window)\.", "ConvTranspose, Conv and pools as ONNX has them"),
    (r"src/ops/(op|rules|window|indices|registry|attributes\w*)\.", "Any operator"),
    (r"src/ops/(\w+)\.", "Operator rules: {}"),
    (r"src/base/(scanner|dim\w*)|src/graph/parse", "Sizes and graphs as text"),
    (r"src/graph/", "Graphs in memory"),
    (r"src/base/layout_name|src/import/border_layouts", "Layouts by their letters"),
    (r"src/passes|src/lower|src/api/(compile|check|engine|layer\w*)\.", "Compiling"),
    (r"src/tune/|src/api/tuning", "Tuning"),
    (r"src/engine/(mapped_file|new_file)\.", "Engine files: opening and writing"),
    (r"src/engine/(file|foreign)\w*\.", "Engine files: reading"),
    (r"src/engine/|src/runtime/program", "Engine files: a program that contradicts itself"),
    (r"src/api/c_", "C API"),
    (r"src/api/dlpack", "DLPack"),
    (r"src/runtime|src/base|src/backends|src/kernel|src/api", "Running"),
    (r"apps/io/", "Arrays, images and sounds"),
    (r"python/", "Python"),
    (r"apps/cli/", "Command line"),
]
ORDER = ["Reading an ONNX model", "Any operator of an ONNX model", "If, Loop", "Operators of an ONNX model", "Reading a program", "Any operator of a program", "Operators of a program", "Writing a network", "Plugins", "ConvTranspose", "Any operator", "Operator rules", "Layouts by", "Compiling", "Tuning",
         "Cutting", "Exports", "Engine files", "Running", "Command line", "Arrays", "C API", "Python", "DLPack", "Sizes and graphs", "Graphs in memory"]
# What a group of messages has in common.
ABOUT = {
    "Reading an ONNX model": "The file itself, its opset, its inputs and outputs, and the weights in it or beside it. The trail at the end of a message names the file.",
    "Any operator of an ONNX model": "These begin with the node's name and end with its operator and the version that the model means.",
    "Reading a program of torch.export": "The archive (.pt2), the network and the weights in it. Nothing in it is run. The trail at the end of a message names the file.",
    "Any operator of a program": "These begin with the node's name and end with its operator and the line of the module that it came from.",
    "Writing a network layer by layer": "Calls of `polyphase/network.h` and of `polyphase.Network`. These begin with the layer's name; the operator's own rules follow further down.",
    "Any operator": "Rules that many operators share, in the words of `docs/operators.md`. A size that is known only when the model runs is checked then, with the same words.",
    "ConvTranspose as PyTorch has it": "The messages are PyTorch's own, so that a search for them finds both.",
    "Tuning": "What only costs the next compilation its time is a warning instead (`docs/tuning.md`).",
    "Engine files: a program that contradicts itself": "The bytes are as they were written, but no compiler writes such a program: the file was made or changed by something else.",
}
# What is not plain from the words: the beginning of the template (from its first word) and one sentence more.
CAUSES = {
    "‹why› Found": "A rule that could not be proved when the model was compiled, because sizes were open; the sizes of this run break it.",
    "‹role› ('‹value›', ‹type›) is computed": "Shapes decide what is compiled, so what they hang on must be a number or a size of an input when the model is read.",
    "the model needs": "Every operator that is missing is listed, so that one look shows what stands in the way. `polyphase check MODEL` says the same without compiling.",
    "operator ‹op› has no kernel": "Reference loops run everything else; this node's types are in none of them.",
    "the engine was compiled for": "Engines hold weights packed for one instruction set.",
    "the intermediate values need": "The plan of all tensors that live at the same time is larger than the limit of the session.",
    "the model has more than ‹max nodes›": "Functions that call functions can grow without bound; the limit keeps a small file from filling the memory.",
    "attribute '‹attribute›' does not belong to ‹op": "A misspelt attribute would silently mean its default.",
    "the branches give": "Only a run would tell which branch is taken, and a tensor has one rank.",
    "input '‹model›' has no shape": "Without a rank nothing can be compiled.",
    "the run did not end": "The deadline was given with the run; what was computed is thrown away.",
    "the options ask for something": "The caller was built against a newer header than this library.",
    "‹what› overlaps itself": "Two elements would share one place in memory, and who writes last would be chance.",
}
MARK = "…"


def filled(text: Text) -> str:
    """The template for people: ‹what is filled in›, ‹one | of several›."""
    out = ""
    for part in text:
        if isinstance(part, str):
            out += part
        elif isinstance(part, Hole):
            out += f"‹{part.name}›"
        elif part.repeats:
            out += MARK
        elif any(not t for t in part.texts):
            out += MARK
        else:
            options = list(dict.fromkeys(filled(t) for t in part.texts))
            if len(options) == 2 and options[1].startswith(options[0]):
                options = [options[0] + MARK]
            out += options[0] if len(options) == 1 else "‹" + " | ".join(options) + "›"
    return re.sub(f"{MARK}(?:{MARK})+", MARK, re.sub(r"\s*\n\s*", " ", out))


def pattern(text: Text) -> str:
    """A regular expression for what comes out."""
    out = ""
    for part in text:
        if isinstance(part, str):
            out += re.escape(part)
        elif isinstance(part, Hole) or part.repeats:
            out += ".*?"
        else:
            out += "(?:" + "|".join(pattern(t) for t in part.texts) + ")"
    return out


@dataclasses.dataclass
class Entry:
    message: Text
    hint: Text
    codes: tuple[str, ...]
    group: str

    @property
    def template(self) -> str:
        return filled(self.message)

    @property
    def remedy(self) -> str:
        return filled(self.hint)

    @property
    def cause(self) -> str:
        return next((cause for start, cause in CAUSES.items() if self.template.startswith(start)), "")

    def matcher(self) -> re.Pattern:
        """Matches the whole text of a refusal: node 'n': MESSAGE HINT (TRAIL)."""
        return re.compile(r"(?:node '.*?': )?(?:input '.*?': )?" + pattern(self.message) + " " + pattern(self.hint) + r"(?: \(.*\))?", re.DOTALL)


def group_of(file: str) -> str:
    for path, title in GROUPS:
        found = re.search(path, file)
        if found:
            return title.format(found[1].replace("_", " ") if "{}" in title else "")
    raise NotUnderstood(f"{file}: errors_page.GROUPS has no group for it")


def hint_of(refusal: Refusal, on_the_way: dict[str, Text]) -> Text:
    """The refusal's own hint, or what the function above it gives those that have none."""
    if refusal.hint:
        return refusal.hint
    giver = None
    if refusal.codes != ("invalid_model",) and not refusal.file.startswith("src/ops/"):
        pass
    elif refusal.file.startswith(("src/import/onnx/", "src/import/compose/", "src/ops/conv_transpose_onnx", "src/ops/onnx_window")):
        giver = "src/import/onnx/translate.cpp:translate_node"
    elif refusal.file.startswith("src/import/torch/"):
        giver = "src/import/torch/translate.cpp:translate_node"
    elif refusal.file.startswith("src/ops/"):
        giver = {"invalid_argument": "src/ops/op.cpp:run_reference", "invalid_model": "src/ops/op.cpp:infer_types"}.get(refusal.codes[0])
    if giver not in on_the_way:
        raise NotUnderstood(f"{refusal.file}:{refusal.line}: a refusal without a hint: {filled(refusal.message)}")
    return on_the_way[giver]


def collected(sources: Sources | None = None) -> tuple[list[Entry], Sites]:
    sites = Sites(sources or Sources(ROOT, FOLDERS))
    found: dict[tuple[str, str], Entry] = {}
    for refusal in [*sites.collect(), *python_refusals(ROOT / "python/polyphase", ROOT)]:
        entry = Entry(refusal.message, hint_of(refusal, sites.hints_on_the_way), refusal.codes, group_of(refusal.file))
        first = found.setdefault((entry.template, entry.remedy), entry)
        first.codes = tuple(dict.fromkeys((*first.codes, *entry.codes)))
    return list(found.values()), sites


def place(group: str) -> tuple[int, str]:
    return next((i for i, start in enumerate(ORDER) if group.startswith(start)), len(ORDER)), group


def slug(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


def code_span(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


HEAD = """# Errors

Written by `tests/python/errors_page.py` from the sources; tests hold it to them and to what comes out at run time.

{count} messages, grouped by what you were doing. Search this page for the plain words of yours. In a template
`‹shape›` stands for what is filled in, `‹a | b›` for one of several, `…` for a part that may be missing or repeated.

A whole refusal reads

    node 'up1': MESSAGE WHAT TO DO (WAY; WAY)

with the node of the model first where there is one, and last the way that led there, innermost first: the operator and its
version, the function around it, the file. The command line puts `polyphase: error: ` in front; `Error` in C++ and `polyphase.Error` in
Python have the parts as `code`, `message`, `hint`, `node` and `trail`, the C API as `polyphase_error_…`.

## Codes

| code | meaning |
|---|---|
{codes}

## Exit codes of the program

| code | meaning |
|---|---|
{exits}

Commands and flags that are not known end with 2 and words of the command line's own, with `polyphase COMMAND --help` to look at.
`polyphase: internal error` is a defect of Polyphase, never of a model: please report it with what led there.

## Contents

{contents}
"""


def exits() -> list[str]:
    lines = []
    for name, number, meaning in re.findall(r"(exit_\w+) = (\d),?(?:\s+// (.*))?", (ROOT / "apps" / "cli" / "exit_code.h").read_text()):
        lines.append(f"| {number} | {meaning or 'done'} |")
    return lines


def page(entries: list[Entry] | None = None) -> str:
    entries = collected()[0] if entries is None else entries
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.group, []).append(entry)
    titles = sorted(groups, key=place)
    contents = [f"- [{title}](#{slug(title)}) ({len(groups[title])})" for title in titles]
    lines = [HEAD.format(count=len(entries), codes="\n".join(f"| {code} | {meaning} |" for code, meaning in CODES.items()), exits="\n".join(exits()),
                         contents="\n".join(contents))]
    used: set[str] = set()
    for title in titles:
        lines += [f'## <a id="{slug(title)}"></a>{title}', ""]
        if ABOUT.get(title):
            lines += [ABOUT[title], ""]
        for entry in sorted(groups[title], key=lambda e: (re.sub(r"‹[^›]*›|[^a-z]", "", e.template.lower()), e.template, e.remedy)):
            words = re.findall(r"[a-z0-9]+", re.sub(r"‹[^›]*›", " ", entry.template.lower()))[:8]
            anchor = base = "-".join(words)
            number = 2
            while anchor in used:
                anchor, number = f"{base}-{number}", number + 1
            used.add(anchor)
            lines.append(f'- <a id="{anchor}"></a>{code_span(entry.template)} ({", ".join(entry.codes)})  ')
            if entry.cause:
                lines.append(f"  {entry.cause}  ")
            lines.append(f"  → {entry.remedy}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
