"""The agent's rules and the tests that prove them: python3 tests/layout/agent_rules.py lists them.

A test is of a rule by its name, AgentRuleNN_WhatItShows, wherever it stands below tests/.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

from tree import Finding, Tree

# What the rules are about. Each of these has a test; others may have.
RULES = {
    1: "ring",
    2: "seal",
    3: "no sequence twice",
    4: "ownership",
    5: "version skew",
    6: "where",
    7: "how many",
    8: "start",
    9: "stop",
    10: "the trial's exit, short jobs",
    11: "fork and spawn",
    12: "control, clocks, identity",
    16: "system metrics",
}
_TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(AgentRule(\d\d)_\w+)\s*\)", re.MULTILINE)


def tests_by_rule(tree: Tree) -> dict[int, list[tuple[str, str]]]:
    """rule -> (file, Suite.Test), in order. One that is switched off proves nothing and has no such name."""
    found: dict[int, list[tuple[str, str]]] = {}
    for name in tree.ending(".cc"):
        if name.startswith("tests/"):
            for suite, test, rule in _TEST.findall(tree.text(name)):
                found.setdefault(int(rule), []).append((name, f"{suite}.{test}"))
    return found


def check_agent_rules(tree: Tree) -> Iterator[Finding]:
    """A house with an agent proves each of its rules by a test that is named after it."""
    if not tree.has("client/agent/CMakeLists.txt"):
        return
    proven = tests_by_rule(tree)
    for rule, what in RULES.items():
        if rule not in proven:
            yield Finding("tests", 0, "agent rule", f"no test AgentRule{rule:02}_... (the agent's rule on {what})")


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    for rule, tests in sorted(tests_by_rule(Tree(root.resolve())).items()):
        print(f"{rule:2}  {RULES.get(rule, '')}  ({len(tests)})")
        for name, test in tests:
            print(f"      {test}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
