"""Rules on trials of others: who may say that a number is a trial's, and who may ask of all projects (decision 0027).

A statement that finds a trial carries the caller's filter of projects; those behind it go by the TrialId that was found, and ask nobody
once more. So a TrialId that is made of a client's number is an open door, as is a filter that lets all projects through. Neither is
found by a type: `TrialId{request.trial_id()}` compiles anywhere. These rules know the forms in which C++ makes one, by their text: a
template that makes whatever it is told would pass, as would a member that is not named after a trial's id.
"""

import re
from collections.abc import Iterator

from tree import Finding, Tree, line_of, without_comments

_ROOMS = ("base/", "client/", "server/", "storage/")

_TYPE = r"(?:::)?(?:stepwell::)?TrialId\b"
_MADE = re.compile(
    # TrialId{x}, TrialId(x); where nothing is in it, it is no trial's
    rf"(?<![\w:]){_TYPE}\s*(?:\{{\s*(?!\}})|\(\s*(?!\)))"
    # TrialId name{x}
    rf"|(?<![\w:]){_TYPE}\s+\w+\s*\{{\s*(?!\}})"
    # static_cast<TrialId>(x) and its kind, (TrialId)x
    rf"|_cast<[^<>;]*\b{_TYPE}[^<>;]*>"
    rf"|(?<!sizeof)\(\s*{_TYPE}\s*[&*]?\s*\)\s*(?!(?:const|override|noexcept|final|mutable)\b)[\w(~!-]"
    # : trial_id_{x}, .trial_id{x}
    r"|\b\w*trial_id_?\s*\{\s*(?!\})"
    # by another name
    rf"|\busing\s+\w+\s*=\s*{_TYPE}\s*;|\btypedef\s+{_TYPE}|\bdecltype\([^()]*trial_id_?\)\s*[{{(]")
# Of a row that the database gave: the methods of PgResult and of what reads one of its rows.
_OF_A_ROW = re.compile(r"TrialId(?:\s+\w+)?\{(?:(?:result|rows|found|owned|page)(?:\.|->)Int64\((?:row|0), (?:\d+|k\w+)\)|in\.Int64\(\))\}")
# Others, each as its line says it, once: a line that goes takes its exception along.
MAKES = {
    ("storage/pg_reader.cc", "if (selector.trial_id != 0 && projects.is_all()) return TrialId{selector.trial_id};"):
        "KnownTrial: to whom all projects are let through no number is hidden",
    ("storage/pg_read_memory.cc", "const auto known = projects_.find(TrialId{selector.trial_id});"):
        "TrialOf looks for it among trials that were found, and asks the filter about the project that it finds",
    ("storage/pg_sweeper_traces.cc", "const TrialId of_place{place == nullptr ? 0 : place->trial_id};"):
        "a place was found with its number, by FindPlace and the asker's filter",
}

_ALL = re.compile(r"\bkAllProjects\b|\bAll::kProjects\b|\bProjectFilter::All\b"
                  # what nobody who calls may be told: as where no token is asked for
                  r"|\b(?:ReadableProjects|IngestibleTrials)\(\s*(?:nullptr|\{\s*\}|Caller\s*[({]\s*[)}])\s*\)")
# How often each file names them, and why it may.
ALL_PROJECTS = {
    "storage/project_filter.h": (3, "defines it"),
    "storage/trial_filter.h": (1, "takes it as the filter that it is"),
    "server/caller.h": (2, "where a master asks nobody for a token everybody may all"),
    "server/grants.cc": (2, "a token that reads, or writes, all"),
    "server/sweep_loop.cc": (1, "the sweep of each minute, which nobody asked for"),
    "server/trace_capturing.cc": (1, "whether a capture waits for a trace that was refused: its uploader is told nothing of it"),
    "storage/pg_caps_places.cc": (1, "how many places there are, and of which ages, is bounded for all together; the place itself was "
                                     "found by the asker's filter"),
    "storage/pg_sweeper_bounds.cc": (1, "what caps hold; which trials are swept was found by the asker's filter"),
    "storage/pg_sweeper_traces.cc": (3, "likewise; and uploads that were given up, in the sweep of all"),
}


def _code(tree: Tree) -> Iterator[tuple[str, str]]:
    """Each file and its text without comments, of which each keeps its place."""
    for name in tree.ending(".cc", ".h", ".c"):
        if name.startswith(_ROOMS):
            yield name, without_comments(tree.text(name))


def check_trial_ids(tree: Tree) -> Iterator[Finding]:
    """A TrialId is made of a row of the database alone, in storage: a number that a client sent finds its trial first."""
    for name, text in _code(tree):
        lines = [line.strip() for line in text.splitlines()]
        of_rows = {match.start() for match in _OF_A_ROW.finditer(text)} if name.startswith("storage/") else set()
        met: set[str] = set()
        for match in _MADE.finditer(text):
            number = line_of(text, match.start())
            line = lines[number - 1]
            if match.start() in of_rows:
                continue
            if (name, line) in MAKES and line not in met:
                met.add(line)
                continue
            yield Finding(name, number, "trial id",
                          "a TrialId is made of a row of the database, in storage: find the trial by its number and the caller's filter "
                          "(FindTrial), or name the exception in tests/layout/trial_doors.py with its reason (decision 0027)")
        for path, line in MAKES:
            if path == name and line not in met:
                yield Finding(name, 0, "trial id", f"no line of it is any more: {line} (tests/layout/trial_doors.py)")


def check_all_projects(tree: Tree) -> Iterator[Finding]:
    """Who asks of all projects is named, with how often and why."""
    for name, text in _code(tree):
        found = list(_ALL.finditer(text))
        allowed = ALL_PROJECTS.get(name, (0, ""))[0]
        if len(found) > allowed:
            yield Finding(name, line_of(text, found[allowed].start()), "all projects",
                          f"it asks of all projects {len(found)} times, allowed are {allowed}: pass on what the caller reads "
                          "(ReadableProjects), or name it in tests/layout/trial_doors.py with its reason (decision 0027)")
        elif len(found) < allowed:
            yield Finding(name, 0, "all projects",
                          f"it asks of all projects {len(found)} times: tests/layout/trial_doors.py says {allowed}")
