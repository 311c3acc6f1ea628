"""Each layout rule is shown to go red on a made-up tree that breaks it, and to stay green beside it."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import check  # noqa: E402
import floors  # noqa: E402
import trial_doors  # noqa: E402

# A small house in order. Each case changes one file of it.
HOUSE = {
    "CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(storage)\nadd_subdirectory(server)\n",
    "README.md": "# A house\n",
    "base/CMakeLists.txt": "stepwell_library(stepwell_base)\n",
    "base/clock.h": "#pragma once\n",
    "base/clock.cc": '#include "base/clock.h"\n\n#include <ctime>\n',
    "storage/CMakeLists.txt": "stepwell_library(stepwell_storage)\n",
    "storage/pg_link.h": "#pragma once\n",
    "storage/pg_link.cc": '#include "storage/pg_link.h"\n\n#include <libpq-fe.h>\n\n#include "base/clock.h"\n',
    "storage/pg_store.cc": '#include "storage/pg_link.h"\n',
    "server/CMakeLists.txt": "stepwell_library(stepwell_server)\n",
    "server/query_service.cc": "#include <grpcpp/grpcpp.h>\n",
}

# A house with three rules of its agent, and a test for each of them but those left out.
def agent_house(*left_out: int) -> dict[str, str | None]:
    tests = "".join(f"TEST(AgentTest, AgentRule{rule:02}_Holds) {{}}\n" for rule in (1, 3, 16) if rule not in left_out)
    return {"docs/agent.md": "# Rules\n\n## 1. Ring\n\n## 3. No sequence twice\n\n## 16. System metrics\n",
            "tests/CMakeLists.txt": "stepwell_tests(t)\n", "tests/agent_test.cc": tests,
            "CMakeLists.txt": HOUSE["CMakeLists.txt"] + "add_subdirectory(tests)\n"}


# A house with a fault matrix; `row` is added to it.
def matrix_house(row: str, rows: int = 52) -> dict[str, str | None]:
    page = "".join(f"| {number} | a fault | open |\n" for number in range(1, rows + 1))
    return {"docs/reliability.md": f"# Reliability\n\n{page}{row}", "tests/CMakeLists.txt": "stepwell_tests(t)\n",
            "tests/crash_test.cc": "TEST_F(CrashTest,\n       NothingIsLost) {}\n",
            "CMakeLists.txt": HOUSE["CMakeLists.txt"] + "add_subdirectory(tests)\n"}


# In place of a file: the house is a repository of one commit, which `COMMIT` in a text stands for.
COMMITTED = {".git": ""}


def commit(root: pathlib.Path) -> str:
    """Makes the house a repository; its commit, shortened."""
    git = ["git", "-C", str(root), "-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "--no-verify", "-m", "a house"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]


# A house whose master is killed in the middle of a fold; `passed` is a line of its store, `table` one of the test.
def killed_house(passed: str = "", table: str = "") -> dict[str, str | None]:
    return {"storage/pg_store.cc": '#include "storage/pg_link.h"\n\nint f() { STEPWELL_FAILPOINT("fold_after_commit"); }\n'
                                   + passed,
            "tests/CMakeLists.txt": "add_subdirectory(faults)\n",
            "tests/faults/CMakeLists.txt": "stepwell_tests(t)\n",
            "tests/faults/kill_points_test.cc": 'Work kFold = {.points = {{"fold_after_commit", 10}}};\n' + table,
            "CMakeLists.txt": HOUSE["CMakeLists.txt"] + "add_subdirectory(tests)\n"}


def broken(changes: dict[str, str | None]) -> list[tuple[str, str]]:
    """(path, rule) of what is broken in the house with these files changed, added or (None) removed."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        changes = dict(changes)
        made = commit(root) if changes.pop(".git", None) is not None else "COMMIT"
        for name, text in {**HOUSE, **changes}.items():
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text.replace("COMMIT", made), encoding="utf-8")
        return [(finding.path, finding.rule) for finding in check.check(root) if not finding.warning]


# How a method of gRPC begins.
ASKS = ("  const GrpcEntry entry = EnterCall(access_, *call, *request);\n"
        "  if (!entry.ok()) return entry.status;\n")


