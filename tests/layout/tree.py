"""The files of a checkout, as the layout rules look at them."""

import dataclasses
import functools
import pathlib
import re
import subprocess

_NOT_OURS = {"build", "node_modules", ".git", "__pycache__", ".cache"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line that breaks a rule. `path` is relative to the checkout, `line` is 0 for a whole file."""

    path: str
    line: int
    rule: str
    text: str
    warning: bool = False

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        kind = "warning: " if self.warning else ""
        return f"{place}: {kind}{self.rule}: {self.text}"


# A comment, behind what only looks like one within a literal.
_COMMENT = re.compile(r"""'(?:\\.|[^'\\\n])'|"(?:\\.|[^"\\\n])*"|(//[^\n]*)""")


def without_comments(text: str) -> str:
    """C++ or a contract without `//` comments; all else keeps its place."""
    return _COMMENT.sub(lambda match: " " * len(match.group()) if match.group(1) else match.group(), text)


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class Tree:
    """What git tracks or would track below `root`; without git, every file that no build left there."""

    def __init__(self, root: pathlib.Path):
        self.root = root

    @functools.cached_property
    def files(self) -> list[str]:
        command = ["git", "-c", "safe.directory=*", "-C", str(self.root), "ls-files",
                   "--cached", "--others", "--exclude-standard"]
        try:
            top = subprocess.run([*command[:5], "rev-parse", "--show-toplevel"],
                                 capture_output=True, text=True, check=True).stdout.strip()
            if pathlib.Path(top).resolve() != self.root.resolve():
                raise OSError("the checkout is part of another one")
            listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            names = listed.splitlines()
        except (OSError, subprocess.CalledProcessError):
            names = [str(path.relative_to(self.root)) for path in self.root.rglob("*")]
            names = [name for name in names if not _NOT_OURS & set(pathlib.PurePath(name).parts)]
        return sorted(name for name in set(names) if (self.root / name).is_file())

    def ending(self, *endings: str) -> list[str]:
        return [name for name in self.files if name.endswith(endings)]

    def has(self, name: str) -> bool:
        return (self.root / name).is_file()

    @functools.lru_cache(maxsize=None)
    def text(self, name: str) -> str:
        """The file's text; bytes that are no UTF-8 are replaced, so that no rule stumbles."""
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def lines(self, name: str) -> list[tuple[int, str]]:
        return list(enumerate(self.text(name).splitlines(), 1))
