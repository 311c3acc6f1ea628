"""Rules on the house as a whole: its top level, and files that nothing builds or includes."""

import pathlib
import re
from collections.abc import Iterator

from floors import includes
from tree import Finding, Tree

_TOP_LEVEL = {
    "CMakeLists.txt", "proto", "server", "storage", "migrations", "client", "tests", "bench", "deploy",
    "README.md", "base", "cmake", "docs", "CMakePresets.json", "ARCHITECTURE.md", "CONTRIBUTING.md",
    "CHANGELOG.md", "SECURITY.md", "LICENSE", "NOTICE",
}
_BUILDS = re.compile(r"\b(?:stepwell_library|stepwell_tests|stepwell_bench|add_library|add_executable)\s*\(")
_GLOBS_HERE = re.compile(r"\b(?:stepwell_library|stepwell_tests|stepwell_bench)\s*\(")
_GLOB = re.compile(r"(?:\$\{CMAKE_CURRENT_SOURCE_DIR\}/)?([\w./-]*)\*\.cc")


def check_top_level(tree: Tree) -> Iterator[Finding]:
    """The top level is fixed; a new thing belongs into one of its rooms."""
    for entry in sorted({pathlib.PurePath(name).parts[0] for name in tree.files}):
        if entry not in _TOP_LEVEL and not entry.startswith("."):
            yield Finding(entry, 0, "top level", "does not belong there; allowed: " + " ".join(sorted(_TOP_LEVEL)))


def _folders_upwards(folder: pathlib.PurePath) -> Iterator[pathlib.PurePath]:
    yield folder
    yield from folder.parents


def _reached(tree: Tree, folder: pathlib.PurePath) -> bool:
    """Whether some CMakeLists.txt above names `folder`, globs for it, or it is a project of its own."""
    if str(folder) == "." or re.search(r"^\s*project\(", tree.text(f"{folder}/CMakeLists.txt"), re.MULTILINE):
        return True
    for parent in folder.parents:
        lists = "CMakeLists.txt" if str(parent) == "." else f"{parent}/CMakeLists.txt"
        if tree.has(lists):
            text = tree.text(lists)
            relative = str(folder.relative_to(parent))
            if re.search(rf"(?<![\w/]){re.escape(relative)}(?![\w/])", text) or "*/CMakeLists.txt" in text:
                return True
    return False


def _built(tree: Tree, name: str) -> bool:
    path = pathlib.PurePath(name)
    for folder in _folders_upwards(path.parent):
        lists = "CMakeLists.txt" if str(folder) == "." else f"{folder}/CMakeLists.txt"
        if not tree.has(lists):
            continue
        text = tree.text(lists)
        if not _BUILDS.search(text) or not _reached(tree, folder):
            return False
        relative = str(path.relative_to(folder))
        excluded = re.findall(r"EXCLUDE\s+((?:[\w./-]+\.cc\s*)+)", text)
        mentioned = len(re.findall(rf"(?<![\w/]){re.escape(relative)}(?!\w)", text))
        in_exclude = sum(part.split().count(relative) for part in excluded)
        if mentioned > in_exclude:
            return True
        folders = {pathlib.PurePath(folder, found) for found in _GLOB.findall(text)}
        if _GLOBS_HERE.search(text):
            folders.add(folder)
        return path.parent in folders and in_exclude == 0
    return False


def check_dead_sources(tree: Tree) -> Iterator[Finding]:
    """Every .cc is compiled into something."""
    for name in tree.ending(".cc"):
        if not _built(tree, name):
            yield Finding(name, 0, "dead file", "no CMakeLists.txt builds it")


def check_dead_headers(tree: Tree) -> Iterator[Finding]:
    """Every header is included by a file other than its own .cc (the recorder's public ones are for others)."""
    included_by: dict[str, set[str]] = {}
    for name in tree.ending(".cc", ".c", ".h"):
        for _, path, _ in includes(tree, name):
            included_by.setdefault(path, set()).add(name)
    for name in tree.ending(".h"):
        if "/include/" in name:
            continue
        others = included_by.get(name, set()) - {name.removesuffix(".h") + ".cc", name.removesuffix(".h") + ".c"}
        if not others:
            yield Finding(name, 0, "dead file", "nothing but its own .cc includes this header")