# A house with one method of gRPC, whose definition begins so; `beside` stands before it.
def rpc_house(begins: str, beside: str = "") -> dict[str, str | None]:
    return {"proto/trial.proto": "service S {\n  rpc GetTrial(A) returns (B);\n}\n",
            "server/trial_service.cc": beside + "grpc::Status Trials::GetTrial(grpc::ServerContext* call, const A* request,\n"
            f"                              B* response) {{\n{begins or ASKS}  return grpc::Status::OK;\n}}\n"}


# A line that makes a TrialId of a client's number, and may.
KNOWN_TRIAL = "if (selector.trial_id != 0 && projects.is_all()) return TrialId{selector.trial_id};\n"

# name of the row, what is changed in the house, the one (path, rule) that goes red
RED = [
    ("commit that nobody has", {**COMMITTED, "README.md": "# A house\n\n| 3 ns | `bench`, 4700fd38, n=5 |\n"},
     ("README.md", "cited commit")),
    ("commit of digits", {**COMMITTED, "docs/a.md": "It was 3 ns (commit 99262863).\n"}, ("docs/a.md", "cited commit")),
    ("base looks up", {"base/clock.cc": '#include "base/clock.h"\n#include "storage/pg_link.h"\n'},
     ("base/clock.cc", "floor")),
    ("server looks at the client", {"server/wire.cc": "#include <stepwell/recorder.h>\n"},
     ("server/wire.cc", "floor")),
    ("storage knows the wire", {"storage/codec.cc": '#include "stepwell/v1/model.pb.h"\n'},
     ("storage/codec.cc", "floor")),
    ("libpq outside its skin", {"storage/model.cc": "#include <libpq-fe.h>\n"}, ("storage/model.cc", "foreign")),
    ("gRPC in a core", {"server/plan.cc": "#include <grpcpp/grpcpp.h>\n"}, ("server/plan.cc", "foreign")),
    ("Boost outside http", {"server/plan.cc": "#include <boost/asio.hpp>\n"}, ("server/plan.cc", "foreign")),
    ("own header late", {"base/clock.cc": '#include <ctime>\n#include "base/clock.h"\n'},
     ("base/clock.cc", "own header first")),
    ("include of nothing", {"base/clock.cc": '#include "base/clock.h"\n#include "base/gone.h"\n'},
     ("base/clock.cc", "include path")),
    ("501 lines", {"base/clock.cc": '#include "base/clock.h"\n' + "//\n" * 500}, ("base/clock.cc", "length")),
    ("open end", {"base/clock.cc": '#include "base/clock.h"\n// TO' + "DO: later\n"}, ("base/clock.cc", "open end")),
    ("word", {"README.md": "Every data" + "point counts.\n"}, ("README.md", "word")),
    ("a group of writes", {"README.md": "one batch of" + " writes\n"}, ("README.md", "word")),
    ("no guard", {"base/clock.h": "class Clock;\n"}, ("base/clock.h", "pragma once")),
    ("a person's folder", {"README.md": "see /home" + "/jo/stepwell\n"}, ("README.md", "machine path")),
    ("registry", {"README.md": "from https://registry.npm" + "js.org/x\n"}, ("README.md", "registry")),
    ("lock file address", {"tests/package-lock.json": '{"resolved": "x"}\n'}, ("tests/package-lock.json", "registry")),
    ("dead source", {"base/tools/dump.cc": "int main() {}\n"}, ("base/tools/dump.cc", "dead file")),
    ("folder that nobody adds", {"server/verdict/CMakeLists.txt": "stepwell_library(v)\n",
                                 "server/verdict/rule.cc": "\n"}, ("server/verdict/rule.cc", "dead file")),
    ("a glob that misses", {"base/CMakeLists.txt": "file(GLOB s src/*.cc)\nadd_library(b ${s} clock.cc)\n",
                            "base/old.cc": "\n"}, ("base/old.cc", "dead file")),
    ("excluded source", {"base/CMakeLists.txt": "stepwell_library(b EXCLUDE old.cc)\n", "base/old.cc": "\n"},
     ("base/old.cc", "dead file")),
    ("dead header", {"base/unused.h": "#pragma once\n"}, ("base/unused.h", "dead file")),
    ("a C file that looks upstairs",
     {"client/python/core/x.c": '#include "server/x.h"\n', "server/x.h": "#pragma once\n"},
     ("client/python/core/x.c", "floor")),
    ("Python in the recorder", {"client/recorder/src/x.c": "#include <Python.h>\n"},
     ("client/recorder/src/x.c", "foreign")),
    ("a rule of the agent without a test", agent_house(16), ("docs/agent.md", "agent rule")),
    ("one that is switched off", {**agent_house(3), "tests/off_test.cc": "TEST(A, DISABLED_AgentRule03_X) {}\n"},
     ("docs/agent.md", "agent rule")),
    ("a row that names a test of long ago", matrix_house("| x | `CrashTest.NothingIsDoubled` |\n"),
     ("docs/reliability.md", "fault row")),
    ("one that names a Python test of another class",
     {**matrix_house("| x | `ATest.test_one`, `BTest.test_one` |\n"),
      "tests/python/test_x.py": "class ATest:\n    def test_one(self):\n        pass\n"},
     ("docs/reliability.md", "fault row")),
    ("a place where nobody kills", killed_house('int g() { return failpoint::Check("merge_before_commit"); }\n'),
     ("storage/pg_store.cc", "kill point")),
    ("a migration that nobody kills", killed_house('int g() { STEPWELL_FAILPOINT("migration_after_commit"); }\n'),
     ("storage/pg_store.cc", "kill point")),
    ("a kill where nobody comes by", killed_house(table='Work kMerge = {.points = {{"merge_before_commit"}}};\n'),
     ("tests/faults/kill_points_test.cc", "kill point")),
    ("a mutant of a line that was changed since",
     {"tests/simulation/mutants/mutants.json":
          '[{"name": "m", "changes": [{"file": "base/clock.cc", "from": "#include <chrono>", "to": ""}]}]'},
     ("tests/simulation/mutants/mutants.json", "mutant")),
    ("a row that is gone", matrix_house("", rows=51), ("docs/reliability.md", "fault row")),
    ("a test's file with a fixed name", {"base/clock.cc": '#include "base/clock.h"\nauto f = TempDir() + "x";\n'},
     ("base/clock.cc", "scratch")),
    ("a wait until a time of the wall clock",
     {"base/clock.cc": '#include "base/clock.h"\nbool b = mu.AwaitWithDeadline(absl::Condition(&done), deadline);\n'},
     ("base/clock.cc", "wall clock")),
    ("a lock by it", {"storage/pg_store.cc": '#include "storage/pg_link.h"\nmu.LockWhenWithDeadline(done, until);\n'},
     ("storage/pg_store.cc", "wall clock")),
    ("a condition variable by it", {"server/query_service.cc": "bool late = changed_.WaitWithDeadline(&mu_, until);\n"},
     ("server/query_service.cc", "wall clock")),
    ("one of the C library", {"server/query_service.cc": "int rc = pthread_mutex_timedlock(&mutex, &until);\n"},
     ("server/query_service.cc", "wall clock")),
    ("a duration by it", {"base/clock.cc": '#include "base/clock.h"\nauto took = absl::Now() - begin;\n'},
     ("base/clock.cc", "wall clock")),
    ("a due time by it", {"server/query_service.cc": "auto due = std::chrono::system_clock::now() + kPatience;\n"},
     ("server/query_service.cc", "wall clock")),
    ("a digest that is compared by ==",
     {"server/token_guard.cc": "if (shown == found->second->digest) return holder;\n"}, ("server/token_guard.cc", "digest")),
    ("one that is looked for otherwise", {"server/token_loop.cc": "bool is_other = stored.digest !=\n    TokenDigest(text);\n"},
     ("server/token_loop.cc", "digest")),
    ("one that a function makes", {"server/token_file.cc": "if (TokenDigest(text) == shown) return true;\n"},
     ("server/token_file.cc", "digest")),
    ("a value of a table of digests", {"server/ended_tokens.cc": "return found != end && found->second == shown;\n"},
     ("server/ended_tokens.cc", "digest")),
    ("bytes of one", {"server/token_text.cc": "return std::memcmp(a.data(), b.data(), a.size()) == 0;\n"},
     ("server/token_text.cc", "digest")),
    ("the begin of one", {"server/token_guard.cc": "return absl::StartsWith(authorization, inside_);\n"},
     ("server/token_guard.cc", "digest")),
    ("a value in a statement", {"server/query_service.cc": 'Exec(absl::StrCat("select * from stepwell.trials where name = \'", name));\n'},
     ("server/query_service.cc", "sql")),
    ("one that is added", {"storage/pg_store.cc": '#include "storage/pg_link.h"\nauto s = "delete from stepwell.x where id = " + id;\n'},
     ("storage/pg_store.cc", "sql")),
    ("one on a line of its own", {"storage/pg_store.cc": '#include "storage/pg_link.h"\nauto s =\n    absl::StrCat(\n        "drop table ", name);\n'},
     ("storage/pg_store.cc", "sql")),
    ("a statement that is called one, and grows", {"server/query_service.cc": 'std::string sql = kReadTrial;\nsql += name;\n'},
     ("server/query_service.cc", "sql")),
    ("one that grows by a call", {"server/query_service.cc": 'absl::StrAppend(&sql, " and name = \'", name, "\'");\n'},
     ("server/query_service.cc", "sql")),
    ("a constant that is joined", {"server/query_service.cc": "auto text = absl::StrCat(sql::kReadTrial, name);\n"},
     ("server/query_service.cc", "sql")),
    ("one that is added to", {"server/query_service.cc": "auto text = sql::kReadTrial + name;\n"},
     ("server/query_service.cc", "sql")),
    ("a block of code", {"server/query_service.cc": 'auto text = absl::StrCat("do $$ begin ", name);\n'},
     ("server/query_service.cc", "sql")),
    ("a made-up text that is run", {"storage/pg_store.cc": '#include "storage/pg_link.h"\nconnection.Exec(made.c_str());\n'},
     ("storage/pg_store.cc", "sql")),
    ("who puts names of tables into statements by hand", {"storage/pg_leaves.cc": 'auto s = absl::StrCat("create table ", leaf);\n'},
     ("storage/pg_leaves.cc", "sql")),
    ("one that goes to libpq by itself",
     {"storage/pg_store.cc": '#include "storage/pg_link.h"\nPQexec(connection, sql.c_str());\n'}, ("storage/pg_store.cc", "sql")),
    ("a text of anybody's that goes there", {"storage/pg_connection.cc": "PQsendQuery(connection_, asked.c_str());\n"},
     ("storage/pg_connection.cc", "sql")),
    ("one that is put together on its way",
     {"storage/pg_connection_pipeline.cc": 'PQsendPrepare(connection_, place.name.c_str(), absl::StrCat(sql, name).c_str());\n'},
     ("storage/pg_connection_pipeline.cc", "sql")),
    ("who makes SQL of any text", {"storage/pg_store.cc": '#include "storage/pg_link.h"\nauto s = SqlMaker::Make(name);\n'},
     ("storage/pg_store.cc", "sql")),
    ("who does what tests may", {"storage/pg_store.cc": '#include "storage/pg_link.h"\nstruct SqlOfTests {};\n'},
     ("storage/pg_store.cc", "sql")),
    ("a test with a door of its own", {"tests/CMakeLists.txt": "stepwell_tests(t)\n", "tests/clock_test.cc": "SqlOfTests::Make(name);\n",
                                       "CMakeLists.txt": HOUSE["CMakeLists.txt"] + "add_subdirectory(tests)\n"},
     ("tests/clock_test.cc", "sql")),
    ("a method that forgets to ask who calls", rpc_house("  *response = Read();\n"), ("server/trial_service.cc", "rpc door")),
    ("one that asks and does not listen", rpc_house("  const GrpcEntry entry = EnterCall(access_, *call, *request);\n  Read();\n"),
     ("server/trial_service.cc", "rpc door")),
    ("one that looks at its request before", rpc_house("  if (request->size() > 3) return TooLarge();\n" + ASKS),
     ("server/trial_service.cc", "rpc door")),
    ("one that asks in a comment", rpc_house("  // " + ASKS.lstrip().replace("\n", "")), ("server/trial_service.cc", "rpc door")),
    ("one in its class", rpc_house("", "grpc::Status GetTrial(grpc::ServerContext* call) override {\n  Read();\n}\n"),
     ("server/trial_service.cc", "rpc door")),
    ("one that leaves it to a function that does not ask",
     rpc_house('  return Answer("GetTrial", call, *request, response);\n', "grpc::Status Answer(int call) {\n  Read();\n}\n"),
     ("server/trial_service.cc", "rpc door")),
    ("one whose Enter refuses before it asks",
     rpc_house(ASKS.replace("EnterCall(access_, ", "Enter("),
               "GrpcEntry Enter(int call) const {\n  if (loop == nullptr) return {Refusal(), nullptr};\n  return EnterCall(access, call);\n}\n"),
     ("server/trial_service.cc", "rpc door")),
    ("an rpc whose definition is elsewhere", {"proto/trial.proto": "service S {\n  rpc GetTrial(A) returns (B);\n}\n"},
     ("proto/trial.proto", "rpc door")),
    ("a client's number that is called a trial", {"server/query_service.cc": "Follow(TrialId{request->trial_id()});\n"},
     ("server/query_service.cc", "trial id")),
    ("one behind an address",
     {"server/query_service.cc": "Ask('\"', \"http://here\"); Follow(TrialId{request->trial_id()});\n"},
     ("server/query_service.cc", "trial id")),
    ("one by a constructor's form", {"server/query_service.cc": "Follow(TrialId(request->trial_id()));\n"},
     ("server/query_service.cc", "trial id")),
    ("one by a cast", {"server/query_service.cc": "Follow(static_cast<stepwell::TrialId>(ref.trial_id()));\n"},
     ("server/query_service.cc", "trial id")),
    ("one by C's", {"server/query_service.cc": "Follow((TrialId)ref.trial_id());\n"}, ("server/query_service.cc", "trial id")),
    ("one by a cast of what it lies in", {"server/query_service.cc": "auto& id = reinterpret_cast<const TrialId&>(number);\n"},
     ("server/query_service.cc", "trial id")),
    ("a variable of one", {"server/query_service.cc": "const TrialId trial{\n    ref.trial_id()};\n"},
     ("server/query_service.cc", "trial id")),
    ("a member of one", {"server/query_service.cc": "Handler::Handler(long number) : trial_id_{number} {}\n"},
     ("server/query_service.cc", "trial id")),
    ("another name of the type", {"server/query_service.cc": "using Id = TrialId;\n"}, ("server/query_service.cc", "trial id")),
    ("its type by a variable", {"server/query_service.cc": "trial_id = decltype(trial_id){number};\n"},
     ("server/query_service.cc", "trial id")),
    ("a row that the master reads", {"server/query_service.cc": "Follow(TrialId{rows.Int64(row, 0)});\n"},
     ("server/query_service.cc", "trial id")),
    ("a selector's number in storage",
     {"storage/pg_store.cc": '#include "storage/pg_link.h"\nreturn TrialId{selector.trial_id};\n'}, ("storage/pg_store.cc", "trial id")),
    ("an exception of another file",
     {"storage/pg_store.cc": '#include "storage/pg_link.h"\n' + KNOWN_TRIAL}, ("storage/pg_store.cc", "trial id")),
    ("an exception that is taken twice",
     {"storage/pg_reader.cc": KNOWN_TRIAL + KNOWN_TRIAL}, ("storage/pg_reader.cc", "trial id")),
    ("an exception whose filter is gone",
     {"storage/pg_reader.cc": KNOWN_TRIAL + "if (selector.trial_id != 0) return TrialId{selector.trial_id};\n"},
     ("storage/pg_reader.cc", "trial id")),
    ("an exception that nobody needs", {"storage/pg_reader.cc": "\n"}, ("storage/pg_reader.cc", "trial id")),
    ("a handler that asks of all projects", {"server/query_service.cc": "store.FindTrial(selector, kAllProjects, deadline);\n"},
     ("server/query_service.cc", "all projects")),
    ("one that spells it out", {"server/query_service.cc": "ProjectFilter filter = ProjectFilter::All::kProjects;\n"},
     ("server/query_service.cc", "all projects")),
    ("one without a name", {"server/query_service.cc": "store.FindTrial(selector, ProjectFilter::All{}, deadline);\n"},
     ("server/query_service.cc", "all projects")),
    ("one for nobody who calls", {"server/query_service.cc": "store.FindTrial(selector, ReadableProjects(nullptr), deadline);\n"},
     ("server/query_service.cc", "all projects")),
    ("who may once, and does twice", {"server/sweep_loop.cc": "SweepNow(target, kAllProjects);\nSweepNow(target, kAllProjects);\n"},
     ("server/sweep_loop.cc", "all projects")),
    ("who may, and does not", {"server/sweep_loop.cc": "\n"}, ("server/sweep_loop.cc", "all projects")),
    ("new top level", {"scripts/x.sh": "true\n"}, ("scripts", "top level")),
]

