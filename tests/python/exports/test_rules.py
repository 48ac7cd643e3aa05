"""Every rule is needed: without it the target refuses a model or gets it wrong. And it suffices."""
from __future__ import annotations

import pytest
from conftest import ROOT
from rule_cases import CASES
from rules_page import page
from trials import exported, verdict

import polyphase

RULES = [(target["name"], rule["name"]) for target in polyphase.export_targets() for rule in target["rules"]]


def test_every_rule_has_a_case():
    assert sorted(RULES) == sorted(CASES)


@pytest.mark.parametrize("target, rule", RULES)
def test_the_rule_is_needed_and_suffices(target, rule, tmp_path):
    case = CASES[target, rule]()
    without, report = exported(target, case.model, tmp_path, [rule])
    assert rule not in [change["rule"] for change in report["changes"]]
    assert verdict(target, without, case.inputs, case.right) != "right"
    model, report = exported(target, case.model, tmp_path)
    assert rule in [change["rule"] for change in report["changes"]]
    assert report["whole_model_compared"] and report["runs"] > 0
    assert verdict(target, model, case.inputs, case.right) == "right"


def test_the_page_of_rules_is_up_to_date():
    written = (ROOT / "docs/export_rules.md").read_text()
    assert written == page(), "docs/export_rules.md is not what tests/python/exports/rules_page.py writes"
