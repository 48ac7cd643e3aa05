"""docs/guides/layouts.md does what it says: its programs run, and what stands behind a # is printed."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re

import numpy as np
import polyphase
from onnx import TensorProto, helper, numpy_helper, save

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/layouts.md"


def test_the_programs_run(tmp_path, monkeypatch):
    weight = numpy_helper.from_array(np.ones((3, 4, 2, 2), np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", "W"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    save(helper.make_model(helper.make_graph([node], "net", [x], [y], [weight]), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    names = {"polyphase": polyphase, "np": np}
    shown = 0
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block, str(GUIDE), "exec"), names)
        expected = [line.partition("  # ")[2] for line in block.splitlines() if line.startswith("print(")]
        assert said.getvalue().splitlines() == expected
        shown += len(expected)
    assert shown == 4
