"""Pages and `tilewright explain` show the definitions of the glossary."""

from __future__ import annotations

from tests import sample_reports as reports
from tilewright.records import Finding, Label, Rejected
from tilewright.records.codes import FindingCode
from tilewright.reports.glossary import definitions, terms_html, terms_of


def test_every_finding_code_has_a_definition():
    assert [code for code in FindingCode if not definitions().get(code)] == []


def test_the_codes_of_a_report_are_defined_once_and_in_order():
    finding = Finding(check="c", code="unused_kernel", summary="s", weight="decisive")
    report = reports.incorrect().model_copy(
        update={
            "outcome": Rejected(findings=(finding,)),
            "findings": (finding, finding.model_copy(update={"code": "code of a plug-in"})),
            "labels": (Label(name="library_call", detail="d"),) * 2,
        }
    )
    found = terms_of(report)
    assert list(found)[:2] == ["unused_kernel", "library_call"]
    assert found["unused_kernel"] == definitions()["unused_kernel"]


def test_the_html_has_every_term_as_text():
    page = terms_html()
    assert page.count("<dt>") == len(definitions())
    assert "<dt>A/A run</dt><dd>An evaluation that compares" in page
