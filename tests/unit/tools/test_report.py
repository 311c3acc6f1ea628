"""bench/report.py: which results it takes, and that `holds` follows from value and bar alone."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "bench"))

import report  # noqa: E402

GOOD = {"name": "recorder.scope", "value": 1.2, "unit": "ratio", "against": "two clock reads", "bar": "<= 1.3",
        "raw": {"ours": 12.0, "theirs": 10.0}, "n": 3, "spread": [1.1, 1.3]}


class ReportTest(unittest.TestCase):
    def test_holds(self):
        for value, bar, expected in [(1.3, "<= 1.3", True), (1.31, "<= 1.3", False), (3e6, ">= 3000000", True),
                                     (2.9e6, ">= 3e6", False), (-1, "<= -0.5", True)]:
            with self.subTest(bar=bar, value=value):
                self.assertEqual(expected, report.holds(value, bar))

    def test_a_good_result_keeps_its_fields(self):
        self.assertEqual({**GOOD, "holds": True}, report.check(GOOD))

    def test_what_is_not_repeated_says_why_and_how_often(self):
        once = {**GOOD, "n": 1, "once": "it takes an hour"}
        self.assertEqual({**once, "holds": True}, report.check(once))
        self.assertIn("  n=1  ", report.table([report.check(once)]))

    def test_rows_and_table_name_the_commit(self):
        with tempfile.TemporaryDirectory() as room:
            output = pathlib.Path(room, "output")
            output.write_text(json.dumps(GOOD), encoding="utf-8")
            ended = subprocess.run([sys.executable, report.__file__, "--json", f"{room}/json", "--commit", "abc1234", str(output)],
                                   check=True, capture_output=True, text=True)
            self.assertIn("commit abc1234\n", ended.stdout)
            self.assertEqual("abc1234", json.loads(pathlib.Path(room, "json").read_text(encoding="utf-8"))[0]["commit"])

    def test_refuses_by_field(self):
        for name, change, field in [
                ("a bar without a comparison", {"bar": "1.3"}, "bar"),
                ("a bar that is null", {"bar": None}, "bar"),
                ("a text for a number", {"value": "1.2"}, "value"),
                ("not a number", {"value": float("nan")}, "value"),
                ("a ratio without its values", {"raw": {"ours": 1}}, "raw"),
                ("two runs", {"n": 2}, "n"),
                ("no run", {"n": 0, "once": "it takes an hour"}, "n"),
                ("once without why", {"n": 1, "once": ""}, "once"),
                ("holds of its own", {"holds": True}, "holds"),
                ("a promise in words", {"promised": "yes"}, "promised"),
                ("no name", {"name": ""}, "name")]:
            with self.subTest(name), self.assertRaisesRegex(report.BadResult, f"^{field} is|^{field} "):
                report.check({**GOOD, **change})
        with self.assertRaisesRegex(report.BadResult, "^bar is None"):
            report.check({key: value for key, value in GOOD.items() if key != "bar"})

    def test_reads_lines_and_names_the_bad_one(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(json.dumps(GOOD) + "\n\nnot json\n" + json.dumps(GOOD) + "\n")
            file.flush()
            results, complaints = report.read([file.name])
        self.assertEqual(2, len(results))
        self.assertEqual(2, len(complaints))
        self.assertIn(":3:", complaints[0])
        self.assertIn("measured twice", complaints[1])

    def test_only_chooses_a_bench_or_one_of_its_numbers(self):
        for only, expected in [(None, True), ("recorder", True), ("recorder.scope", True), ("recorder.sc", False),
                               ("rec", False)]:
            with self.subTest(only):
                self.assertEqual(expected, report.chosen("recorder.scope", only))

    def test_a_full_run_ends_with_one_where_a_promise_is_broken(self):
        missed, held = {**GOOD, "value": 1.4}, GOOD
        for name, row, full, told in [
                ("holds", {**held, "promised": True}, 0, "holds "),
                ("is missed", {**missed, "promised": True}, 1, "MISSED"),
                ("our own, holds", {**held, "promised": False}, 0, "holds (our own bar)"),
                ("our own, missed", {**missed, "promised": False}, 0, "missed (our own bar)"),
                ("nothing is said", missed, 0, "MISSED")]:
            for quick, code in [([], full), (["--quick"], 0)]:
                with self.subTest(name, quick=quick), tempfile.TemporaryDirectory() as room:
                    output = pathlib.Path(room, "output")
                    output.write_text(json.dumps(row), encoding="utf-8")
                    ended = subprocess.run([sys.executable, report.__file__, "--json", f"{room}/json", *quick, str(output)],
                                           check=False, capture_output=True, text=True)
                    self.assertEqual(code, ended.returncode, ended.stderr)
                    self.assertIn(told, ended.stdout)
                    self.assertEqual("is missed" == name, "missed what is promised: recorder.scope" in ended.stderr)


if __name__ == "__main__":
    unittest.main()
