"""inspect --html: the page in a real browser: its numbers are those of inspect --json, and no name of a model can harm it."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

import small_models
from browser import Browser
from export import export_onnx
from networks import FAMILIES
from recurrent_networks import SCRIPTED
from test_cli_layers import network

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
# What a reader sees, section by section.
SEEN = """
  const text = (selector) => document.querySelector(selector)?.textContent;
  const rows = (label) => [...document.querySelectorAll(`table[aria-label="${label}"] tbody tr`)].map((tr) => [...tr.cells].map((td) => td.textContent));
  return {
    error: document.documentElement.dataset.error || null, title: document.title,
    sections: [...document.querySelectorAll("section > h2")].map((h) => h.textContent),
    links: [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href")),
    tiles: Object.fromEntries([...document.querySelectorAll(".tile")].map((t) => [t.id, t.querySelector(".figure").textContent])),
    ports: rows("Inputs and outputs"), steps: rows("Steps"), kernels: rows("Kernels by step"), weights: rows("Weights"), blocks: rows("Blocks of the arena"),
    passes: [...document.querySelectorAll(".pass-list .title")].map((t) => t.textContent), chosen: document.querySelector(".pass-list")?.dataset.chosen,
    drawn: [...document.querySelectorAll(".panes svg")].map((svg) => svg.querySelectorAll(".node:not(.port)").length),
    rectangles: document.querySelectorAll("#memory rect.block").length, points: document.querySelectorAll("#steps circle.point").length,
    notes: [...document.querySelectorAll(".note")].map((n) => n.textContent), paper: getComputedStyle(document.body).backgroundColor,
    wide: document.documentElement.scrollWidth > innerWidth, images: document.images.length, scripts: document.scripts.length,
  };
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    return Browser(tmp_path_factory.mktemp("browser"))


def write(polyphase, model, page, *more):
    """The page's path, what inspect --json says beside it, and the page's own data."""
    said = json.loads(polyphase("inspect", model, "--html", page, "--json", "--threads", "1", *more).stdout)
    return page, said, json.loads(DATA.search(page.read_text())[1])


def check_against_json(seen, said, data):
    assert seen["error"] is None and not seen["wide"] and seen["images"] == 0
    assert seen["sections"] == ["Summary", "Passes", "Memory over time", "Steps against the roof", "Kernels", "Weights"]
    assert seen["links"] == ["#summary", "#passes", "#memory", "#steps", "#kernels", "#weights"]
    ports = [["input", p] for p in said["inputs"]] + [["output", p] for p in said["outputs"]]
    assert [[row[0], row[1], row[2], row[3]] for row in seen["ports"]] == [[w, p["name"], p["dtype"], "×".join(p["sizes"])] for w, p in ports]
    assert seen["tiles"]["tile-steps"] == str(len(said["steps"]))
    assert [row[0] for row in seen["steps"]] == [str(i) for i in range(len(said["steps"]))]
    assert [row[-1] for row in seen["steps"]] == [step["node"] for step in said["steps"]]
    placed = said["memory"]["placed"]
    assert seen["rectangles"] == len(data["memory"]["blocks"]) == len(placed) + sum(b["workspace"] for b in data["memory"]["blocks"])
    assert {(b["name"], b["bytes"], b["offset"], b["first"], b["last"]) for b in data["memory"]["blocks"] if not b["workspace"]} == {
        (p["value"], p["bytes"], p["offset"], p["first_step"], p["last_step"]) for p in placed}
    assert sum(int(row[4].replace(",", "")) for row in seen["weights"]) == said["constant_bytes"]
    for row in seen["steps"]:
        assert row[2] and row[3].endswith("%"), row


@pytest.fixture(scope="module")
def unet(polyphase, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    model = network(folder / "unet.onnx")
    return folder, model, *write(polyphase, model, folder / "unet.html", "--dim", "N=2", "--dim", "H=24", "--dim", "W=32")


def test_every_section_says_what_the_json_says(unet, browser):
    _, _, page, said, data = unet
    seen = browser.ask(page, SEEN)
    check_against_json(seen, said, data)
    assert seen["passes"][0] == "all passes together" and "fuse_endings" in seen["passes"]
    assert seen["ports"][0][4] == "2×3×24×32" and seen["ports"][1][4] == "2×2×24×32"
    assert [row[2] for row in seen["kernels"]] == [step["kernels"][0] for step in said["steps"] if step["kernels"]]
    assert seen["points"] > 0 and "unet.onnx" not in seen["title"]
    by_step = {step["index"]: step for step in data["steps"]}
    explained = by_step[0]["candidates"]
    assert sum(one["taken"] for one in explained) == 1 and any(one["refusal"] for one in explained)
    assert page.stat().st_size < 300_000


def test_choosing_a_pass_shows_the_graph_before_and_after(unet, browser):
    _, _, page, _, data = unet
    table = data["passes"]["table"]
    seen = browser.ask(page, """
      const wait = () => new Promise((done) => setTimeout(done, 50));
      const out = [];
      for (const button of document.querySelectorAll(".pass-list button")) {
        button.click();
        await wait();
        out.push({ name: button.querySelector(".title").textContent, current: document.querySelectorAll("[aria-current=true]").length,
          quiet: document.getElementById("passes").textContent.includes("Only constants changed"),
          captions: [...document.querySelectorAll(".panes h4")].map((h) => h.textContent),
          drawn: [...document.querySelectorAll(".panes svg")].map((svg) => svg.querySelectorAll(".node:not(.port)").length),
          marks: ["added", "removed", "changed"].map((kind) => document.querySelectorAll(`.panes .node.${kind}`).length) });
      }
      document.querySelector("[aria-current=true]").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true }));
      return { out, up: document.querySelector(".pass-list").dataset.chosen, error: document.documentElement.dataset.error || null };
    """)
    assert seen["error"] is None and seen["up"] == table[-2]["name"]
    assert len(seen["out"]) == len(table) + 1 and any(one["changed"] for one in table)
    for shown, one in zip(seen["out"], [data["passes"]["all"] | {"name": "all passes together", "changed": True}] + table):
        assert shown["name"] == one["name"] and shown["current"] == 1
        if not one["changed"]:
            assert shown["drawn"] == []
            continue
        assert shown["drawn"] == [one["before"], one["after"]], shown
        assert shown["captions"][0].startswith(f"before: {one['before']} node") and (sum(shown["marks"]) > 0) != shown["quiet"]
    fused = next(one for one in table if one["name"] == "fuse_endings")
    assert fused["changed"] and fused["after"] < fused["before"]
    assert table[-1]["name"] == "choose_layouts"


def test_an_engine_has_no_passes_and_all_else(unet, polyphase, browser, tmp_path):
    _, model, *_ = unet
    polyphase("compile", model, "-o", tmp_path / "unet.ppe")
    page, said, data = write(polyphase, tmp_path / "unet.ppe", tmp_path / "engine.html", "--shape", "x=1x3x16x16")
    seen = browser.ask(page, SEEN)
    check_against_json(seen, said, data)
    assert data["passes"] is None and seen["passes"] == [] and "This report is of an engine" in seen["notes"][0]


def test_dark_and_narrow(unet, browser, tmp_path):
    page = unet[2]
    assert browser.ask(page, SEEN, width=480)["wide"] is False
    light = browser.ask(page, SEEN)["paper"]
    dark = browser.ask(page, SEEN, dark=True)["paper"]
    brightness = lambda colour: sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert brightness(light) > 700 and brightness(dark) < 150
    picture = np.asarray(Image.open(browser.picture(page, tmp_path / "dark.png", dark=True)).convert("L"))
    assert picture.mean() < 90 and picture.max() > 200 and len(np.unique(picture)) > 50


HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "${alert(1)}", "\u2028'\"\\", "]]>&lt;", "x" * 5000, "@data@", "\u202eabc\u0000"]


def test_names_are_text_and_nothing_else(polyphase, browser, tmp_path):
    names = [name.replace("\u0000", "\u0001") for name in HOSTILE]
    constants = [(f"w{name}", np.ones((1, 4, 5), np.float32)) for name in names]
    nodes, last = [], "x" + names[0]
    for i, name in enumerate(names):
        nodes += [helper.make_node("Softmax", [last], [f"s{i}{name}"], name=name, axis=1 + i % 2),
                  helper.make_node("Add", [f"s{i}{name}", f"w{name}"], [f"a{i}{name}"], name=f"add {name}")]
        last = f"a{i}{name}"
    model = small_models.save(tmp_path / "hostile.onnx", nodes, [("x" + names[0], TensorProto.FLOAT, [1, 4, 5])], [(last, TensorProto.FLOAT, None)], constants)
    held = onnx.load(model)
    held.graph.name = names[0]
    onnx.save(held, model)
    page, said, data = write(polyphase, model, tmp_path / "hostile.html")
    assert page.read_text().count("</script>") == 2
    seen = browser.ask(page, SEEN)
    assert seen["error"] is None and seen["images"] == 0 and seen["scripts"] == 3  # data, the page's own, the test's
    assert seen["title"].startswith(names[0]) and seen["ports"][0][1] == "x" + names[0]
    shown = [row[-1] for row in seen["steps"]]
    assert shown == [step["node"] for step in said["steps"]] and len(shown) >= len(names)
    assert max(map(len, shown)) < 300
    assert data["model_name"] == names[0]


def test_loops(polyphase, browser, tmp_path):
    import torch
    make, calls = SCRIPTED["until"]
    torch.manual_seed(1)
    module = torch.jit.script(make().eval())
    names = ["x", "n"][: len(calls[0])]
    torch.onnx.export(module, calls[0], str(tmp_path / "loop.onnx"), dynamo=False, input_names=names, output_names=["out"],
                      dynamic_axes={"x": {0: "N"}}, opset_version=17)
    page, said, data = write(polyphase, tmp_path / "loop.onnx", tmp_path / "loop.html")
    seen = browser.ask(page, SEEN)
    assert seen["error"] is None
    loops = [step for step in data["steps"] if step["kind"] == "loop"]
    inner = [step for step in data["steps"] if step["depth"] > 0]
    assert loops and inner and all(step["label"] == "body" for step in inner)
    assert max(step["runs"] for step in inner) > 2, "every trip is counted"
    assert [step["block"] > 0 for step in said["steps"]] == [step["depth"] > 0 for step in data["steps"]]
    assert all("body ▸" in row[1] for row, step in zip(seen["steps"], data["steps"]) if step["depth"] > 0)
    assert data["timing"]["steps_seconds"] <= data["timing"]["run_seconds"] * 1.5 + 1e-3
    assert any(node["depth"] > 0 for node in data["passes"]["nodes"])


def test_data_decides_sizes(polyphase, browser, tmp_path):
    nodes = [helper.make_node("NonZero", ["x"], ["places"], name="find"), helper.make_node("Cast", ["places"], ["cast"], name="cast", to=TensorProto.FLOAT),
             helper.make_node("Exp", ["cast"], ["y"], name="grow")]
    model = small_models.save(tmp_path / "born.onnx", nodes, [("x", TensorProto.FLOAT, [4, 6])], [("y", TensorProto.FLOAT, None)])
    page, _, data = write(polyphase, model, tmp_path / "born.html")
    seen = browser.ask(page, SEEN)
    assert seen["error"] is None and seen["ports"][1][4] == "its data decides"
    assert not any(step["unknown"] for step in data["steps"]), "the run told the sizes"
    assert data["steps"][-1]["bytes"] > 0


def test_a_family_network(polyphase, browser, tmp_path):
    model = export_onnx(FAMILIES["dcgan"](), tmp_path / "gan.onnx", "dynamo", False)
    page, said, data = write(polyphase, model, tmp_path / "gan.html")
    check_against_json(browser.ask(page, SEEN), said, data)
    packed = [w for w in data["weights"] if w["format"]]
    assert packed and all(w["original_bytes"] > 0 and w["steps"] for w in packed)
    explained = json.loads(polyphase("explain", model, "--no-run", "--json").stdout)["steps"]
    assert [(s["flops"], s["bytes"], s["kernel"]) for s in explained] == [(s["flops"], s["bytes"], s["kernel"]) for s in data["steps"]]


def test_a_large_network_is_told_and_not_drawn(polyphase, browser, tmp_path):
    model = small_models.chain(tmp_path / "long.onnx", [f"softmax_{i}" for i in range(10_000)])
    page, said, data = write(polyphase, model, tmp_path / "long.html", "--shape", "v0=1x4x5")
    assert page.stat().st_size < 12_000_000 and data["passes"]["graphs"] == [None] * len(data["passes"]["graphs"])
    assert data["steps_count"] == len(said["steps"]) == 10_000 and len(data["steps"]) == 5000 and data["steps_left_out"] == 5000
    seen = browser.ask(page, SEEN)
    assert seen["error"] is None and seen["tiles"]["tile-steps"] == "10000"
    assert any("is not drawn" in note for note in seen["notes"]) and any("5,000 of 10,000 steps are listed" in note for note in seen["notes"])


def test_a_run_that_fails_is_told_on_the_page(polyphase, browser, tmp_path):
    nodes = [helper.make_node("Gather", ["x", "i"], ["y"], name="take", axis=0)]
    model = small_models.save(tmp_path / "gather.onnx", nodes, [("x", TensorProto.FLOAT, [1, 4]), ("i", TensorProto.INT64, [9])], [("y", TensorProto.FLOAT, None)])
    page, _, data = write(polyphase, model, tmp_path / "gather.html")
    assert "take" in data["timing"]["error"] and data["timing"]["run_seconds"] == 0
    seen = browser.ask(page, SEEN)
    assert seen["error"] is None and any("ended with an error" in note and "take" in note for note in seen["notes"])
    assert seen["sections"][3] == "Steps against the roof" and len(seen["steps"]) == 1


def test_flags(polyphase, unet, tmp_path):
    model = unet[1]
    assert "--threads requires --html" in polyphase("inspect", model, "--threads", "2", expect=2).stderr
    polyphase("inspect", model, "--html", tmp_path / "p.html", "--without", "fuse_endings")
    data = json.loads(DATA.search((tmp_path / "p.html").read_text())[1])
    assert [one["name"] for one in data["passes"]["table"] if not one["ran"]] == ["fuse_endings"]
    polyphase("inspect", model, "--html", tmp_path / "p.html", "--stop-after", "fold_constants")
    data = json.loads(DATA.search((tmp_path / "p.html").read_text())[1])
    assert [one["ran"] for one in data["passes"]["table"]].count(True) == 4
