"""Rules on the text of single files: length, open ends, words, and what must not be named."""

import re
from collections.abc import Iterator

from tree import Finding, Tree

_LINES_WARN = 400
_LINES_MAX = 500
_CODE = (".cc", ".c", ".h", ".py", ".ts", ".tsx", ".sql", ".sh", ".proto")
_PROSE = (".md", ".txt", ".cmake", "CMakeLists.txt", ".json", ".yaml", ".yml")
# Not our words: the names in them are those of others.
_AS_PUBLISHED = ("proto/google/", "LICENSE", "NOTICE")

# Letters in brackets keep these lines from finding themselves.
_OPEN_END = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X)\b(?!\([a-z][\w.-]+\):)")
_MACHINE_PATH = re.compile(r"(?<![\w.}*-])/(?:home|Users|work|farm|root)/[\w.]")
_REGISTRY = re.compile(
    r"registry\.npmjs\.|registry\.yarnpkg\.|pypi\.org|pythonhosted\.org|deb\.debian\.org"
    r"|security\.debian\.org|snapshot\.debian\.org|crates\.io|rubygems\.org|proxy\.golang\.org")
_LOCK_FILES = re.compile(r"(package-lock\.json|\.lock|requirements[\w-]*\.txt|pnpm-lock\.yaml)$")
_ADDRESS = re.compile(r'"resolved"|https?://(?!\S*(?:github\.com/sponsors|opencollective))')

_SHARED_SCRATCH = re.compile(r'TempDir\(\)\s*\+')

# (what was written, the better word). Names: the project has one word for one thing.
_WORDS = [
    (r"data ?p[o]ints?", "sample"),
    (r"d[a]tum", "sample"),
    (r"(?:batch|batches|batching) of (?:writes|inserts|chunks|rows|commits)", "commit group"),
    (r"(?:write|insert|commit)[ -]b[a]tch(?:es)?", "commit group"),
    (r"(?:white|black)l[i]st\w*", "allowed or refused list"),
    (r"s[l]aves?", "standby"),
    (r"heart b[e]at", "heartbeat"),
    (r"s[a]nity check\w*", "check"),
    (r"d[u]mmy", "fake"),
    (r"time ?st[a]mp(?:ed|s)? series", "series"),
    (r"util[i]z(?:e|es|ed|ing)\b", "use"),
]
_BETTER = [(re.compile(rf"\b{pattern}\b", re.IGNORECASE), better) for pattern, better in _WORDS]


def _ours(tree: Tree, *endings: str) -> list[str]:
    return [name for name in tree.ending(*endings) if not name.startswith(_AS_PUBLISHED)]


def check_length(tree: Tree) -> Iterator[Finding]:
    """Past 500 lines a file holds two nouns; near 400 it is time to look for the second."""
    for name in _ours(tree, *_CODE):
        count = len(tree.text(name).splitlines())
        if count > _LINES_WARN:
            limit = f"{count} lines, limit {_LINES_MAX}: look for the second noun"
            yield Finding(name, 0, "length", limit, warning=count <= _LINES_MAX)


def check_open_ends(tree: Tree) -> Iterator[Finding]:
    """An open end carries the name of who closes it: WORD(name): text."""
    for name in _ours(tree, *_CODE, *_PROSE):
        for number, line in tree.lines(name):
            match = _OPEN_END.search(line)
            if match:
                yield Finding(name, number, "open end", f"{match.group(1)} without a name; finish it or name who will")


def check_words(tree: Tree) -> Iterator[Finding]:
    """One word for one thing."""
    for name in _ours(tree, *_CODE, ".md"):
        for number, line in tree.lines(name):
            for pattern, better in _BETTER:
                match = pattern.search(line)
                if match:
                    yield Finding(name, number, "word", f"'{match.group(0)}': here it is called {better}")


def check_pragma_once(tree: Tree) -> Iterator[Finding]:
    """Every header guards itself, in the same way; an installed one may use the C way."""
    for name in _ours(tree, ".h"):
        directives = [line.split() for _, line in tree.lines(name) if line.lstrip().startswith("#")]
        installed_guard = ("/include/" in name and len(directives) > 1 and directives[0][0] == "#ifndef"
                           and directives[1] == ["#define", directives[0][1]])
        if (not directives or directives[0] != ["#pragma", "once"]) and not installed_guard:
            yield Finding(name, 0, "pragma once", "the first directive of a header is #pragma once")


def check_places(tree: Tree) -> Iterator[Finding]:
    """No path of one person's machine, no address of a package registry, lock files without addresses."""
    for name in _ours(tree, *_CODE, *_PROSE, ".lock", ".toml", ".cfg"):
        lock_file = bool(_LOCK_FILES.search(name))
        for number, line in tree.lines(name):
            if _MACHINE_PATH.search(line):
                yield Finding(name, number, "machine path", f"a path of one machine: {line.strip()[:80]}")
            if _REGISTRY.search(line):
                yield Finding(name, number, "registry", "the host of a package registry is named")
            elif lock_file and _ADDRESS.search(line):
                yield Finding(name, number, "registry", "a lock file pins by checksum and holds no address")


def check_scratch(tree: Tree) -> Iterator[Finding]:
    """Tests of one folder run beside each other, each in a process: a fixed name is removed by another's end."""
    for name in _ours(tree, ".cc", ".h"):
        for number, line in tree.lines(name):
            if _SHARED_SCRATCH.search(line) and "XXXXXX" not in line and "getpid()" not in line:
                yield Finding(name, number, "scratch", "several tests would share this file: XXXXXX or getpid() in it")
