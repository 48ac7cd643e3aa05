"""docs/performance.md and the guide to upsampling say what the reports in docs/measured say."""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import performance_page as page  # noqa: E402


def test_pages_are_what_the_reports_say():
    found = page.reports()
    assert {page.kind(report) for report in found.values()} == set(page.TITLES)
    assert page.PAGE.read_text() == page.page(found), "write it again: bench/performance_page.py"
    assert page.GUIDE.read_text() == page.guide(page.GUIDE.read_text(), found), "write it again: bench/performance_page.py"
    for picture in re.findall(r"\]\((images/[^)]+)\)", page.PAGE.read_text()):
        assert (page.PAGE.parent / picture).exists(), picture


def test_reports_say_nothing_of_the_folders_of_the_machine():
    for path in page.MEASURED.glob("*.json"):
        assert not re.search(r'"/\w', path.read_text()), path


MOST_ERROR = {"fp32": 2e-5, "bf16": 8e-3}  # relative, in the L2 norm; in bf16 of a layer
MOST_ERROR_OF_NETWORKS = {"fp32": 2e-5, "bf16": 2e-2}  # of layers behind layers


def test_every_row_was_checked_before_it_was_timed():
    for report in page.reports().values():
        most = (MOST_ERROR_OF_NETWORKS if report["settings"]["what"] in ("networks", "packages") else MOST_ERROR)["bf16" if report["settings"].get("precision") == "auto" else report["settings"]["dtype"]]
        for row in report["rows"]:
            for peer, result in row.get("results", {}).items():
                assert (result["ms"] is None) != (result["why_not"] == ""), (row["name"], peer)
                assert result["ms"] is None or result["error"] < most, (row["name"], peer)
