"""Reads ctest's JUnit file for tests/run.sh: one line "passed<TAB>COUNT", then one line per case
that failed or was skipped: "failed|skipped<TAB>NAME<TAB>REASON"."""

import re
import sys
import xml.etree.ElementTree as ElementTree

_REASON_CHARS_MAX = 200


def reason(case: ElementTree.Element) -> str:
    """The words after gtest's "Skipped" or "Failure" line, else what ctest itself says."""
    output = case.findtext("system-out") or ""
    found = re.search(r": (?:Skipped|Failure)\n(.*?)(?:\n\n|\n\[|\Z)", output, re.DOTALL)
    if found and found.group(1).strip():
        text = found.group(1)
    else:
        element = case.find("failure")
        element = element if element is not None else case.find("skipped")
        text = (element.get("message") if element is not None else "") or "no reason given"
    return " ".join(text.split())[:_REASON_CHARS_MAX]


def read(path: str) -> tuple[int, list[tuple[str, str, str]]]:
    """(cases passed, [(failed or skipped, name, reason)])."""
    passed, others = 0, []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name", "?"), case.get("status", "")
        if status == "run":
            passed += 1
        elif status == "fail" or case.find("failure") is not None:
            others.append(("failed", name, reason(case)))
        elif case.find("skipped") is not None or status == "disabled":
            # A case that could not be started (its program is missing) is no skip that someone chose.
            chosen = "Skipped" in (case.findtext("system-out") or "") or status == "disabled"
            others.append(("skipped" if chosen else "failed", name, reason(case)))
        else:
            others.append(("failed", name, f"ctest status '{status}'"))
    return passed, others


def main() -> int:
    passed, others = read(sys.argv[1])
    print(f"passed\t{passed}")
    for row in others:
        print("\t".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
