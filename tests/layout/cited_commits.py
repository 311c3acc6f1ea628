"""Rules on figures: what a page says a figure was measured of can be built again."""

import re
import subprocess
from collections.abc import Iterator

from tree import Finding, Tree

# No part of a longer word, of a path or of an address. Digits alone are a number unless the word before says otherwise.
_CITED = re.compile(r"(?<![\w./:#-])(?:(?P<told>commits? )(?P<digits>[0-9]{7,12})|(?P<hash>[0-9a-f]{7,12}))(?![\w/-])(?!\.\w)")
# What a reader types, and ids that stand for others.
_CODE = re.compile(r"`[^`]*`")


def _commits(tree: Tree) -> list[str] | None:
    """The hashes of HEAD and what it was made from, sorted; None where they are not all there."""
    git = ["git", "-c", "safe.directory=*", "-C", str(tree.root)]

    def ask(*words: str) -> str:
        return subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()

    try:
        # A made-up tree, or a copy, within another checkout.
        if ask("rev-parse", "--show-prefix") or ask("rev-parse", "--is-shallow-repository") != "false":
            return None
        return ask("rev-list", "HEAD").split()
    except (OSError, subprocess.CalledProcessError):
        return None


def check_cited_commits(tree: Tree) -> Iterator[Finding]:
    """A commit that a page names is part of this history: one of a branch that was rebased tells nobody anything."""
    pages = [name for name in tree.ending(".md")
             if name in ("README.md", "bench/README.md") or name.startswith("docs/")]
    commits = _commits(tree) if pages else None
    if commits is None:
        return
    known = {commit[:length] for commit in commits for length in range(7, 13)}
    for name in pages:
        for number, line in tree.lines(name):
            if line.startswith("    "):
                continue
            for match in _CITED.finditer(_CODE.sub("``", line)):
                word = match["digits"] or match["hash"]
                if word.isdigit() and not match["told"] or word.isalpha():
                    continue
                if word not in known:
                    yield Finding(name, number, "cited commit",
                                  f"{word} is no commit that HEAD was made from: measure again, or say that it is not here")
