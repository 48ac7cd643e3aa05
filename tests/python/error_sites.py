"""Every refusal that the sources make: code, message, hint and where, with the helpers that make them followed to their callers."""
from __future__ import annotations

import dataclasses

from cpp_reader import Choice, File, Function, Hole, NotUnderstood, Parameter, Sources, split
from cpp_texts import Reader, Text, joined, letters_in, parameters_in, replaced, spelled, words_in

FOLDERS = ("src", "apps", "include", "python/native")
# Parameters that name the thing a message is about, however many words its callers give it.
THINGS = {"who", "role", "where", "expected", "path", "a_words", "b_words", "left_words", "right_words"}
THINGS_OF = {("mismatch", "what"), ("bind_shape", "what"), ("hold", "what"), ("take", "what"), ("check_shape", "what"),
             ("inner_view", "what"), ("expect_writable", "what"), ("allocate_bytes", "what"), ("find_or_allocate", "what")}
# A helper's parameter whose texts are not at its calls: it takes what functions of this type return.
FED = {("fault_of", "fault"): "Fault"}
# Helpers that say what a table says: in which file the table is, and the holes that its last two columns fill.
TABLES = {("src/wire/onnx_model.cpp", "advice"): ("src/wire/file_kind.cpp", "kind"), ("src/engine/foreign_file.cpp", "hint"): ("src/engine/foreign_file.cpp", "is")}
# Files in which an ErrorCode is only named, never given.
NAMING = {"include/polyphase/result.h", "src/base/result.cpp"}
LEAST_LETTERS = 5
# What stands for the message of a refusal that is passed on: its words are an entry of their own.
ANOTHER = Hole("message")


@dataclasses.dataclass(frozen=True)
class Refusal:
    codes: tuple[str, ...]
    message: Text
    hint: Text
    file: str  # where the words are
    line: int
    weight: int = 0  # how many letters stand there


def put_in(text: Text, name: str, said: Text) -> Text:
    out: list = []
    for part in text:
        out.extend(said if part == Hole(name) else (Choice(tuple(put_in(t, name, said) for t in part.texts), part.repeats),) if isinstance(part, Choice) else (part,))
    return joined(tuple(out))