GREEN = [
    ("commit that is there", {**COMMITTED, "README.md": "# A house\n\n| 3 ns | COMMIT, n=5 |\n"}),
    ("what is no commit", {**COMMITTED, "docs/a.md": "10000000 samples; `4700fd38` is an id\n\n    revoke 4700fd38\n"}),
    ("commits without a history", {"README.md": "# A house\n\n3 ns, commit 4700fd38\n"}),
    ("the house itself", {}),
    ("an open end with a name", {"base/clock.cc": '#include "base/clock.h"\n// TO' + "DO(alex): leap seconds\n"}),
    ("main joins the floors", {"client/cli/main.cc": '#include "storage/pg_link.h"\n#include "server/x.h"\n',
                               "client/cli/CMakeLists.txt": "add_executable(stepwell main.cc)\n",
                               "server/x.h": "#pragma once\n",
                               "CMakeLists.txt": HOUSE["CMakeLists.txt"] + "add_subdirectory(client/cli)\n"}),
    ("a header for C files", {"client/python/core/x.h": "#pragma once\n",
                              "client/python/core/y.c": '#include <Python.h>\n\n#include "client/python/core/x.h"\n'}),
    ("a training batch", {"README.md": "The batch of a sample is a training batch.\n"}),
    ("500 lines warn only", {"base/clock.cc": '#include "base/clock.h"\n' + "//\n" * 499}),
    ("a glob of a folder below", {"base/CMakeLists.txt": "file(GLOB s ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cc)\n"
                                  "add_library(stepwell_base ${s} clock.cc)\n", "base/src/uuid.cc": "\n"}),
    ("an installed header guards the C way", {"client/recorder/include/stepwell/r.h":
                                              "#ifndef R_H_\n#define R_H_\n#endif\n"}),
    ("each rule of the agent has a test", agent_house()),
    ("places where all are killed", killed_house("// STEPWELL_FAILPOINT(\"of_a_comment\")\n")),
    ("a row whose test exists", matrix_house("| x | `CrashTest.NothingIsLost` and `docs/spool.md` |\n")),
    ("stamps of the wall clock", {"base/clock.cc": '#include "base/clock.h"\n'
                                  "auto stamp_us = absl::ToUnixMicros(absl::Now());\n"
                                  "absl::Time RealClock::Now() const { return absl::Now(); }\n"}),
    ("what holds abseil's waits may name them",
     {"base/monotonic_waits.cc": "// of AwaitWithDeadline(condition, until)\n"}),
    ("deadlines in tests are theirs", {"tests/CMakeLists.txt": "stepwell_tests(t)\n",
                                       "tests/clock_test.cc": "bool b = mu.AwaitWithDeadline(done, absl::Now() + k);\n",
                                       "CMakeLists.txt": HOUSE["CMakeLists.txt"] + "add_subdirectory(tests)\n"}),
    ("a statement with bound values, and English",
     {"storage/pg_store.cc": '#include "storage/pg_link.h"\nconstexpr char kX[] = "select 1 from stepwell.x where id = $1";\n'
                             'auto s = absl::StrCat("selected ", n, " of them");\n'}),
    ("names of tables that are put into statements", {"storage/pg_leaves.cc": 'auto s = SqlCat({"create table ", leaf});\n'}),
    ("the one file that puts SQL together",
     {"storage/sql_text.h": "#pragma once\nfriend struct SqlMaker;\nfriend struct SqlOfTests;\n",
      "storage/pg_store.cc": '#include "storage/pg_link.h"\n#include "storage/sql_text.h"\n',
      "storage/sql_text.cc": '#include "storage/sql_text.h"\nstruct SqlMaker {};\nauto s = absl::StrCat("select ", column);\n'}),
    ("what PgConnection sends",
     {"storage/pg_connection.cc": 'PQsendQuery(connection_, "commit");\nPQsendQueryParams(connection_, sql.c_str(), bound.count());\n'
                                  "PQsendPrepare(connection_, place.name.c_str(), statement.sql.c_str(), 0);\n"}),
    ("digests that are compared in a time that tells nothing",
     {"server/token_guard.cc": "// shown == digest would tell\nif (found == holders_.end() || !IsSameDigest(secret, found->second->digest)) return;\n"
                               "const bool same = digest.empty() || secret.size() == kSecretDigits;\n",
      "server/token_text.cc": "return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;\n",
      "server/query_service.cc": "if (trace.digest != expected_digest) return DataLoss();\n"}),
    ("a method that asks who calls", rpc_house("")),
    ("one that opens a stream", rpc_house("  auto caller = CallerOf(access_, *call);\n"
                                          "  if (!caller.ok()) return new RefusingReactor(GrpcError(caller.status()));\n")),
    ("one that leaves it to a function that asks",
     rpc_house('  return Answer("GetTrial", call, *request, response);\n', f"grpc::Status Answer(int call) {{\n{ASKS}  Read();\n}}\n")),
    ("what is no method of the contract", {"server/trial_service.cc": "grpc::Status Trials::Failed(int code) {\n  Read();\n}\n"}),
    ("trials of rows, and numbers of none",
     {"storage/pg_store.cc": '#include "storage/pg_link.h"\nfound.trial_id = TrialId{result.Int64(row, kTrialId)};\n'
                             "const TrialId id{rows.Int64(row, 0)};\nauto own = TrialId{found->Int64(0, 0)};\n"
                             "read.place.trial_id = TrialId{in.Int64()};\n",
      "storage/pg_reader.cc": "// TrialId{x} would be one\n" + KNOWN_TRIAL,
      "server/query_service.cc": "TrialId trial_id{};\nif (trial_id == TrialId{} || trial_id == TrialId()) return;\n"
                                 "void Forget(TrialId) override;\nTrialId trial_id() const { return trial_id_; }\n"
                                 "std::function<void(TrialId)> forget_;\nauto size = sizeof(TrialId) * count;\n"
                                 "if (has_trial_id) {\n}\n"}),
    ("who may ask of all projects", {"server/sweep_loop.cc": "// kAllProjects, for\nSweepNow(target, kAllProjects);\n",
                                     "server/query_service.cc": "store.FindTrial(selector, ReadableProjects(entry.caller), deadline);\n"}),
    ("excluded here, an executable there",
     {"base/CMakeLists.txt": "stepwell_library(b EXCLUDE main.cc)\nadd_executable(m main.cc)\n", "base/main.cc": "\n"}),
]


