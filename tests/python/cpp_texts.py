"""The text that a C++ expression makes, as parts: words of the source, holes, parameters of the function around it, choices."""
from __future__ import annotations

import re

from cpp_reader import Choice, File, Function, Hole, NotUnderstood, Parameter, Sources, Token, split

Text = tuple  # of str, Hole, Parameter, Choice
WRAPPERS = {"std::string", "std::string_view", "std::move", "wire::printable", "printable", "shown_name", "plain", "std::as_const"}
HOLE_NAMES = {"i": "number", "k": "number", "j": "number", "n": "number", "c": "character", "x": "operand", "index": "number", "at": "place", "first": "value",
              "second": "value", "get": "value", "w": "weight", "b": "other", "cut": "reason", "words of": "reason", "zip strerror": "reason", "sf strerror": "reason",
              "zip file strerror": "reason", "dim": "size", "words": "words"}
MEMBERS_TO_DROP = {"text", "c_str", "value", "front", "get", "data", "name", "c_string", "str", "begin", "string", "parameter", "what", "number"}


def words_in(text: Text) -> bool:
    """Whether a text has words of its own, more than a name or a sign."""
    return any(" " in p.strip() if isinstance(p, str) else isinstance(p, Choice) and any(words_in(t) for t in p.texts) for p in text)


def letters_in(text: Text) -> int:
    return sum(len(re.findall(r"[A-Za-z]", p)) if isinstance(p, str) else max(map(letters_in, p.texts)) if isinstance(p, Choice) and not p.repeats else 0 for p in text)


def parameters_in(text: Text) -> set[Parameter]:
    out = set()
    for part in text:
        if isinstance(part, Parameter):
            out.add(part)
        elif isinstance(part, Choice):
            for one in part.texts:
                out |= parameters_in(one)
    return out


def joined(text: Text) -> Text:
    out: list = []
    for part in text:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return tuple(out)


def replaced(text: Text, values: dict[Parameter, Text]) -> Text:
    out: list = []
    for part in text:
        if isinstance(part, Parameter) and part in values:
            out.extend(values[part])
        elif isinstance(part, Choice):
            out.append(Choice(tuple(replaced(t, values) for t in part.texts), part.repeats))
        else:
            out.append(part)
    return joined(tuple(out))


def spelled(name: str) -> str:
    name = name.split("::")[-1].strip("_").replace("_", " ")
    return HOLE_NAMES.get(name, name)