class Sites:
    def __init__(self, sources: Sources):
        self.sources = sources
        self.reader = Reader(sources)
        self.wordy: dict[Parameter, bool] = {}
        self.accounted: set[tuple[str, int]] = set()
        self.refusals: dict[Refusal, None] = {}
        self.hints_on_the_way: dict[str, Text] = {}  # "file:function" → what it gives a refusal that has none

    def collect(self) -> list[Refusal]:
        for file in self.sources.files.values():
            for at, token in enumerate(file.tokens):
                if token.kind == "name" and token.text.split("::")[-2:-1] == ["ErrorCode"]:
                    self.code(file, at)
                elif token.text == "Error" and file.tokens[at + 1].text == "{" and not self.codes_of(file, at + 1):
                    if file.tokens[at - 1].text != "struct":
                        raise NotUnderstood(f"{file.where(at)}: an Error without an ErrorCode")
                elif token.text in ("message", "hint") and file.tokens[at - 1].text in (".", "->") and file.tokens[at + 1].text in ("=", "+="):
                    self.changed(file, at)
        return list(self.refusals)

    def codes_of(self, file: File, brace: int) -> tuple[str, ...]:
        first = split(file.tokens[brace + 1:file.partner[brace]], ",")[0]
        return tuple(t.text.split("::")[-1] for t in first if t.kind == "name" and "ErrorCode" in t.text.split("::"))

    def code(self, file: File, at: int) -> None:
        tokens = file.tokens
        if file.path in NAMING or tokens[at - 1].text in ("case", "==", "!=") or tokens[at + 1].text in ("==", "!="):
            return
        brace = file.inside[at]
        if brace < 0 or tokens[brace].text != "{" or at > brace + 1 and file.path and not any(t.text == "?" for t in tokens[brace:at]):
            raise NotUnderstood(f"{file.where(at)}: an ErrorCode that stands in no Error{{…}}")
        if not (tokens[brace - 1].text in ("Error", "return", "(") or tokens[brace - 2].text == "Error"):
            raise NotUnderstood(f"{file.where(at)}: an ErrorCode that stands in no Error{{…}}")
        if (file.path, brace) in self.accounted:
            return
        self.accounted.add((file.path, brace))
        parts = split(tokens[brace + 1:file.partner[brace]], ",")
        message = self.reader.text(file, parts[1], brace)
        hint = self.reader.text(file, parts[2], brace) if len(parts) > 2 else ()
        self.follow(Refusal(self.codes_of(file, brace), message, hint, file.path, tokens[brace].line, letters_in(message)))

    def changed(self, file: File, at: int) -> None:
        """`error.hint = …` for a refusal that has none, or `error.message = "…" + error.message`."""
        end = at
        while file.tokens[end].text != ";":
            end += 1
        if file.tokens[at].text == "hint":
            self.hints_on_the_way[f"{file.path}:{file.around(at)[-1].name}"] = self.reader.text(file, file.tokens[at + 2:end], at)
        elif not any(t.text == "message" for t in file.tokens[at + 2:end]):
            raise NotUnderstood(f"{file.where(at)}: a message that is set outside of Error{{…}}")

    # ------------------------------------------------------------ from a helper to its callers

    def argument(self, file: File, at: int, function: Function, index: int) -> Text | None:
        """What a call at `at` gives for a parameter; None if the call is of another function of that name."""
        inner = file.tokens[at + 2:file.partner[at + 1]]
        arguments = split(inner, ",") if inner else []
        if len(arguments) > len(function.parameters):
            return None
        if index < len(arguments):
            return self.reader.text(file, arguments[index], at)
        for where, place in [(function.file, function.at), *self.declarations(function)]:
            default = split(where.tokens[place + 2:where.partner[place + 1]], ",")[index]
            if len(split(default, "=")) > 1:
                return self.reader.text(where, split(default, "=")[1], place)
        return None

    def declarations(self, function: Function) -> list[tuple[File, int]]:
        files = [self.sources.files[path] for path in self.sources.declared_in(function)]
        return [(f, at) for f in files for at in f.calls.get(function.name, []) if not f.around(at) and (f is not function.file or at != function.at)]

    @staticmethod
    def is_thing(parameter: Parameter) -> bool:
        name = parameter.function.parameters[parameter.index][0]
        return name in THINGS or (parameter.function.name, name) in THINGS_OF

    def can_be_words(self, parameter: Parameter) -> bool:
        if parameter not in self.wordy:
            self.wordy[parameter] = False
            if self.is_thing(parameter):
                return False
            function = parameter.function
            for file, at in self.sources.callers(function):
                try:
                    text = self.argument(file, at, function, parameter.index)
                except NotUnderstood:
                    continue  # not a text, so not words
                if text is not None and (words_in(text) or any(map(self.can_be_words, parameters_in(text)))):
                    self.wordy[parameter] = True
                    break
        return self.wordy[parameter]

    def follow(self, refusal: Refusal, depth: int = 0) -> None:
        open_ends = parameters_in(refusal.message) | parameters_in(refusal.hint)
        plain = {p: (Hole(spelled(p.function.parameters[p.index][0])),) for p in open_ends}
        fed = [p for p in open_ends if (p.function.name, p.function.parameters[p.index][0]) in FED]
        if fed:
            for words, file, line in self.returned(FED[(fed[0].function.name, fed[0].function.parameters[fed[0].index][0])]):
                self.follow(self.filled(refusal, {fed[0]: words}, file, line), depth + 1)
            return
        open_wordy = [p for p in open_ends if self.can_be_words(p)]
        refusal = self.filled(refusal, {p: t for p, t in plain.items() if p not in open_wordy})
        if not open_wordy:
            self.add(refusal)
            return
        if depth > 8:
            raise NotUnderstood(f"{refusal.file}:{refusal.line}: helpers call helpers without end")
        function = open_wordy[0].function
        mine = [p for p in open_wordy if p.function is function]
        for file, at in self.sources.callers(function):
            values = {p: self.argument(file, at, function, p.index) for p in mine}
            if any(v is None for v in values.values()):
                continue
            speaks = any(words_in(v) for v in values.values())
            kept = {p: v if self.says(v) or speaks and all(isinstance(part, str) for part in v) else plain[p] for p, v in values.items()}
            self.follow(self.filled(refusal, kept, file.path, file.tokens[at].line), depth + 1)

    def says(self, text: Text) -> bool:
        return words_in(text) or text == (ANOTHER,) or any(map(self.can_be_words, parameters_in(text)))

    @staticmethod
    def filled(refusal: Refusal, values: dict[Parameter, Text], file: str = "", line: int = 0) -> Refusal:
        weight = sum(map(letters_in, values.values()))
        place = (file, line, weight) if weight > refusal.weight else (refusal.file, refusal.line, refusal.weight)
        return Refusal(refusal.codes, replaced(refusal.message, values), replaced(refusal.hint, values), *place)

    def returned(self, type_name: str):
        for file in self.sources.files.values():
            for function in file.functions:
                if not any(t.text == type_name for t in function.returns):
                    continue
                for at in range(*function.body):
                    if file.tokens[at].text == "return" and file.tokens[at + 1].kind == "string":
                        yield (file.tokens[at + 1].text,), file.path, file.tokens[at].line

    def rows(self, path: str):
        """The last two texts of every braced row of a file that ends in two."""
        file = self.sources.files[path]
        for at, token in enumerate(file.tokens):
            if token.text != "{" or token.kind != "mark":
                continue
            parts = split(file.tokens[at + 1:file.partner[at]], ",")
            if len(parts) < 3 or any(t.text == ";" and t.kind == "mark" for part in parts for t in part) or not all(parts[-2:]):
                continue
            texts = [self.reader.text(file, part, at) for part in parts[-2:]]
            if all(texts) and all(letters_in(text) > 2 for text in texts):
                yield texts[0], texts[1], token.line

    def add(self, refusal: Refusal) -> None:
        if refusal.message == (ANOTHER,):
            return
        for (path, hint), (table, subject) in TABLES.items():
            if refusal.file == path and refusal.hint == (Hole(hint),):
                for said, advice, line in self.rows(table):
                    self.add(Refusal(refusal.codes, put_in(refusal.message, subject, said), advice, table, line, refusal.weight))
                return
        if letters_in(refusal.message) < LEAST_LETTERS:
            raise NotUnderstood(f"{refusal.file}:{refusal.line}: a message without words of its own: {refusal.message}")
        self.refusals[dataclasses.replace(refusal, message=joined(refusal.message), hint=joined(refusal.hint))] = None
