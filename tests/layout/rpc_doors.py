"""Rules on RPCs: each method of our services begins by asking who calls, and says nothing before it knows.

A method that forgets to would answer everybody, and no type stands in its way: gRPC calls what overrides it. So each rpc of the
contract has one definition in server/*_service.cc, whose first statement is one of those below.
"""

import re
from collections.abc import Iterator

from tree import Finding, Tree, line_of, without_comments

_RPC = re.compile(r"^ *rpc (\w+)\s*\(", re.MULTILINE)
# In a class, and out of it.
_OVERRIDE = re.compile(r"\bgrpc::[\w:]+(?:<[^;{}]*?>)?\s*\*?\s+(\w+)\s*\([^;{}()]*\)\s*override\s*\{")
_DEFINITION = re.compile(r"\bgrpc::[\w:]+(?:<[^;{}]*?>)?\s*\*?\s+(?:\w+::)*(\w+)::(\w+)\s*\([^;{}()]*\)\s*\{")
_CALL = r"\((?:[^;{}()]|\([^;{}()]*\))*\)"
# Who calls, and his refusal, before anything else; or a function of the file that begins so.
_ASKS = re.compile(
    r"\s*(?:"
    rf"const GrpcEntry entry = (?:EnterCall|EnterIngest|Enter){_CALL};\s*if \(!entry\.ok\(\)\) return entry\.status;"
    rf"|if \(const GrpcEntry entry = (?:EnterCall|EnterIngest|Enter){_CALL}; !entry\.ok\(\)\) \{{\s*return entry\.status;\s*\}}"
    rf"|(?:const )?auto caller = CallerOf{_CALL};\s*if \(!caller\.ok\(\)\) return (?:new RefusingReactor\()?GrpcError\(caller\.status\(\)\)\)?;"
    rf"|return Answer{_CALL};)")
# What those functions are.
_HELPERS = {
    "Enter": re.compile(rf"\bGrpcEntry Enter\([^;{{}}]*\)\s*const\s*\{{\s*(?:return EnterCall\(|GrpcEntry entry = EnterCall{_CALL};\s*"
                        r"if \(!entry\.ok\(\)(?: \|\| [^;{}()]*)?\) return entry;)"),
    "Answer": re.compile(r"\bgrpc::Status Answer\((?:[^;{}])*\)\s*\{\s*const GrpcEntry entry = EnterCall\([^;]*\);\s*"
                         r"if \(!entry\.ok\(\)\) return entry\.status;"),
}


def _bodies(text: str) -> Iterator[tuple[str, int, int]]:
    """name, where it stands, where its body begins."""
    for match in _OVERRIDE.finditer(text):
        yield match.group(1), match.start(), match.end()
    for match in _DEFINITION.finditer(text):
        yield match.group(2), match.start(), match.end()


def check_rpc_doors(tree: Tree) -> Iterator[Finding]:
    """Each method of the contract asks who calls in its first statement, and goes no further without an answer."""
    rpcs = {name: path for path in tree.ending(".proto") if path.startswith("proto/")
            for name in _RPC.findall(without_comments(tree.text(path)))}
    begun: set[str] = set()
    for path in tree.files:
        if not path.startswith("server/") or not path.endswith(("_service.cc", "_service.h")):
            continue
        text = without_comments(tree.text(path))
        for name, at, body in _bodies(text):
            if name not in rpcs:
                continue
            begun.add(name)
            if not (asks := _ASKS.match(text, body)):
                yield Finding(path, line_of(text, at), "rpc door",
                              f"{name} does not begin by asking who calls: EnterCall, CallerOf or Answer, and its refusal")
                continue
            for helper, begins in _HELPERS.items():
                if re.search(rf"\b{helper}\(", asks.group()) and not begins.search(text):
                    yield Finding(path, line_of(text, at), "rpc door",
                                  f"{name} leaves the question to {helper}, which does not begin with EnterCall in this file")
    for name, path in sorted(rpcs.items()):
        if name not in begun:
            yield Finding(path, 0, "rpc door", f"no definition of {name} in server/*_service.cc that this rule can read")
