"""Reads what C++ sources say: tokens, functions, calls, and the text that an expression makes.

A text is a list of parts: words that stand in the source, holes for what is filled in while the program runs, and choices. The reader
knows the ways in which this code base writes messages. What it does not know is NotUnderstood, never left out.
"""
from __future__ import annotations

import bisect
import dataclasses
import pathlib
import re

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<hash>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)"""
    r"""|(?P<raw>R"(?P<fence>[^(\s]*)\((?P<inside>.*?)\)(?P=fence)")|(?P<text>"(?:[^"\\\n]|\\.)*")(?:sv|s)?\b|(?P<plain>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<char>'(?:[^'\\\n]|\\.)+')|(?P<number>\.?\d(?:[eEpP][+-]|['.\w])*)|(?P<name>(?:::)?[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*)"""
    r"""|(?P<mark>->|\+\+|--|\+=|-=|\*=|/=|\|=|&=|==|!=|<=|>=|&&|\|\||<<|::|\.\.\.|[-+*/%&|^~!<>=?:;,.(){}\[\]])""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
OPEN, CLOSE = {"(": ")", "{": "}", "[": "]"}, {")", "}", "]"}
NOT_CALLS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "noexcept", "alignof", "static_assert", "constexpr", "else", "case"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\"}


class NotUnderstood(Exception):
    """A way of writing that the reader has not been taught."""


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    line: int


@dataclasses.dataclass(frozen=True)
class Hole:
    name: str


@dataclasses.dataclass(frozen=True)
class Parameter:
    function: "Function"
    index: int


@dataclasses.dataclass(frozen=True)
class Choice:
    texts: tuple[tuple, ...]
    repeats: bool = False  # any of them, any number of times


@dataclasses.dataclass(eq=False)
class Function:
    name: str  # "" for a lambda without a name
    file: "File"
    at: int  # of its name
    body: tuple[int, int]  # of its braces
    parameters: list[tuple[str, list[Token]]]  # with the tokens of the default value
    returns: list[Token]

    @property
    def is_local(self) -> bool:
        """Seen in its own file only: a lambda, or in a namespace without a name."""
        tokens, at = self.file.tokens, self.at
        if tokens[at].text == "[":
            return True
        while self.file.inside[at] >= 0:
            at = self.file.inside[at]
            if tokens[at - 1].text == "namespace":
                return True
        return False


def unescaped(literal: str) -> str:
    return re.sub(r"\\(x[0-9a-fA-F]+|.)", lambda m: ESCAPES.get(m[1], m[1]) if m[1][0] != "x" else chr(int(m[1][1:], 16)), literal)


def tokens_of(text: str) -> list[Token]:
    out, at, line = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise NotUnderstood(f"line {line}: {text[at:at + 20]!r}")
        kind = match.lastgroup if match.lastgroup not in ("fence", "inside") else "raw"
        if kind == "raw":
            out.append(Token("string", match["inside"], line))
        elif kind in ("text", "plain"):
            out.append(Token("string", unescaped(match[kind][1:-1]), line))
        elif kind == "char":
            out.append(Token("string", unescaped(match["char"][1:-1]), line))
        elif kind not in ("skip", "hash"):
            out.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        at = match.end()
    return out


def split(tokens: list[Token], mark: str) -> list[list[Token]]:
    """At a mark outside of all brackets; template arguments count as brackets where they look like some."""
    parts, depth, angle = [[]], 0, 0
    for i, token in enumerate(tokens):
        if token.kind == "mark":
            if token.text in OPEN:
                depth += 1
            elif token.text in CLOSE:
                depth -= 1
            elif token.text == "<" and i and (tokens[i - 1].text in ("static_cast", "std::array", "std::vector", "std::map", "std::span", "Result", "std::pair", "std::optional",
                                                                      "std::function", "reinterpret_cast", "std::get", "std::set", "std::initializer_list") or angle):
                angle += 1
            elif token.text == ">" and angle:
                angle -= 1
            elif token.text == mark and depth == 0 and angle == 0:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts


class File:
    def __init__(self, path: pathlib.Path, root: pathlib.Path):
        self.path = path.relative_to(root).as_posix()
        text = path.read_text()
        self.includes = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
        self.tokens = tokens_of(text)
        self.partner: dict[int, int] = {}
        self.inside: list[int] = []  # of each token: the bracket around it, -1 for none
        stack = []
        for i, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in CLOSE:
                if not stack:
                    raise NotUnderstood(f"{self.path}:{token.line}: a bracket closes nothing")
                self.partner[i] = stack[-1]
                self.partner[stack.pop()] = i
            self.inside.append(stack[-1] if stack else -1)
            if token.kind == "mark" and token.text in OPEN:
                stack.append(i)
        self.functions = sorted(self.find_functions(), key=lambda f: f.body)
        self.starts = [f.body[0] for f in self.functions]
        self.calls: dict[str, list[int]] = {}
        for i, token in enumerate(self.tokens[:-1]):
            if token.kind == "name" and self.tokens[i + 1].text == "(" and self.tokens[i + 1].kind == "mark":
                self.calls.setdefault(token.text.split("::")[-1], []).append(i)

    def find_functions(self):
        tokens = self.tokens
        for i, token in enumerate(tokens[:-1]):
            if token.kind == "name" and tokens[i + 1].kind == "mark" and tokens[i + 1].text == "(" and token.text not in NOT_CALLS:
                yield from self.function(i, token.text.split("::")[-1], i + 1, self.before(i))
            elif token.kind == "mark" and token.text == "[" and (i == 0 or tokens[i - 1].kind == "mark" and tokens[i - 1].text not in (")", "]") or tokens[i - 1].text == "return"):
                after = self.partner[i] + 1
                if after < len(tokens) and tokens[after].text == "<":
                    while tokens[after].text != "(":
                        after += 1
                if after >= len(tokens) or tokens[after].text not in ("(", "{"):
                    continue
                name = tokens[i - 2].text if i > 1 and tokens[i - 1].text == "=" and tokens[i - 2].kind == "name" else ""
                if tokens[after].text == "{":
                    yield Function(name, self, i, (after, self.partner[after]), [], [])
                else:
                    yield from self.function(i, name, after, [])

    def before(self, at: int) -> list[Token]:
        """The tokens of a declaration in front of its name."""
        start = at
        while start and self.tokens[start - 1].text not in (";", "{", "}", ")", ":", "public", "private") and at - start < 20:
            start -= 1
        return self.tokens[start:at]

    def function(self, at: int, name: str, bracket: int, returns: list[Token]):
        tokens, end = self.tokens, self.partner[bracket] + 1
        while end < len(tokens) and tokens[end].text in ("const", "noexcept", "override", "final", "mutable", "&"):
            end += 1
        if end < len(tokens) and tokens[end].text == "->":
            start = end + 1
            while end < len(tokens) and tokens[end].text not in ("{", ";", ")", ","):
                end += 1
            returns = tokens[start:end]
        if end < len(tokens) and tokens[end].text == ":" and tokens[end].kind == "mark":  # a constructor's members
            while end < len(tokens) and not (tokens[end].text == "{" and tokens[end - 1].text in (")", "}")):
                end = self.partner[end] + 1 if tokens[end].text in OPEN and tokens[end].kind == "mark" else end + 1
                if tokens[end - 1].text == ";":
                    return
        if end >= len(tokens) or tokens[end].text != "{" or tokens[end].kind != "mark":
            return
        parameters = []
        inner = tokens[bracket + 1:self.partner[bracket]]
        for one in split(inner, ",") if inner else []:
            pieces = split(one, "=")
            names = [t.text for t in pieces[0] if t.kind == "name"]
            parameters.append((names[-1] if len(names) > 1 else "", pieces[1] if len(pieces) > 1 else []))
        yield Function(name, self, at, (end, self.partner[end]), parameters, returns)

    def around(self, at: int) -> list[Function]:
        """The functions whose bodies hold a token, the innermost first."""
        last = bisect.bisect_right(self.starts, at)
        return [f for f in reversed(self.functions[:last]) if f.body[0] < at < f.body[1]]

    def where(self, at: int) -> str:
        return f"{self.path}:{self.tokens[at].line}"


class Sources:
    """All files, and which function a call means."""

    def __init__(self, root: pathlib.Path, folders: tuple[str, ...]):
        paths = [p for folder in folders for p in sorted((root / folder).rglob("*")) if p.suffix in (".cpp", ".h")]
        self.files = {}
        for path in paths:
            try:
                file = File(path, root)
            except NotUnderstood as problem:
                raise NotUnderstood(f"{path}: {problem}") from None
            self.files[file.path] = file
        self.by_name: dict[str, list[Function]] = {}
        for file in self.files.values():
            for function in file.functions:
                if function.name:
                    self.by_name.setdefault(function.name, []).append(function)
        self.reach: dict[str, set[str]] = {}

    def reached(self, file: File) -> set[str]:
        """The headers that a file sees."""
        if file.path not in self.reach:
            seen, todo = set(), [file]
            while todo:
                for name in todo.pop().includes:
                    for path in (f"src/{name}", f"apps/{name}", f"include/{name}", f"python/{name}"):
                        if path in self.files and path not in seen:
                            seen.add(path)
                            todo.append(self.files[path])
            self.reach[file.path] = seen
        return self.reach[file.path]

    def declared_in(self, function: Function) -> list[str]:
        if function.file.path.endswith(".h"):
            return [function.file.path]
        if function.is_local:
            return []
        return [path for path in self.reached(function.file) if any(not self.files[path].around(at) for at in self.files[path].calls.get(function.name, []))]

    def meant(self, file: File, at: int) -> list[Function]:
        """The functions that a call may mean: those of the file itself, else those that its headers declare."""
        candidates = self.by_name.get(file.tokens[at].text.split("::")[-1], [])
        own = [f for f in candidates if f.file is file and f.at != at]
        if own:
            outer = {g for g in file.around(at)}
            visible = [f for f in own if not file.around(f.at) or outer & set(file.around(f.at))]
            return visible or own
        seen = self.reached(file)
        return [f for f in candidates if any(path in seen for path in self.declared_in(f))]

    def callers(self, function: Function):
        """Every call of a function: the file and the place of its name."""
        for file in self.files.values():
            for at in file.calls.get(function.name, []):
                if (file is not function.file or at != function.at) and function in self.meant(file, at):
                    if file.tokens[at - 1].kind == "name" and file.tokens[at - 1].text not in ("return", "else"):
                        continue  # a declaration
                    yield file, at
