"""Writes a source with the mutants of it: mutate.py ROOT SOURCE OUTPUT.

Each is a text of mutants.json that stands once in the source, and what takes its place: the same until
Mutated("its name") says that it is switched on.
"""

import json
import pathlib
import sys


def mutate(text: str, source: str, mutants: list[dict]) -> str:
    for mutant in mutants:
        for change in mutant["changes"]:
            if change["file"] != source:
                continue
            count = text.count(change["from"])
            if count != 1:
                raise SystemExit(f"{mutant['name']}: '{change['from']}' stands {count} times in {source}, not once")
            on = f'::stepwell::simulation::Mutated("{mutant["name"]}")'
            text = text.replace(change["from"], change["to"].replace("ON", on))
    # Behind the first include, which is the source's own header.
    head, line, rest = text.partition("\n")
    return f'{head}{line}#include "tests/simulation/mutants/mutated.h"\n{rest}'


def main() -> None:
    root, source, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    mutants = json.loads(pathlib.Path(__file__).with_name("mutants.json").read_text(encoding="utf-8"))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(mutate((root / source).read_text(encoding="utf-8"), source, mutants), encoding="utf-8")


if __name__ == "__main__":
    main()
