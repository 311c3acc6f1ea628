"""Reads ctest's JUnit file for tests/run.sh: one line "passed<TAB>COUNT", then one line per case
that failed or was skipped: "failed|skipped<TAB>NAME<TAB>REASON".

A ctest case that runs a whole gtest program counts as the tests that its output lists."""

import re
import sys
import xml.etree.ElementTree as ElementTree

_REASON_CHARS_MAX = 600
# gtest's closing line of one test, and its opening line.
_RESULT = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$", re.MULTILINE)


# What a program says as it dies, of itself or by a sanitizer.
_LAST_WORDS = re.compile(r"^.*(?:ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|SUMMARY: |runtime error: "
                         r"|terminate called|what\(\):|Check failed|Assertion).*$", re.MULTILINE)


def _said(output: str) -> str:
    """Where gtest's first "Skipped" or "Failure" lies, and the words after it; empty without one."""
    found = re.search(r"(\S*): (?:(Skipped)|Failure)\n(.*?)(?:\n\n|\n\[|\Z)", output, re.DOTALL)
    if not found:
        return ""
    where, skipped, words = found.groups()
    words = " ".join(words.split())[:_REASON_CHARS_MAX]
    return words if skipped else f"{where.rpartition('/tests/')[2]}: {words}"


def _died(output: str) -> str:
    """What was running where a program ended before its tests did, and its last words."""
    begun = re.findall(r"^\[ RUN +\] (\S+)", output, re.MULTILINE)
    words = [match.group(0).strip() for match in _LAST_WORDS.finditer(output)][:3]
    words = words or output.rstrip().splitlines()[-2:]
    return f"in {begun[-1]}: {' | '.join(words)}"[:_REASON_CHARS_MAX] if begun else ""


def reason(case: ElementTree.Element) -> str:
    """What ctest itself says where it says more than "Failed", and what gtest or a dying program said."""
    element = case.find("failure")
    element = element if element is not None else case.find("skipped")
    message = element.get("message") if element is not None else ""
    output = case.findtext("system-out") or ""
    told = _said(output)
    if not told and case.get("status") == "fail":
        told = " ".join(filter(None, [message, _died(output)]))
    return told or message or "no reason given"


def inside(output: str) -> list[tuple[str, str, str]]:
    """(OK, FAILED or SKIPPED, name, reason) of each test that a gtest program's output lists."""
    results, start = [], 0
    for match in _RESULT.finditer(output):
        status, name = match.groups()
        why = "" if status == "OK" else _said(output[start:match.start()]) or "no reason given"
        results.append((status, name, why))
        start = match.end()
    return results


def read(path: str) -> tuple[int, list[tuple[str, str, str]]]:
    """(cases passed, [(failed or skipped, name, reason)])."""
    passed, others = 0, []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name", "?"), case.get("status", "")
        tests = inside(case.findtext("system-out") or "")
        if len(tests) > 1:
            passed += sum(test[0] == "OK" for test in tests)
            others += [(kind.lower(), test, why) for kind, test, why in tests if kind != "OK"]
            if status != "run" and not any(kind == "FAILED" for kind, _, _ in tests):
                # It crashed, leaked or timed out.
                message = case.find("failure").get("message") if case.find("failure") is not None else ""
                others.append(("failed", name, f"{message} {_died(case.findtext('system-out') or '')}".strip()))
        elif status == "run":
            passed += 1
        elif status == "fail" or case.find("failure") is not None:
            others.append(("failed", name, reason(case)))
        elif case.find("skipped") is not None or status == "disabled":
            # A case that could not be started (its program is missing) is no skip that someone chose.
            chosen = "Skipped" in (case.findtext("system-out") or "") or status == "disabled"
            why = "disabled in its source" if status == "disabled" else reason(case)
            others.append(("skipped" if chosen else "failed", name, why))
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
