"""The floors: which folder may include which, and which files may hold a foreign library."""

import fnmatch
import pathlib
import re
from collections.abc import Iterator

from tree import Finding, Tree

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Rooms that a folder's files may include besides their own. A folder that is not listed (tests,
# bench) is the roof and sees everything.
_LEANS_ON = {
    "base": set(),
    "proto": set(),
    "storage": {"base"},
    "server": {"base", "storage", "proto"},
    "client/recorder": set(),
    "client/traces": {"base", "proto"},
    "client/agent": {"base", "proto", "client/recorder", "client/traces"},
    "client/cli": {"base", "proto", "client/recorder", "client/traces"},
    "client/demo": {"client/recorder"},
    "client/python": {"client/recorder"},
}
# What joins server, agent and subcommands into one executable, and the subcommands that look into
# spool directories with the agent's eyes. They are sources of the executable, not of the library.
_LINKERS = ("client/cli/main.cc", "client/cli/agent_status.cc", "client/cli/spool_in_use.cc",
            "client/cli/spool_in_use.h", "client/cli/upload.cc")

# Foreign library -> the files that may include it. A folder not named may not include it at all.
_FOREIGN = {
    "Python": (r"Python\.h|structmember\.h", ("client/python/core/*",)),
    "libpq": (r"libpq-fe\.h|libpq/|postgresql/", ("storage/pg_*.cc",)),
    "gRPC": (r"grpc|grpcpp/|.*\.grpc\.pb\.h$",
             ("server/*_service.cc", "server/grpc_*.cc", "server/http/rpc_*.cc", "base/grpc_log.h", "proto/request_traits.*", "client/agent/stream.cc", "client/agent/trace_calls.cc", "client/agent/token_calls.cc", "client/agent/clock_calls.cc", "client/cli/*.cc")),
    "Boost": (r"boost/", ("server/http/http_server.cc", "server/http/http_connection.*",
                          "server/http/http_head.h", "server/http/http_reading.*", "server/http/http_stream.*",
                          "server/http/http_tls.*", "server/http/http_token_watch.*")),
    "OpenSSL": (r"openssl/", ("base/sha256.cc", "server/token_text.cc", "base/tls/*", "storage/migrator.cc", "storage/series_labels.cc",
                              "server/http/http_tls.cc")),
    "prometheus": (r"prometheus/", ("server/metric_families.cc",)),
    "zlib": (r"zlib\.h", ("server/http/gzip.cc", "base/trace/gzip_*.cc")),
    "RapidJSON": (r"rapidjson/", ("base/trace/trace_event.cc",)),
    "spdlog": (r"spdlog/", ("base/log.cc",)),
    "fmt": (r"fmt/", ("base/log.cc", "client/cli/*.cc")),
    "protobuf": (r"google/protobuf/", ("proto/*", "server/*", "client/agent/*", "client/cli/*")),
    "abseil": (r"absl/", ("base/*", "proto/*", "storage/*", "server/*", "client/traces/*", "client/agent/*", "client/cli/*")),
}
# Gathered where more than one file is needed, each with its reason.
_FOREIGN_ALSO = {
    # The service's class derives from the generated one, which is what its header declares.
    "gRPC": ("server/*_service.h", "server/grpc_*.h", "server/server.cc", "server/server.h"),
}


def room_of_file(name: str) -> str:
    """"storage" for storage/x.cc, "client/agent" for client/agent/x.cc."""
    parts = pathlib.PurePath(name).parts
    return "/".join(parts[:2]) if parts[0] == "client" and len(parts) > 2 else parts[0]


def room_of_include(path: str) -> str | None:
    """The room that an include names; None for the standard and foreign libraries."""
    if path.startswith(("stepwell/v1/", "google/rpc/")):
        return "proto"
    if path.startswith("stepwell/"):
        return "client/recorder"
    room = room_of_file(path) if "/" in path else None
    return room if room in _LEANS_ON or room in {"tests", "bench", "proto", "migrations"} else None


def includes(tree: Tree, name: str) -> Iterator[tuple[int, str, bool]]:
    """(line, path, whether in quotes) of each #include."""
    for number, line in tree.lines(name):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(2), match.group(1) == '"'


def _foreign_refusal(name: str, path: str) -> str | None:
    for library, (pattern, allowed) in _FOREIGN.items():
        if re.match(pattern, path):
            allowed = allowed + _FOREIGN_ALSO.get(library, ())
            if not any(fnmatch.fnmatch(name, glob) for glob in allowed):
                return f"{library} may be included by {', '.join(allowed)} only"
    return None


def check_floors(tree: Tree) -> Iterator[Finding]:
    """An include goes to the same floor's room or below, a foreign library stays in its skin."""
    for name in tree.ending(".cc", ".c", ".h"):
        room = room_of_file(name)
        if room not in _LEANS_ON:
            continue
        for number, path, _ in includes(tree, name):
            target = room_of_include(path)
            if target and target != room and target not in _LEANS_ON[room] and name not in _LINKERS:
                allowed = ", ".join(sorted(_LEANS_ON[room])) or "no other room"
                yield Finding(name, number, "floor", f"{room} may not include {target}; it leans on {allowed}")
            refusal = _foreign_refusal(name, path)
            if refusal and name not in _LINKERS:
                yield Finding(name, number, "foreign", f"<{path}>: {refusal}")


def check_own_header_first(tree: Tree) -> Iterator[Finding]:
    """x.cc with an x.h beside it includes that first: this proves that the header stands alone."""
    for name in tree.ending(".cc"):
        own = name.removesuffix(".cc") + ".h"
        found = list(includes(tree, name))
        if tree.has(own) and found and not own.endswith(found[0][1]):
            yield Finding(name, found[0][0], "own header first", f'the first include is "{own}"')


def check_includes_exist(tree: Tree) -> Iterator[Finding]:
    """A quoted include is a path from the top of the checkout (or of the recorder's public folder)."""
    for name in tree.ending(".cc", ".c", ".h"):
        if name.startswith("tests/install/"):
            continue
        for number, path, quoted in includes(tree, name):
            ours = "/" not in path or room_of_include(path) not in (None, "proto")
            if quoted and ours and not tree.has(path) and not tree.has(f"client/recorder/include/{path}"):
                yield Finding(name, number, "include path", f'"{path}" is no file from the top of the checkout')
