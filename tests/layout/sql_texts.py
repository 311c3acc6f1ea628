"""Rules on SQL: its text is a constant with bound values; where names of tables go into it is told here."""

import re
from collections.abc import Iterator

from tree import Finding, Tree

# They put names that we gave (segments, leaves, columns) into a statement, and numbers of ours; what comes from
# others is a bound value there, too. A new file comes here with its reason in the commit.
_BUILDERS = frozenset(
    f"storage/{noun}.cc"
    for noun in ("pg_connection", "pg_connection_pipeline", "pg_journal", "pg_leaves", "pg_merger", "pg_progress", "pg_reader_latest", "pg_reader_leaves",
                 "pg_reader_rollups", "pg_reader_rows", "pg_reader_ticks", "pg_recent_recycler", "pg_rollup_copy",
                 "pg_rollup_joiner", "pg_rollup_move", "pg_rollup_ring", "pg_row_copy", "pg_series_excess", "pg_sweeper_leaves",
                 "pg_sweeper_slices", "pg_sweeper_trials", "pg_vacuum", "private_postgres_supervisor"))

_VERB = (r"(?:select\s|with\s+\w+\s+as\s|insert\s+into\s|update\s+[\w.]+\s+set\b|delete\s+from\s|create\s+(?:table|role|"
         r"database|schema|index|view|function)\b|alter\s+(?:table|role|system|database|schema)\b|drop\s+(?:table|role|"
         r"database|schema|index|view)\b|truncate\s|lock\s+table\s|vacuum\s|analyze\s|copy\s+[\w. ]*|deallocate\s|"
         r"set\s+(?:local|session)\s|grant\s|revoke\s|begin\s*(?:;|isolation\b)|do\s+\$|notify\s|declare\s+\w+\s+|merge\s+into\s|"
         r"prepare\s+\w+\s+as\s|execute\s+\w+\s*\(|call\s+\w+\.|values\s*\(|savepoint\s)")
_LITERAL = r'(?:R"\w*\(|")\s*' + _VERB
# A call that joins texts, its first literal a statement; a literal that is joined by +.
_JOINED = re.compile(r"\b(?:StrCat|StrFormat|StrAppend|StrAppendFormat|StrReplaceAll|Substitute|format)\s*\(\s*(?:&?[\w.\->]+,\s*)?"
                     + _LITERAL, re.IGNORECASE)
_ADDED = re.compile(r'(?:\+\s*' + _LITERAL + r'|' + _LITERAL + r'[^"\n]*"\s*\+(?!\+))', re.IGNORECASE)
# A constant of a statement that is joined; a text that is called one and grows; a made-up text that is run.
_GROWN = re.compile(
    r"\b(?:StrCat|StrFormat|StrAppend|StrAppendFormat|StrReplaceAll|Substitute|format)\s*\((?:[^;()]|\([^()]*\))*\bsql::k[A-Z]"
    r"|\bsql::k[A-Z]\w*\s*\+|\+\s*sql::k[A-Z]"
    r"|\bStrAppend(?:Format)?\s*\(\s*&\s*\w*(?:sql|statement|query_text)\w*\b|\b\w*(?:sql|statement|query_text)\w*\s*\+="
    r"|\b(?:Exec|ExecScript)\s*\(\s*(?!\w+\.sql\b)[\w.\->:]+(?:\([^()]*\))?\s*(?:\.c_str\(\)|\+)", re.IGNORECASE)


def check_sql_texts(tree: Tree) -> Iterator[Finding]:
    """SQL that is put together of texts is in the named files alone: elsewhere it would be where values get into it.

    Found where a literal that begins a statement is joined, where a constant of one is, where a text that is called one grows, and
    where one that is no constant is run.
    """
    for name in tree.ending(".cc", ".h"):
        if not name.startswith(("server/", "storage/", "client/", "base/")) or name in _BUILDERS:
            continue
        text = tree.text(name)
        for pattern in (_JOINED, _ADDED, _GROWN):
            for match in pattern.finditer(text):
                yield Finding(name, text.count("\n", 0, match.start()) + 1, "sql",
                              "a statement is put together of texts: name it, and bind its values ($1); where it is a "
                              "name of ours that goes in, tests/layout/sql_texts.py lists who may")
