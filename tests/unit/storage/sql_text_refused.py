"""What must not become SQL does not compile: python3 sql_text_refused.py COMPILER ROOT. Exit 1 where it does.

Beside each line that is refused stands that the page around it compiles.
"""

import subprocess
import sys

PAGE = """
#include <string>
#include "%s"
namespace stepwell {
class PgConnection;
std::string name;
char changed[] = "select 1";
const char* const pointed = changed;
const char filled[2] = {pointed[0], 0};
constexpr char kUnended[] = {'x'};
void Page([[maybe_unused]] PgConnection& connection) {
  %s
}
}
"""

# What it is, and whether it compiles.
LINES = [
    ('SqlText made = SqlCat({"select ", SqlName(name)}); connection.Exec(made).status().IgnoreError();', True),
    ('connection.ExecScript("select 1").IgnoreError();', True),
    ("SqlText made = name;", False),
    ("SqlText made = name.c_str();", False),
    ("SqlText made = changed;", False),
    ("SqlText made(pointed);", False),
    ("SqlText made = filled;", False),
    ("SqlText made = kUnended;", False),
    ("SqlText made(std::string_view{name});", False),
    ("SqlText made = SqlMaker::Make(name);", False),
    ('SqlText made = "select 1\\0; drop table t";', False),
    ('SqlText made = SqlCat({"select ", name});', False),
    ('SqlText made = SqlCat({"select ", name.c_str()});', False),
    ('SqlText made = SqlCat({"select ", changed});', False),
    ("connection.Exec(name).status().IgnoreError();", False),
    ("connection.ExecScript(changed).IgnoreError();", False),
    ('connection.CopyIn(name.c_str(), "").status().IgnoreError();', False),
    ("const PgStatement statement = {name};", False),
]


def compiles(compiler: str, root: str, line: str) -> tuple[bool, str]:
    header = "storage/pg_connection.h" if "connection" in line or "PgStatement" in line else "storage/sql_text.h"
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{root}", "-x", "c++", "-"],
                          input=PAGE % (header, line), capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main() -> int:
    compiler, root = sys.argv[1:]
    wrong = 0
    for line, expected in LINES:
        does, told = compiles(compiler, root, line)
        if does != expected:
            wrong += 1
            print(f"{line}\n{'compiles' if does else told}")
    print(f"{len(LINES)} lines, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
