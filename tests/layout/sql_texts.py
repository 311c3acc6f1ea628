"""Rules on SQL: its text is made of literals, with bound values; what must be put together is put together in one file.

The compiler holds most of it: what PgConnection sends is a SqlText (storage/sql_text.h), which no other text becomes. These rules hold the
doors of that: who calls libpq's functions that take SQL, who makes a SqlText of any text, and who puts SQL together without it.
"""

import re
from collections.abc import Iterator

from tree import Finding, Tree, line_of

_PRODUCT = ("server/", "storage/", "client/", "base/")
# The one file that makes SQL of texts.
_BUILDER = "storage/sql_text.cc"
# What makes a SqlText of any text, and where that stands.
_DOORS = {"SqlMaker": ("storage/sql_text.h", _BUILDER), "SqlOfTests": ("storage/sql_text.h", "tests/support/sql_of.h")}
# Those that send, and how: a literal, or the text of a SqlText.
_SENDERS = ("storage/pg_connection.cc", "storage/pg_connection_pipeline.cc")
_SENDING = re.compile(r"\bPQ(?:exec|execParams|prepare|sendQuery|sendQueryParams|sendPrepare)\s*\(")
_SENT = re.compile(r'\s*connection_,\s*(?:place\.name\.c_str\(\),\s*)?(?:"|(?:\w+\.)?sql\.c_str\(\)\s*[,)])')

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


def _joined(tree: Tree, name: str) -> Iterator[Finding]:
    text = tree.text(name)
    for pattern in (_JOINED, _ADDED, _GROWN):
        for match in pattern.finditer(text):
            yield Finding(name, line_of(text, match.start()), "sql",
                          "a statement is put together of texts: name it, and bind its values ($1); where it is a "
                          "name of ours that goes in, it is a SqlText (storage/sql_text.h)")


def _sent(tree: Tree, name: str) -> Iterator[Finding]:
    text = tree.text(name)
    for match in _SENDING.finditer(text):
        if name in _SENDERS and _SENT.match(text, match.end()):
            continue
        yield Finding(name, line_of(text, match.start()), "sql",
                      "SQL goes to libpq in PgConnection alone, as a literal or as the c_str() of a SqlText called sql")


def check_sql_texts(tree: Tree) -> Iterator[Finding]:
    """SQL that is put together of texts is in one file: elsewhere it would be where values get into it.

    Found where a literal that begins a statement is joined, where a constant of one is, where a text that is called one grows,
    where one that is no constant is run, where libpq is given one, and where what makes a SqlText of any text is named.
    """
    for name in tree.ending(".cc", ".h", ".c"):
        if name.startswith(_PRODUCT):
            if name != _BUILDER:
                yield from _joined(tree, name)
            yield from _sent(tree, name)
        for door, places in _DOORS.items():
            if name in places:
                continue
            for match in re.finditer(rf"\b{door}\b", tree.text(name)):
                yield Finding(name, line_of(tree.text(name), match.start()), "sql",
                              f"{door} makes SQL of any text: it is named in {' and '.join(places)} alone")
