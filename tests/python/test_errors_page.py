"""docs/errors.md says what the sources say, and what the program says is in it."""
import json
import re

import errors_page
import pytest
from cpp_reader import NotUnderstood, Sources
from errors_page import ROOT, Entry

GIVEN = re.compile(r"ErrorCode::\w+")
NAMED = re.compile(r"case ErrorCode::|[=!]= ErrorCode::|ErrorCode::\w+ [=!]=")
QUOTED = r'(?:"(?:[^"\\\n]|\\.)*"\s*)+'
EXPECTED = re.compile(r"EXPECT_EQ\([^;{}]*?error\(\)\.(message|text\(\)),\s*(" + QUOTED + r")\)")


@pytest.fixture(scope="module")
def index():
    return errors_page.collected()


@pytest.fixture(scope="module")
def matchers(index):
    return [(entry, entry.matcher()) for entry in index[0]]


def found(matchers, text: str) -> Entry | None:
    return next((entry for entry, matcher in matchers if matcher.fullmatch(text)), None)


def test_the_page_is_what_the_sources_say(index):
    assert (ROOT / "docs" / "errors.md").read_text() == errors_page.page(index[0]), "write it again: errors_page.py > docs/errors.md"


def test_every_error_code_of_the_sources_is_accounted_for(index):
    """Counted a second time, by lines and without the reader."""
    given = 0
    for path in [p for folder in errors_page.FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in (".cpp", ".h")]:
        if path.relative_to(ROOT).as_posix() in ("include/polyphase/result.h", "src/base/result.cpp"):
            continue
        for line in path.read_text().splitlines():
            code = line.split("//")[0]
            given += len(GIVEN.findall(code)) - len(NAMED.findall(code)) - code.count("? ErrorCode::")
    assert given == len(index[1].accounted)
    assert {code for entry in index[0] for code in entry.codes} == set(errors_page.CODES)


def test_every_entry_says_what_to_do(index):
    for entry in index[0]:
        assert re.search(r"[A-Za-z]{3}", entry.remedy), entry.template
        assert "[" not in entry.group and entry.template[0] != " ", entry.template


def test_every_cause_belongs_to_an_entry(index):
    templates = [entry.template for entry in index[0]]
    assert [start for start in errors_page.CAUSES if not any(t.startswith(start) for t in templates)] == []


def test_other_words_match_nothing(matchers):
    for text in ("node 'n': the moon is made of cheese. Bring a spoon. (operator Relu, version 14)", "something went wrong.", "'a' is 1, expected 2. Try again."):
        assert found(matchers, text) is None, text


def test_every_message_of_a_hostile_model_is_there(matchers):
    messages = json.loads((ROOT / "tests" / "python" / "hostile_models.json").read_text())
    assert len(messages) > 250
    assert [name for name, text in messages.items() if text and found(matchers, text) is None] == []


def test_messages_that_the_tests_of_the_sources_expect_are_there(index):
    """What C++ tests compare whole: messages alone, or with what to do."""
    patterns = [re.compile(errors_page.pattern(entry.message), re.DOTALL) for entry in index[0]]
    whole = [entry.matcher() for entry in index[0]]
    seen, absent = 0, []
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        for kind, quoted in EXPECTED.findall(path.read_text()):
            text = "".join(errors_page.unescaped(piece) for piece in re.findall(r'"((?:[^"\\\n]|\\.)*)"', quoted))
            seen += 1
            if not any(p.fullmatch(text) for p in (patterns if kind == "message" else whole)):
                absent.append(f"{path.name}: {text}")
    assert seen > 15
    assert absent == []


RUNS = [
    ("run", "{folder}/none.onnx"),
    ("compile", "{folder}/text.onnx", "-o", "{folder}/a.ppe"),
    ("compile", "{folder}", "-o", "{folder}/a.ppe"),
    ("compile", "{model}", "-o", "{folder}/none/a.ppe"),
    ("compile", "{model}", "-o", "{folder}/a.ppe", "--shape", "nobody=1x3"),
    ("compile", "{model}", "-o", "{folder}/a.ppe", "--shape", "x"),
    ("compile", "{model}", "-o", "{folder}/a.ppe", "--shape", "x=1x?"),
    ("compile", "{model}", "-o", "{folder}/a.ppe", "--dim", "H=9..1"),
    ("compile", "{model}", "-o", "{folder}/a.ppe", "--target", "abacus"),
    ("compile", "{model}", "-o", "{folder}/a.ppe", "--without", "no_such_pass"),
    ("run", "{folder}/cut.ppe", "--outputs", "{folder}/o.npz"),
    ("run", "{model}", "--input", "x={folder}/text.npy", "--outputs", "{folder}/o.npz"),
    ("run", "{model}", "--input", "x={folder}/small.npy", "--outputs", "{folder}/o.npz"),
    ("run", "{model}", "--input", "y={folder}/small.npy", "--outputs", "{folder}/o.npz"),
    ("run", "{model}", "--outputs", "{folder}/o.npz"),
    ("extract", "{model}", "--from", "x", "--to", "nobody", "-o", "{folder}/part.onnx"),
]


def test_what_the_program_says_is_there(matchers, polyphase, tmp_path):
    import numpy as np
    from onnx import TensorProto, helper, save

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "H", "W"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="n")], "g", [x], [y])
    model = tmp_path / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    (tmp_path / "text.onnx").write_text("I am not a model.\n")
    (tmp_path / "text.npy").write_text("I am not an array, but long enough for a header.\n")
    np.save(tmp_path / "small.npy", np.zeros((1, 2, 4, 4), np.float32))
    polyphase("compile", model, "-o", tmp_path / "whole.ppe")
    (tmp_path / "cut.ppe").write_bytes((tmp_path / "whole.ppe").read_bytes()[:200])
    for run in RUNS:
        words = polyphase(*[word.format(folder=tmp_path, model=model) for word in run], expect=1).stderr
        refusals = re.findall(r"^polyphase: error: (.*?)\n*\Z", words, re.DOTALL | re.MULTILINE)
        assert refusals, f"{run}: {words}"
        assert found(matchers, refusals[0]) is not None, f"{run}: no entry for: {refusals[0]}"


@pytest.mark.parametrize("body", [
    "Error f() { return Error{ErrorCode::io, spell([] { return 1; }), \"Do this.\"}; }",
    "Error f() { return make(ErrorCode::io, \"it broke\"); }",
    "Error f(Error e) { e.message = \"other words\"; return e; }",
    "Error f(int a) { return Error{ErrorCode::io, std::to_string(a), \"Do this.\"}; }",
    "Error f() { return Error{ErrorCode::io, \"it broke for good.\"}; }",
])
def test_a_way_of_writing_that_the_reader_does_not_know_is_refused(body, tmp_path):
    (tmp_path / "src" / "api").mkdir(parents=True)
    (tmp_path / "src" / "api" / "new.cpp").write_text(body + "\n")
    with pytest.raises(NotUnderstood):
        errors_page.collected(Sources(tmp_path, ("src",)))
