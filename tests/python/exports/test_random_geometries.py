"""Random transposed convolutions: what a target refuses or gets wrong, it takes and gets right after the export."""
from __future__ import annotations

import collections

import pytest
from engines import ENGINES, need
from geometries import draw
from trials import exported, verdict

FULL = (1_600, 400)  # any geometry; such as the target refuses or gets wrong
SLICE = (50, 25)
# Pads that are computed are an operator of ONNX Runtime's own.
COMPUTED_PADS = {"onnx", "openvino", "tensorrt"}


@pytest.mark.parametrize("target", sorted(ENGINES))
def test_every_geometry_is_right_after_the_export(target, full, slice_seed, tmp_path, capsys):
    need(target, full)
    any_wanted, hard_wanted = FULL if full else SLICE
    before = collections.Counter()
    seed, hard, others, wrong = slice_seed * 1_000_000, 0, 0, []
    while hard < hard_wanted or others < any_wanted:
        tricky = others >= any_wanted
        case = draw(seed, tricky, computed=target in COMPUTED_PADS)
        seed += 1
        said = verdict(target, case.model.SerializeToString(), case.inputs, case.right)
        if tricky and said == "right":
            continue
        hard += said != "right"
        others += not tricky
        before[said.split(":")[0]] += 1
        model, report = exported(target, case.model, tmp_path)
        after = verdict(target, model, case.inputs, case.right)
        if after != "right":
            wrong.append(f"{case.label}: {said} → {after}")
        elif said == "right" and report["changes"] and " open " not in case.label:  # open sizes: it may take some and refuse others
            wrong.append(f"{case.label}: rewritten, though {target} takes it: {report['changes']}")
    with capsys.disabled():
        print(f"\n{target}: {sum(before.values())} geometries from seed {slice_seed * 1_000_000}: before {dict(before)}, after {sum(before.values()) - len(wrong)} right")
    assert not wrong, "\n".join(wrong[:20])
