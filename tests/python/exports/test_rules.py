"""Every rule is needed: without it the target refuses a model or gets it wrong. And it suffices."""
from __future__ import annotations

import pytest
from conftest import ROOT
from engines import need
from rule_cases import CASES
from rules_page import page
from trials import exported, verdict

import polyphase

RULES = {(target["name"], rule["name"]): rule["rewrites"] for target in polyphase.export_targets() for rule in target["rules"]}


def test_every_rule_has_a_case():
    assert sorted(RULES) == sorted(CASES)


@pytest.mark.parametrize("target, rule", [pair for pair, rewrites in RULES.items() if rewrites])
def test_the_rule_is_needed_and_suffices(target, rule, full, tmp_path):
    need(target, full)
    case = CASES[target, rule]()
    without, report = exported(target, case.model, tmp_path, [rule])
    assert rule not in [change["rule"] for change in report["changes"]]
    assert verdict(target, without, case.inputs, case.right) != "right"
    model, report = exported(target, case.model, tmp_path)
    assert rule in [change["rule"] for change in report["changes"]]
    assert report["whole_model_compared"] and report["runs"] > 0
    assert verdict(target, model, case.inputs, case.right) == "right"


@pytest.mark.parametrize("target, rule", [pair for pair, rewrites in RULES.items() if not rewrites])
def test_what_no_rewrite_helps_is_refused(target, rule, full, tmp_path):
    need(target, full)
    case = CASES[target, rule]()
    without, _ = exported(target, case.model, tmp_path, [rule])
    assert verdict(target, without, case.inputs, case.right).startswith("refused")
    (tmp_path / "after.onnx").unlink()
    with pytest.raises(polyphase.UnsupportedError, match=f"does not take it \\(rule {rule}\\)"):
        exported(target, case.model, tmp_path)
    assert not (tmp_path / "after.onnx").exists()


@pytest.mark.parametrize("target, rule", RULES)
def test_check_for_finds_what_the_export_would_rewrite(target, rule, tmp_path):
    case = CASES[target, rule]()
    (tmp_path / "model.onnx").write_bytes(case.model.SerializeToString())
    found = polyphase.check_for(tmp_path / "model.onnx", target)
    assert [finding["node"] for finding in found] == ["up"]
    if RULES[target, rule] and found[0]["rule"] == rule:
        assert not polyphase.check_for(exported_file(target, case, tmp_path), target)


def exported_file(target, case, folder):
    exported(target, case.model, folder)
    return folder / "after.onnx"


def test_the_page_of_rules_is_up_to_date():
    written = (ROOT / "docs/export_rules.md").read_text()
    assert written == page(), "docs/export_rules.md is not what tests/python/exports/rules_page.py writes"
