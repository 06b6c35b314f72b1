"""The report of a check as files: JSON for whoever reads it by program, JUnit for build servers."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from tillbridge.adapter.conformance import Outcome
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.pos.verdict import KitVerdict


def write_report(path: Path, verdict: KitVerdict) -> None:
    """Write the JSON report, by docs/adapters/report.schema.json. Raises BridgeError."""
    _write(path, json.dumps(verdict.to_json(), indent=2, ensure_ascii=False) + "\n")


def write_junit(path: Path, verdict: KitVerdict) -> None:
    """Write the report as JUnit XML: what is exempt or to do counts as skipped."""
    _write(path, junit(verdict))


def junit(verdict: KitVerdict) -> str:
    """Return the report as JUnit XML."""
    name = f"tillbridge.{verdict.report.adapter}"
    suite = ET.Element("testsuite", name=name)
    failures = {each.check for each in verdict.failures}
    skipped = 0
    for result in verdict.report.results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=name,
            name=result.check,
            time=f"{result.took_ms / 1000:.3f}",
        )
        if result.check in failures:
            failed = ET.SubElement(case, "failure", message=_plain(result.text))
            failed.text = _plain(result.fix)
        elif result.outcome is not Outcome.PASSED:
            skipped += 1
            reason = verdict.exemption(result.check) or result.text
            ET.SubElement(case, "skipped", message=_plain(reason))
    if verdict.broken:
        case = ET.SubElement(suite, "testcase", classname=name, name="quality", time="0")
        ET.SubElement(case, "failure", message=_plain(" ".join(verdict.broken)))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(failures) + bool(verdict.broken)))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    suite.set("time", f"{sum(each.took_ms for each in verdict.report.results) / 1000:.3f}")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Leave out what XML cannot hold: a check tells of names with control characters."""
    return "".join(each for each in text if each >= " " or each in "\n\t")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as failure:
        raise BridgeError(
            _("The report cannot be written: {detail}").format(detail=failure),
            fix=_("Name a file in a folder that is there."),
        ) from failure
