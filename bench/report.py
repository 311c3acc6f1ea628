"""Collects what benches print, checks it, decides `holds`, writes the JSON file and a table. Exit 1 where an output is no
result, and, but for --quick, where a bar is missed that the product promises.

  report.py --json FILE [--only NAME] [--quick] [--commit WORD] OUTPUT...     (files with one JSON object per line)
"""

import argparse
import json
import math
import re
import sys

_BAR = re.compile(r"^(<=|>=) (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)$")
_RUNS_MIN = 3


class BadResult(ValueError):
    """A bench printed something that is no result; the text names field and rule."""


def holds(value: float, bar: object) -> bool:
    """Whether `value` meets `bar`."""
    match = _BAR.match(bar) if isinstance(bar, str) else None
    if not match:
        raise BadResult(f"bar is {bar!r}, allowed: '<= NUMBER' or '>= NUMBER'")
    limit = float(match.group(2))
    return value <= limit if match.group(1) == "<=" else value >= limit


def _number(entry: dict, key: str) -> float:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadResult(f"{key} is {value!r}, allowed: a finite number")
    return value


def check(entry: object) -> dict:
    """The entry in its final form, or BadResult."""
    if not isinstance(entry, dict):
        raise BadResult("a line is no JSON object")
    for key in ("name", "unit", "against"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise BadResult(f"{key} is {entry.get(key)!r}, allowed: a text that is not empty")
    if "holds" in entry:
        raise BadResult("holds is computed here, a bench does not print it")
    value = _number(entry, "value")
    raw = entry.get("raw")
    if entry["unit"] == "ratio" and not (isinstance(raw, dict) and len(raw) >= 2):
        raise BadResult("raw is missing, a ratio carries both values it was made from")
    if not isinstance(entry.get("promised", False), bool):
        raise BadResult(f"promised is {entry['promised']!r}, allowed: true, false")
    once = entry.get("once", "because")
    if not isinstance(once, str) or not once:
        raise BadResult(f"once is {once!r}, allowed: a text that says why it was not repeated")
    runs_min = 1 if "once" in entry else _RUNS_MIN
    if not isinstance(entry.get("n"), int) or entry["n"] < runs_min:
        raise BadResult(f"n is {entry.get('n')!r}, allowed: runs behind the median, at least {_RUNS_MIN}, fewer with once")
    result = {key: entry.get(key) for key in ("name", "value", "unit", "against", "bar")}
    result["holds"] = holds(value, result["bar"])
    result.update({key: entry[key] for key in ("promised", "raw", "once", "n", "spread") if key in entry})
    return result


def read(paths: list[str]) -> tuple[list[dict], list[str]]:
    """(results, complaints) of these output files."""
    results, complaints = [], []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    results.append(check(json.loads(line)))
                except ValueError as error:
                    complaints.append(f"{path}:{number}: {error}")
    names = [result["name"] for result in results]
    complaints += [f"{name} is measured twice" for name in sorted({n for n in names if names.count(n) > 1})]
    return results, complaints


def chosen(name: str, only: str | None) -> bool:
    return only is None or name == only or name.startswith(only + ".")


def broken_promises(results: list[dict]) -> list[str]:
    """Names of those whose missed bar is one that the product promises."""
    return [result["name"] for result in results if result.get("promised") and not result["holds"]]


def mark(result: dict) -> str:
    if result.get("promised") is False:
        return "holds (our own bar)" if result["holds"] else "missed (our own bar)"
    return "holds" if result["holds"] else "MISSED"


def table(results: list[dict]) -> str:
    rows = [(r["name"], f"{r['value']:.6g} {r['unit']}", f"n={r['n']}", r["bar"], mark(r), r["against"]) for r in results]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(5)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)) + "  " + row[5] for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", required=True)
    parser.add_argument("--only")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--commit", default="", help="of what was measured; each row names it")
    parser.add_argument("output", nargs="*")
    options = parser.parse_args()
    results, complaints = read(options.output)
    results = [r for r in results if chosen(r["name"], options.only)]
    if options.quick:
        results = [{**r, "quick": True} for r in results]
    if options.commit:
        results = [{**r, "commit": options.commit} for r in results]
        print(f"commit {options.commit}")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    print(table(results))
    for complaint in complaints:
        print(f"bad result: {complaint}", file=sys.stderr)
    if not results:
        print("no result" + (f" is named {options.only}" if options.only else ""), file=sys.stderr)
    missed = broken_promises(results)
    if missed:
        print(f"missed what is promised: {', '.join(missed)}" + (", which a quick run only tells" if options.quick else ""), file=sys.stderr)
    return 1 if complaints or not results or (missed and not options.quick) else 0


if __name__ == "__main__":
    sys.exit(main())
