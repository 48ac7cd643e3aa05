"""Random transposed convolutions: what a target refuses or gets wrong, it takes and gets right after the export."""
from __future__ import annotations

import collections

import pytest
from engines import ENGINES, need
from drawn_models import draw
from trials import exported, verdict

from polyphase import UnsupportedError

FULL = (2_000, 400)  # any geometry; such as the target refuses or gets wrong
SLICE = (30, 15)
# Rules that cannot tell the sizes at which their target is right after all.
RIGHT_AT_SOME_SIZES = {("openvino", "output-padding-from-stride-on")}
# Pads that are computed are an operator of ONNX Runtime's own.
COMPUTED_PADS = set(ENGINES) - {"onnxruntime"}


@pytest.mark.parametrize("target", sorted(ENGINES))
def test_every_geometry_is_right_after_the_export(target, full, slice_seed, tmp_path, capsys):
    need(target, full)
    any_wanted, hard_wanted = FULL if full else SLICE
    before = collections.Counter()
    seed, hard, others, refused, wrong = slice_seed * 1_000_000, 0, 0, 0, []
    while hard < hard_wanted or others < any_wanted:
        tricky = others >= any_wanted
        case = draw(seed, tricky, computed=target in COMPUTED_PADS)
        seed += 1
        said = verdict(target, case.model.SerializeToString(), case.inputs, case.right)
        if tricky and said == "right":
            continue
        try:
            model, report = exported(target, case.model, tmp_path)
        except UnsupportedError as refusal:
            assert target == "tvm" and "computes no sizes" in str(refusal) and (" open " in case.label or "pads" in case.inputs), (case.label, refusal)
            refused += 1
            continue
        hard += said != "right"
        others += not tricky
        before[said.split(":")[0]] += 1
        after = verdict(target, model, case.inputs, case.right)
        if after != "right":
            wrong.append(f"{case.label}: {said} → {after}")
        elif said == "right" and " open " not in case.label and any((target, change["rule"]) not in RIGHT_AT_SOME_SIZES for change in report["changes"]):
            wrong.append(f"{case.label}: rewritten, though {target} takes it: {report['changes']}")
    with capsys.disabled():
        print(f"\n{target}: {sum(before.values())} geometries from seed {slice_seed * 1_000_000}: before {dict(before)}, after {sum(before.values()) - len(wrong)} right; "
              f"{refused} more that the export refuses, since {target} cannot say them")
    assert not wrong, "\n".join(wrong[:20])
