"""A mutant of the simulation is a text that stands once in its source: where the source was changed, so is the mutant, in the same change."""

import json
from collections.abc import Iterator

from tree import Finding, Tree, line_of

_TABLE = "tests/simulation/mutants/mutants.json"


def check_mutants(tree: Tree) -> Iterator[Finding]:
    """Found here in a second, not by a build that stops."""
    if not tree.has(_TABLE):
        return
    table = tree.text(_TABLE)
    for mutant in json.loads(table):
        line = line_of(table, table.find(f'"{mutant["name"]}"'))
        for change in mutant["changes"]:
            source = change["file"]
            count = tree.text(source).count(change["from"]) if tree.has(source) else 0
            if count != 1:
                yield Finding(_TABLE, line, "mutant",
                              f"{mutant['name']}: '{change['from']}' stands {count} times in {source}, not once")
