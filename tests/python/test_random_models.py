"""Random ONNX models through import, every pass and the kernels, against the interpreter (tests/models_at_random/model_trial.cpp).

A failure prints the smallest part of its model that still fails the same way, and the line that repeats it:
    .venv/bin/python tests/python/test_random_models.py SEED [COUNT]
"""
import concurrent.futures
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import onnx
import onnx.printer
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_models  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ.get("POLYPHASE_BUILD", ROOT / "build" / "release")).resolve() / "tests" / "models_at_random" / "model_trial"
CHUNK = 100


def operators() -> set[str]:
    return set(subprocess.run([PROGRAM, "--operators"], check=True, capture_output=True, text=True).stdout.split())


def piece(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


def judge(trials: list[tuple[str, onnx.ModelProto]]) -> dict[int, str]:
    """What the program says of each model, by seed; "died" for the one that it did not survive."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(piece(heading.encode()) + piece(model.SerializeToString()) for heading, model in trials))
        file.flush()
        done = subprocess.run([PROGRAM, file.name], capture_output=True, text=True, errors="replace", timeout=1800)
    answers = {}
    for line in done.stdout.splitlines():
        seed, _, answer = line.partition(" ")
        answers[int(seed)] = answer
    if done.returncode != 0:
        left = [int(heading.split()[0]) for heading, _ in trials if int(heading.split()[0]) not in answers]
        answers[left[0]] = f"died: {done.stderr.strip()[-500:]}"
        answers |= judge([trial for trial in trials if int(trial[0].split()[0]) in left[1:]]) if left[1:] else {}
    return answers


def make(seed: int, known: set[str]) -> tuple[random_models.Maker, onnx.ModelProto]:
    maker = random_models.Maker(seed, known)
    return maker, maker.model()


def kind_of(answer: str) -> str:
    """The stage, and for an Error its words without names and numbers: what a smaller model must share."""
    stage, _, text = answer.partition(":")
    words = [word for word in text.split() if word.isalpha()]
    return stage + ":" + " ".join(words[:6] if "instead of" not in text and "expected" not in text else ["value"])


def smaller(model: onnx.ModelProto, drop: int) -> onnx.ModelProto | None:
    """The model without node `drop`: what it gave is asked of another tensor of the model, or of a constant."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    gone = out.graph.node[drop]
    float_operands = [name for name in gone.input if name and name not in {t.name for t in out.graph.initializer}]
    stand_in = float_operands[0] if float_operands else None
    if stand_in is None or len(gone.output) == 0:
        return None
    names = set(gone.output)
    del out.graph.node[drop]
    for node in out.graph.node:
        for i, name in enumerate(node.input):
            if name in names:
                node.input[i] = stand_in
    return out


def prune(model: onnx.ModelProto, output: int) -> onnx.ModelProto:
    """What output number `output` needs, and nothing else."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    kept = out.graph.output[output].name
    del out.graph.output[:]
    out.graph.output.append(onnx.ValueInfoProto(name=kept))
    needed, nodes = {kept}, []

    def names_in(graph: onnx.GraphProto) -> set[str]:
        found = {output.name for output in graph.output}
        for node in graph.node:
            found |= set(node.input)
            for attribute in node.attribute:
                found |= names_in(attribute.g) if attribute.HasField("g") else set()
        return found

    for node in reversed(out.graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed |= set(node.input)
            for attribute in node.attribute:
                needed |= names_in(attribute.g) if attribute.HasField("g") else set()
    nodes = nodes[::-1]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del out.graph.node[:]
    out.graph.node.extend(copies)
    for field in (out.graph.initializer,):
        kept_items = [item for item in field if item.name in needed]
        copies = [type(item).FromString(item.SerializeToString()) for item in kept_items]
        del field[:]
        field.extend(copies)
    return out


def minimise(seed: int, heading: str, model: onnx.ModelProto, answer: str) -> tuple[str, onnx.ModelProto, str]:
    """Drops outputs, then nodes from the end, as long as the program's answer stays of the same kind."""
    tolerances = heading.split()[1].split(",")

    def trial(candidate: onnx.ModelProto, tolerance: str) -> tuple[str, str]:
        words = heading.split()
        line = " ".join([words[0], tolerance, *words[2:]])
        return line, judge([(line, candidate)]).get(seed, "ok")

    best, tolerance = model, ",".join(tolerances)
    for output in range(len(model.graph.output)):
        candidate = prune(model, output)
        _, found = trial(candidate, tolerances[output])
        if kind_of(found) == kind_of(answer):
            best, tolerance, answer = candidate, tolerances[output], found
            break
    progress = True
    while progress:
        progress = False
        for drop in reversed(range(len(best.graph.node))):
            candidate = smaller(best, drop)
            if candidate is None:
                continue
            candidate = prune(candidate, 0) if len(candidate.graph.output) == 1 else candidate
            _, found = trial(candidate, tolerance)
            if kind_of(found) == kind_of(answer):
                best, answer, progress = candidate, found, True
                break
    return trial(best, tolerance)[0], best, answer


def report(seed: int, known: set[str], answer: str) -> str:
    maker, model = make(seed, known)
    heading, small, answer = minimise(seed, maker.heading(), model, answer)
    path = pathlib.Path(tempfile.gettempdir()) / f"random_model_{seed}.onnx"
    onnx.save(small, path)
    return f"seed {seed}: {answer[:1500]}\n{onnx.printer.to_text(small.graph)}\nheading: {heading}\nsaved as {path}"


def run(first: int, number: int, known: set[str]) -> tuple[dict[int, str], set[str], int]:
    """Every answer that is not "ok", the operators used, and how many models have ten operators or more."""
    failures, used, long = {}, set(), 0

    def chunk(start: int):
        made = [make(seed, known) for seed in range(start, min(start + CHUNK, first + number))]
        return made, judge([(maker.heading(), model) for maker, model in made])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for made, answers in pool.map(chunk, range(first, first + number, CHUNK)):
            for maker, _ in made:
                used |= maker.used
                long += len(maker.nodes) >= 10
                failures |= {maker.seed: answers.get(maker.seed, "no answer")} if answers.get(maker.seed) != "ok" else {}
    return failures, used, long


def test_random_models(full):
    number = 50_000 if full else 400
    known = operators()
    failures, used, long = run(1, number, known)
    texts = [report(seed, known, answer) for seed, answer in list(failures.items())[:3]]
    assert not failures, f"{len(failures)} of {number} fail\n" + "\n\n".join(texts)
    assert long > 0.8 * number
    if full:
        assert sorted(known - used - random_models.LEFT_OUT.keys()) == [], "no random model uses these operators"


def test_minimiser_finds_the_guilty_node():
    """A model of twenty nodes one of which the importer refuses shrinks to few nodes with the same refusal."""
    known = operators()
    maker, model = make(7, known)
    bad = onnx.helper.make_node("Relu", [maker.inputs[0].name], ["bad"], name="bad", surprise=1)
    model.graph.node.insert(0, bad)
    model.graph.output.append(onnx.ValueInfoProto(name="bad"))
    heading = maker.heading().split()
    heading[1] += ",0"
    line = " ".join(heading)
    answer = judge([(line, model)])[7]
    assert "surprise" in answer
    _, small, again = minimise(7, line, model, answer)
    assert len(small.graph.node) == 1 and "surprise" in again


if __name__ == "__main__":
    begin, amount = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    every = operators() - set(os.environ.get("WITHOUT", "").split())
    wrong, seen, _ = run(begin, amount, every)
    print(f"{amount} models, {len(wrong)} fail; operators never used: {sorted(every - seen)}")
    groups: dict[str, list[int]] = {}
    for each, what in wrong.items():
        groups.setdefault(kind_of(what), []).append(each)
    for kind, seeds in sorted(groups.items(), key=lambda item: -len(item[1]))[:12]:
        print(f"\n==== {len(seeds)} × {kind}\n" + report(seeds[0], every, wrong[seeds[0]]))