class Reader:
    def __init__(self, sources: Sources):
        self.sources = sources
        self.depth = 0

    def text(self, file: File, tokens: list[Token], at: int) -> Text:
        """The text of an expression that stands at token `at` of the file."""
        return joined(self.expression(file, tokens, at))

    def fail(self, file: File, tokens: list[Token], at: int):
        raise NotUnderstood(f"{file.where(at)}: no reading for: {' '.join(t.text for t in tokens)[:200]}")

    def expression(self, file: File, tokens: list[Token], at: int) -> Text:
        if not tokens:
            return ()
        question = split(tokens, "?")
        if len(question) > 1:
            rest = tokens[len(question[0]) + 1:]
            colon = split(rest, ":")
            if len(colon) < 2:
                self.fail(file, tokens, at)
            yes, no = colon[0], rest[len(colon[0]) + 1:]
            return (Choice((self.text(file, yes, at), self.text(file, no, at))),)
        pieces = split(tokens, "+")
        if len(pieces) > 1:
            return tuple(part for piece in pieces for part in self.expression(file, piece, at))
        return self.primary(file, tokens, at)

    def primary(self, file: File, tokens: list[Token], at: int) -> Text:
        while tokens[0].text in ("*", "&") and tokens[0].kind == "mark" and len(tokens) > 1:
            tokens = tokens[1:]
        if all(t.kind == "string" for t in tokens):
            return ("".join(t.text for t in tokens),)
        last = tokens[-1]
        if tokens[0].kind == "mark" and tokens[0].text == "(" and self.closes(tokens, 0) == len(tokens) - 1:
            return self.expression(file, tokens[1:-1], at)
        if tokens[0].kind == "mark" and tokens[0].text == "{" and len(tokens) == 2:
            return ()
        if len(tokens) == 1 and last.kind == "name":
            return self.name(file, last.text, at)
        if tokens[0].kind == "name" and len(tokens) > 2 and tokens[1].text in ("(", "{") and self.closes(tokens, 1) == len(tokens) - 1:
            return self.call(file, tokens, at)
        # X.substr(…) is X cut short.
        for i in range(len(tokens) - 3, 0, -1):
            if tokens[i].text == "substr" and tokens[i - 1].text == "." and self.closes(tokens, i + 1) == len(tokens) - 1:
                return self.expression(file, tokens[:i - 1], at)
        if (tokens[0].kind == "name" or tokens[0].text == "(") and all(t.kind in ("name", "number", "string") or t.text in (".", "->", "(", ")", "[", "]", ",", "<", ">", "::", "-", "+", "*", "&", "{", "}", "?", ":", "==", "/") for t in tokens):
            return (Hole(self.hole_name(tokens)),)
        self.fail(file, tokens, at)

    def closes(self, tokens: list[Token], start: int) -> int:
        depth = 0
        for i in range(start, len(tokens)):
            if tokens[i].kind == "mark" and tokens[i].text in "({[":
                depth += 1
            elif tokens[i].kind == "mark" and tokens[i].text in ")}]":
                depth -= 1
                if depth == 0:
                    return i
        return -1

    def hole_name(self, tokens: list[Token]) -> str:
        """A readable name for what an expression gives: its last word that says something."""
        text = "".join(t.text for t in tokens)
        operand = re.search(r"\b(?:type|shape|rank|input)\((\w+)\)", text)
        if operand and re.search(r"^(?:context|node_?|given|make)\b", text):
            what = re.search(r"\b(type|shape|rank)\(", text)
            return f"{what[1] if what else 'type'} of operand {operand[1] if operand[1].isdigit() else 'number'}"
        counted = text.endswith(".size()") or text.endswith("_size()")
        names, depth = [], 0
        for token in tokens:
            if token.kind == "mark" and token.text in "([<":
                depth += 1
            elif token.kind == "mark" and token.text in ")]>":
                depth -= 1
            elif token.kind == "name" and (depth == 0 or tokens[0].text == "static_cast"):
                names.append(token.text)
        names = [n for n in names if n not in ("static_cast", "std::int64_t", "int", "std::size_t", "long long")]
        while len(names) > 1 and names[-1] in MEMBERS_TO_DROP | {"size"}:
            names.pop()
        return ("number of " if counted else "") + (spelled(names[-1]) if names else "value")

    def name(self, file: File, name: str, at: int) -> Text:
        if name in ("nullptr", "std::nullopt"):
            return ()
        around = file.around(at)
        for function in around:
            found = self.local(file, function, name, at)
            if found is not None:
                return found
            for index, (parameter, _) in enumerate(function.parameters):
                if parameter == name:
                    return (Parameter(function, index),)
        found = self.constant(file, name)
        return found if found is not None else (Hole(spelled(name)),)

    def constant(self, file: File, name: str) -> Text | None:
        """A text with a name, outside of functions, here or in a header."""
        for path in [file.path, *sorted(self.sources.reached(file))]:
            other = self.sources.files[path]
            for i, token in enumerate(other.tokens[:-2]):
                if token.text != name or other.tokens[i + 1].text != "=" or other.tokens[i + 2].kind != "string" or other.around(i):
                    continue
                if not any(t.text in ("const", "constexpr") for t in other.before(i)):
                    continue
                end = i + 2
                while other.tokens[end].text != ";" or other.tokens[end].kind == "string":
                    end += 1
                return self.text(other, other.tokens[i + 2:end], i)
        return None

    def local(self, file: File, function: Function, name: str, at: int) -> Text | None:
        """A variable of this function that holds a text, with what is appended to it before `at`."""
        tokens, first = file.tokens, function.body[0]
        for i in range(at - 1, first, -1):
            before, after = tokens[i - 1], tokens[i + 1]
            if tokens[i].text != name or tokens[i].kind != "name" or after.text not in ("=", "(", "{", ";", ":") or after.kind == "string":
                continue
            if not (before.kind == "name" and before.text not in ("return", "else", "throw", "case") or before.text in ("&", "*", ">")):
                continue
            if file.inside[i] != -1 and not file.inside[i] < at < file.partner[file.inside[i]]:
                continue  # of a scope that has ended
            declared = [t.text for t in file.before(i)]
            if not any(t in ("std::string", "std::string_view", "auto", "char") for t in declared):
                return (Hole(spelled(name)),)
            return self.declared(file, i, name, at)
        return None

    def declared(self, file: File, i: int, name: str, at: int) -> Text:
        tokens, after = file.tokens, file.tokens[i + 1].text
        in_condition = file.tokens[file.inside[i]].text == "("
        if after == ":" or in_condition and (after != "=" or tokens[file.inside[i] - 1].text != "if"):  # of a loop over things, of TRY
            return (Hole(spelled(name)),)
        end = i + 1
        while tokens[end].text != ";" or tokens[end].kind == "string":
            end = file.partner[end] if tokens[end].kind == "mark" and tokens[end].text in "({[" else end
            end += 1
        if after == "=" and tokens[i + 2].text == "[" and tokens[i + 2].kind == "mark":
            return (Hole(spelled(name)),)  # a lambda
        start = i + 2
        value = tokens[start:end] if after == "=" else [] if after == ";" else tokens[start:file.partner[i + 1]]
        if in_condition and not words_in(self.text(file, value, i)):
            return (Hole(spelled(name)),)
        text = list(self.expression(file, value, i))
        for k in range(end, at):  # NAME += …;
            if tokens[k].text != name or tokens[k + 1].text != "+=":
                continue
            close = k
            while tokens[close].text != ";" or tokens[close].kind == "string":
                close += 1
            more = self.text(file, tokens[k + 2:close], k)
            scope = file.inside[k]
            loop = any(t.text in ("for", "while") for t in tokens[end:k])
            text += more if scope == file.inside[i] and tokens[k - 1].text in (";", "}", "{") else [Choice(((), more), repeats=loop)]
        return joined(tuple(text))

    def call(self, file: File, tokens: list[Token], at: int) -> Text:
        name, inner = tokens[0].text, tokens[2:-1]
        arguments = split(inner, ",") if inner else []
        if name == "std::string" and not arguments:
            return ()
        if name in WRAPPERS and len(arguments) == 1:
            return self.expression(file, arguments[0], at)
        if name == "std::string" and len(arguments) == 2:
            return (Hole("character" if arguments[0][0].text == "1" else "text"),)
        if name in ("wire::quoted_name", "quoted_name", "quoted", "wire::quoted"):
            return ("'", *self.expression(file, arguments[0], at), "'")
        if name == "fmt::format":
            return self.format(file, arguments, at)
        if name in ("std::to_string", "print_attribute", "name_of", "std::string", "std::strerror", "static_cast"):
            return (Hole("reason" if name == "std::strerror" else self.hole_name(arguments[0])),)
        return self.made(file, name, arguments, at) or (Hole(spelled(name)),)

    def made(self, file: File, name: str, arguments: list[list[Token]], at: int) -> Text:
        """What a function of ours that makes a text returns, where that has words."""
        call = next((c for c in file.calls.get(name.split("::")[-1], []) if c >= at), at)
        found = [f for f in self.sources.meant(file, call) if any(t.text in ("std::string", "std::string_view", "char") for t in f.returns)]
        if len(found) != 1 or self.depth > 3:
            return ()
        function, texts = found[0], []
        other = function.file
        self.depth += 1
        try:
            for i in range(*function.body):
                if other.tokens[i].text != "return" or other.around(i)[0] is not function:
                    continue
                end = i + 1
                while other.tokens[end].text != ";" or other.tokens[end].kind == "string":
                    end += 1
                try:
                    one = self.text(other, other.tokens[i + 1:end], i)
                except NotUnderstood:
                    return ()
                texts.append(one)
        finally:
            self.depth -= 1
        if not any(map(words_in, texts)):
            return ()
        values = {Parameter(function, i): self.text(file, argument, at) for i, argument in enumerate(arguments)}
        texts = [replaced(text, values) for text in dict.fromkeys(texts)]
        return texts[0] if len(texts) == 1 else (Choice(tuple(texts)),)

    def format(self, file: File, arguments: list[list[Token]], at: int) -> Text:
        pattern = self.text(file, arguments[0], at)
        if len(pattern) != 1 or not isinstance(pattern[0], str):
            self.fail(file, arguments[0], at)
        out, rest = [], list(arguments[1:])
        for piece in re.split(r"(\{\{|\}\}|\{[^{}]*\})", pattern[0]):
            if piece in ("{{", "}}"):
                out.append(piece[0])
            elif piece.startswith("{"):
                out.extend(self.filled(file, rest.pop(0), at))
            else:
                out.append(piece)
        return tuple(out)

    def filled(self, file: File, tokens: list[Token], at: int) -> Text:
        try:
            return self.expression(file, tokens, at)
        except NotUnderstood:
            return (Hole(self.hole_name(tokens)),)
