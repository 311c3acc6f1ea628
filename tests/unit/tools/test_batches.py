"""Which sources are compiled together: none that have a name of their own in common, or mean different things by one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = ROOT / "cmake" / "batches.py"


def source(inside: str, outside: str = "") -> str:
    return f"namespace stepwell {{\nnamespace {{\n\n{inside}\n\n}}  // namespace\n\n{outside}\n\n}}  // namespace stepwell\n"


class BatchesTest(unittest.TestCase):
    def batches(self, *texts: str, size: int = 8) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for number, text in enumerate(texts):
                names.append(pathlib.Path(folder) / f"{number}.cc")
                names[-1].write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, PROGRAM, folder, str(size), *names], capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[:-1]

    def test_what_shares_no_name_goes_together_up_to_the_size(self) -> None:
        texts = [source(f"constexpr int k{name} = 1;") for name in "ABCDE"]
        self.assertEqual(self.batches(*texts, size=2), ["0.cc 1.cc", "2.cc 3.cc", "4.cc"])

    def test_a_name_of_both_parts_them(self) -> None:
        for inside in ("constexpr int kShared = 1;", "int Shared(int value) {\n  return value;\n}", "struct Shared {\n  int a;\n};",
                       "class Shared : public Base {};", "enum class Shared { kA };", "using Shared = int;", "enum Column {\n  kShared,\n  kLast = 3,\n};",
                       "constexpr int kFirst = 0, kShared = 1;", "constexpr char kShared[] = \"a\";", "std::vector<int> Shared;",
                       "template <typename T>\nstruct Shared {};", "template <typename T>\nT Shared(T value) {\n  return value;\n}"):
            with self.subTest(inside=inside):
                self.assertEqual(self.batches(source(inside), source("int Other() { return 1; }"), source(inside)), ["0.cc 1.cc", "2.cc"])

    def test_a_name_that_another_one_mentions_may_be_a_different_thing(self) -> None:
        self.assertEqual(self.batches(source("int Trials(int a) {\n  return a;\n}"), source("", "int Use(Book b) { return Trials(b); }")), ["0.cc", "1.cc"])

    def test_what_is_asked_of_an_object_or_a_namespace_is_found_there(self) -> None:
        other = source("", "int Use(Book b, Book* c) { return b.Trials(1) + c->Trials(1) + books::Trials(1); }")
        self.assertEqual(self.batches(source("int Trials(int a) {\n  return a;\n}"), other), ["0.cc 1.cc"])

    def test_other_names_for_the_same_thing_part_nothing(self) -> None:
        for inside in ("using ::testing::Not;", "using testing::Not;", "namespace fs = std::filesystem;"):
            with self.subTest(inside=inside):
                self.assertEqual(self.batches(source(inside), source(inside), source("", "bool a = Not(fs::exists(testing::b));")), ["0.cc 1.cc 2.cc"])

    def test_an_argument_is_not_declared_where_it_is_given(self) -> None:
        inside = "int {}() {{\n  return Count(1, kEvery, 2) + Count(kEvery,\n      kEvery);\n}}"
        self.assertEqual(self.batches(source(inside.format("A")), source(inside.format("B"))), ["0.cc 1.cc"])

    def test_a_scope_keeps_the_names_of_its_enumeration(self) -> None:
        self.assertEqual(self.batches(source("enum class First { kShared };"), source("enum class Second { kShared };")), ["0.cc 1.cc"])
        self.assertEqual(self.batches(source("enum First { kA, kShared };"), source("enum Second : int { kShared = 3 };")), ["0.cc", "1.cc"])
        self.assertEqual(self.batches(source("enum First { kA, kShared };"), source("enum Second {\n  kShared,\n};")), ["0.cc", "1.cc"])

    def test_a_namespace_within_ours_is_a_name_too(self) -> None:
        within = "namespace stepwell::testing {\n\nint a;\n\n}  // namespace stepwell::testing\n"
        outside = source("", "bool a = testing::Mocked();")
        self.assertEqual(self.batches(within, outside, within), ["0.cc 2.cc", "1.cc"])
        self.assertEqual(self.batches(outside, within), ["0.cc", "1.cc"])

    def test_words_of_comments_and_texts_are_no_names(self) -> None:
        other = source("// Trials of all.", 'const char* Use() { return "Trials"; }')
        self.assertEqual(self.batches(source("int Trials(int a) {\n  return a;\n}"), other), ["0.cc 1.cc"])

    def test_a_quote_as_a_character_begins_no_text(self) -> None:
        other = source("constexpr char kQuote = '\"';\nconstexpr int kMany = 1'000'000;", "int Use() { return '\"' + Trials(1'0); }")
        self.assertEqual(self.batches(source("int Trials(int a) {\n  return a;\n}"), other), ["0.cc", "1.cc"])

    def test_macros_are_everywhere(self) -> None:
        self.assertEqual(self.batches("#define WORD 1\n", "int a = WORD;\n"), ["0.cc", "1.cc"])
        self.assertEqual(self.batches("#define WORD 1\n", "int a = other.WORD;\n"), ["0.cc", "1.cc"])

    def test_a_namespace_that_is_opened_for_all_is_alone(self) -> None:
        self.assertEqual(self.batches("using namespace other;\n", source("int a = 1;")), ["0.cc", "1.cc"])

    def test_of_the_house_all_are_there_once(self) -> None:
        files = sorted((ROOT / "storage").glob("*.cc"))
        done = subprocess.run([sys.executable, PROGRAM, ROOT, "8", *files], capture_output=True, text=True, check=True)
        self.assertEqual(sorted(done.stdout.split()), [str(file.relative_to(ROOT)) for file in files])
        self.assertLess(len(done.stdout.splitlines()), len(files) / 4)


if __name__ == "__main__":
    unittest.main()
