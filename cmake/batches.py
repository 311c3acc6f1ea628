"""Sources of a library in batches that one compilation can take: python3 cmake/batches.py ROOT SIZE FILE...

Prints a line for each batch: the files' places below ROOT, with blanks between them. No two files of a batch have a name of
an anonymous namespace in common, nor does one have such a name that another one mentions, which may mean a different
thing by it. First fit, in the order of the files: a new file moves few others.
"""

import functools
import re
import sys
from pathlib import Path

# A quote behind a digit parts digits.
_COMMENTS_AND_TEXTS = re.compile(r"""//[^\n]*|/\*.*?\*/|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)
_RAW_TEXTS = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
# What stands at the beginning of a line there is declared there: types, functions, constants.
_DECLARED = re.compile(r"^(?:template\b.*\n)?(?:struct|class|enum class|enum|union|using)\s+(\w+)|^\w[^\n;={(\[]*?\b(\w+)\s*(?=[=({\[;])", re.MULTILINE)
_ENUMERATOR = re.compile(r"^  (k[A-Z]\w*)(?: = [^,]*)?,?$|[{,] *(k[A-Z]\w*)(?= *[,=}])", re.MULTILINE)
_MORE_OF_A_LINE = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[\])? = ")
_HEADER = re.compile(r'^#include "([^"]+\.h)"', re.MULTILINE)
_MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def declared_names(text: str) -> set[str]:
    """Of all anonymous namespaces, as the house's format lays them out, and macros, which no namespace holds."""
    names = {found for found in _MACRO.findall(text)}
    for part in re.split(r"^namespace \{$", text, flags=re.MULTILINE)[1:]:
        inside = re.split(r"^\}  // namespace$|^\}$(?=\s*^\}$)", part, maxsplit=1, flags=re.MULTILINE)[0]
        for pattern in (_DECLARED, _ENUMERATOR):
            names |= {name for groups in pattern.findall(inside) for name in groups if name}
        names |= set(_MORE_OF_A_LINE.findall(inside))
    return names


def code_of(path: Path) -> str:
    """Without comments and texts; a comment that ends a namespace is what ends it here, too."""
    text = _RAW_TEXTS.sub('""', path.read_text(encoding="utf-8"))
    return _COMMENTS_AND_TEXTS.sub(lambda found: found[0] if found[0].startswith("// namespace") else '""' if found[0][0] == '"' else "", text)


@functools.cache
def words_of_header(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", code_of(path)))


class Source:
    def __init__(self, path: Path, root: Path) -> None:
        code = code_of(path)
        self.path = path
        self.declared = declared_names(code)
        self.words = set(re.findall(r"\w+", code))
        # What one's header declares a name of another one would be ambiguous with.
        for header in _HEADER.findall(path.read_text(encoding="utf-8")):
            if (root / header).exists():
                self.words |= words_of_header(root / header)

    def bears(self, other: "Source") -> bool:
        return not (self.declared & other.words or other.declared & self.words)


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
