"""Sources of a library in batches that one compilation can take: python3 cmake/batches.py ROOT SIZE FILE...

Prints a line for each batch: the files' places below ROOT, with blanks between them. No two files of a batch have a name of
an anonymous namespace in common, nor does one have such a name that another one mentions, which may mean a different
thing by it; a namespace within ours that only one of them has is such a name. First fit, in the order of the files: a new file moves few others.
"""

import functools
import re
import sys
from pathlib import Path

# A quote behind a digit parts digits.
_COMMENTS_AND_TEXTS = re.compile(r"""//[^\n]*|/\*.*?\*/|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)
_RAW_TEXTS = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
# What stands at the beginning of a line there is declared there: types, functions, constants. Not what a using or another name of a
# namespace says: two of them say the same thing.
_DECLARED = re.compile(
    r"^(?:template\b.*\n)?(?:struct|class|enum class|enum|union|using(?=\s+\w+\s*=))\s+(\w+)"
    r"|^(?!(?:using|namespace)\b)\w[^\n;={(\[]*?\b(\w+)\s*(?=[=({\[;])", re.MULTILINE)
# Of an enumeration without a scope, which gives its names to what is around it.
_ENUMERATION = re.compile(r"^enum(?! class| struct)\b[^{;]*\{([^}]*)\}", re.MULTILINE)
_ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")
_MORE_OF_A_LINE = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[\])? = ")
_HEADER = re.compile(r'^#include "([^"]+\.h)"', re.MULTILINE)
# What is asked of an object or of a namespace is found there.
_WORD = re.compile(r"(?<!\.)(?<!->)(?<!::)\b\w+")
_NAMESPACE = re.compile(r"^namespace \w+((?:::\w+)+) \{", re.MULTILINE)
_OPENED = re.compile(r"^using namespace\b", re.MULTILINE)
_MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def declared_names(text: str) -> set[str]:
    """Of all anonymous namespaces, as the house's format lays them out."""
    names = set()
    for part in re.split(r"^namespace \{$", text, flags=re.MULTILINE)[1:]:
        inside = re.split(r"^\}  // namespace$|^\}$(?=\s*^\}$)", part, maxsplit=1, flags=re.MULTILINE)[0]
        names |= {name for groups in _DECLARED.findall(inside) for name in groups if name}
        names |= {name for body in _ENUMERATION.findall(inside) for name in _ENUMERATOR.findall(body)}
        names |= set(_MORE_OF_A_LINE.findall(inside))
    return names


def code_of(path: Path) -> str:
    """Without comments and texts; a comment that ends a namespace is what ends it here, too."""
    text = _RAW_TEXTS.sub('""', path.read_text(encoding="utf-8"))
    return _COMMENTS_AND_TEXTS.sub(lambda found: found[0] if found[0].startswith("// namespace") else '""' if found[0][0] == '"' else "", text)


@functools.cache
def words_of_header(path: Path) -> frozenset[str]:
    return frozenset(_WORD.findall(code_of(path)))


@functools.cache
def namespaces_of(path: Path, root: Path) -> frozenset[str]:
    """Within the outermost one, also of all that the file includes."""
    text = path.read_text(encoding="utf-8")
    names = {name for found in _NAMESPACE.findall(text) for name in found.split("::") if name}
    for header in _HEADER.findall(text):
        if (root / header).exists():
            names |= namespaces_of(root / header, root)
    return frozenset(names)


class Source:
    def __init__(self, path: Path, root: Path) -> None:
        code = code_of(path)
        self.path = path
        self.declared = declared_names(code)
        # What no scope holds: macros, and a namespace that is opened for all that follows.
        self.macros = set(_MACRO.findall(code))
        self.all_words = set(re.findall(r"\w+", code))
        self.opens = bool(_OPENED.search(code))
        self.namespaces = namespaces_of(path, root)
        self.words = set(_WORD.findall(code))
        # What one's header declares a name of another one would be ambiguous with.
        for header in _HEADER.findall(path.read_text(encoding="utf-8")):
            if (root / header).exists():
                self.words |= words_of_header(root / header)

    def bears(self, other: "Source") -> bool:
        if self.opens or other.opens or self.macros & other.all_words or other.macros & self.all_words:
            return False
        own = self.declared | self.namespaces - other.namespaces
        others = other.declared | other.namespaces - self.namespaces
        return not (own & other.words or others & self.words)


def batches(sources: list[Source], size: int) -> list[list[Source]]:
    found: list[list[Source]] = []
    for source in sources:
        for batch in found:
            if len(batch) < size and all(source.bears(other) for other in batch):
                batch.append(source)
                break
        else:
            found.append([source])
    return found


if __name__ == "__main__":
    root, size, *files = sys.argv[1:]
    for batch in batches([Source(Path(file), Path(root)) for file in files], int(size)):
        print(*(source.path.relative_to(root) for source in batch))
