"""docs/guides/plugins.md does what it says: its file compiles as its command says, its programs and commands run, its comments come out."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import subprocess

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/guides/plugins.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder as the reader has it: the file, the headers, and a model with a node of it."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "include").symlink_to(ROOT / "include")
    (folder / "soft_clip.c").write_text(blocks("c")[0])
    subprocess.run(blocks("sh")[0].replace("-std=c99", "-std=c99 -Wall -Wextra -Wpedantic -Werror"), shell=True, check=True, cwd=folder)
    node = helper.make_node("SoftClip", ["x"], ["y"], name="clip", domain="com.example", limit=2.0)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "W"])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]), folder / "model.onnx")
    return folder


def test_the_programs_and_commands_run(polyphase, workplace, monkeypatch):
    import polyphase as package

    monkeypatch.chdir(workplace)
    names: dict[str, object] = {"polyphase": package}
    first, second, _ = blocks("python")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(first, names)
    promised = [line.partition("  # ")[2].strip() for line in first.splitlines() if line.startswith("print(")]
    assert said.getvalue().splitlines() == promised == ["(2, Size('3*W'))", "2.0"]
    exec(second, names)
    x = np.linspace(-9, 9, 10, dtype=np.float32).reshape(2, 5)
    np.testing.assert_allclose(names["engine"](x), np.tile(2 * np.tanh(x / 2), (1, 3)), atol=1e-6)
    commands = blocks("sh")[1].splitlines()
    assert len(commands) == 3
    for command in commands:
        program, *words = command.split()
        assert program == "polyphase"
        polyphase(*words)


def test_pytorch_reaches_it_by_its_overload(workplace, tmp_path, monkeypatch):
    import polyphase

    @torch.library.custom_op("example::soft_clip", mutates_args=())
    def soft_clip(x: torch.Tensor, limit: float, times: int = 1) -> torch.Tensor:
        return (limit * torch.tanh(x / limit)).repeat(*[1] * (x.ndim - 1), times)

    @soft_clip.register_fake
    def _(x, limit, times=1):
        return x.new_empty(*x.shape[:-1], x.shape[-1] * times)

    class Clip(torch.nn.Module):
        def forward(self, x):
            return soft_clip(x, 3.0, 2) + soft_clip(x, 1.0).sum()

    x = torch.randn(3, 4, 5) * 4
    engine = polyphase.compile(Clip(), (x,), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}}, plugins=[workplace / "soft_clip.so"])
    np.testing.assert_allclose(engine(x).numpy(), Clip()(x).numpy(), atol=1e-5)
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("POLYPHASE_CACHE_DIR", str(tmp_path))
    names = {"torch": torch, "net": Clip()}
    exec(blocks("python")[2], names)
    with torch.no_grad():
        torch.testing.assert_close(names["net"](x), Clip()(x), atol=1e-5, rtol=1e-5)
    assert polyphase.explain(Clip(), x, options={"plugins": ["soft_clip.so"]})["whole"]
    with pytest.raises(polyphase.Error, match="x must be float32 with an axis, and times at least 1"):
        polyphase.compile(Clip(), (x.double(),), plugins=[workplace / "soft_clip.so"])

