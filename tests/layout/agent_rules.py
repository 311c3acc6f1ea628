"""The agent's rules and the tests that prove them: python3 tests/layout/agent_rules.py lists them.

The rules are those of docs/agent.md. A test is of a rule by its name, AgentRuleNN_WhatItShows, wherever
it stands below tests/; one of Python's is test_agent_rule_NN_what_it_shows.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

from tree import Finding, Tree

_PAGE = "docs/agent.md"
_RULE = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
_PYTHON_TEST = re.compile(r"^    def (test_agent_rule_(\d\d)_\w+)\(self\)", re.MULTILINE)
_TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(AgentRule(\d\d)_\w+)\s*\)", re.MULTILINE)


def tests_by_rule(tree: Tree) -> dict[int, list[tuple[str, str]]]:
    """rule -> (file, Suite.Test), in order. One that is switched off proves nothing and has no such name."""
    found: dict[int, list[tuple[str, str]]] = {}
    for name in tree.ending(".cc"):
        if name.startswith("tests/"):
            for suite, test, rule in _TEST.findall(tree.text(name)):
                found.setdefault(int(rule), []).append((name, f"{suite}.{test}"))
    for name in tree.ending(".py"):
        if name.startswith("tests/python/"):
            for test, rule in _PYTHON_TEST.findall(tree.text(name)):
                found.setdefault(int(rule), []).append((name, test))
    return found


def rules(tree: Tree) -> dict[int, str]:
    """number -> what the rule is about, as the page has them."""
    return {int(number): what for number, what in _RULE.findall(tree.text(_PAGE))} if tree.has(_PAGE) else {}


def check_agent_rules(tree: Tree) -> Iterator[Finding]:
    """Each rule of the agent has a test that is named after it."""
    proven = tests_by_rule(tree)
    for rule, what in rules(tree).items():
        if rule not in proven:
            yield Finding(_PAGE, 0, "agent rule", f"no test AgentRule{rule:02}_... proves rule {rule}, {what}")


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    tree = Tree(root.resolve())
    titles = rules(tree)
    for rule, tests in sorted(tests_by_rule(tree).items()):
        print(f"{rule:2}  {titles.get(rule, '')}  ({len(tests)})")
        for name, test in tests:
            print(f"      {test}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