class LayoutTest(unittest.TestCase):
    def test_each_rule_goes_red(self):
        for name, changes, expected in RED:
            with self.subTest(name):
                self.assertIn(expected, broken(changes))

    def test_only_the_broken_file_is_named(self):
        for name, changes, expected in RED:
            with self.subTest(name):
                self.assertEqual({expected}, set(broken(changes)))

    def test_stays_green(self):
        for name, changes in GREEN:
            with self.subTest(name):
                self.assertEqual([], broken(changes))

    def test_every_rule_has_a_red_case(self):
        rules_seen = {rule for _, _, (_, rule) in RED}
        self.assertEqual(len(check.RULES), len(rules_seen - {"foreign"}), rules_seen)

    def test_exceptions_are_of_files_that_are_there(self):
        root = pathlib.Path(__file__).parents[2]
        for path in [path for path, _ in trial_doors.MAKES] + list(trial_doors.ALL_PROJECTS):
            with self.subTest(path):
                self.assertTrue((root / path).is_file())

    def test_exit_code_says_whether_a_rule_is_broken(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            arguments, sys.argv = sys.argv, ["check.py", folder]
            try:
                self.assertEqual(0, check.main())
                (pathlib.Path(folder) / "scripts").mkdir()
                (pathlib.Path(folder) / "scripts" / "x.sh").write_text("true\n")
                self.assertEqual(1, check.main())
            finally:
                sys.argv = arguments

    def test_rooms(self):
        for path, room in [("base/clock.h", "base"), ("stepwell/v1/model.pb.h", "proto"),
                           ("stepwell/recorder.h", "client/recorder"), ("client/agent/x.h", "client/agent"),
                           ("absl/status/status.h", None), ("vector", None)]:
            with self.subTest(path):
                self.assertEqual(room, floors.room_of_include(path))


if __name__ == "__main__":
    unittest.main()
