"""Checks the layout of the house: python3 tests/layout/check.py [ROOT]. Exit 1 where a rule is broken.

Rules: floors and foreign libraries by include, length of files, open ends without a name, words
with a better word, header guards, own header first, machine paths, registry addresses, dead files,
the fixed top level, a test for each rule of the agent, the tests that the fault matrix names, files that tests would share, waits and
durations by the wall clock, SQL that is put together of texts, digests that are compared by a time that tells, RPCs that do not
ask who calls, numbers that become trials without being looked for, who asks of all projects, commits that a page names and nobody has, places where no test
kills the master, mutants whose text their source has no more. Each rule is a function check_*(tree) that yields findings.
"""

import pathlib
import sys

import agent_rules
import cited_commits
import clocks
import digests
import fault_rows
import floors
import house
import kill_points
import mutants
import rpc_doors
import sql_texts
import texts
import trial_doors
from tree import Finding, Tree

MODULES = (agent_rules, cited_commits, clocks, digests, fault_rows, floors, house, kill_points, mutants, rpc_doors, sql_texts,
           texts, trial_doors)
RULES = [rule for module in MODULES
         for key, rule in sorted(vars(module).items()) if key.startswith("check_")]


def check(root: pathlib.Path) -> list[Finding]:
    tree = Tree(root)
    return sorted((finding for rule in RULES for finding in rule(tree)),
                  key=lambda finding: (finding.path, finding.line, finding.rule))


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    findings = check(root.resolve())
    for finding in findings:
        print(finding)
    broken = sum(not finding.warning for finding in findings)
    print(f"{len(RULES)} rules, {broken} broken lines, {len(findings) - broken} warnings")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
