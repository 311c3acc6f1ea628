"""bench/python: whose word each row's bar is, for bench/run.sh to judge."""

import contextlib
import io
import json
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parents[3] / "bench" / name) for name in ("", "python")]

import hooks_bench  # noqa: E402
import python_bench  # noqa: E402
import report  # noqa: E402
import training_bench  # noqa: E402


def printed(call, *arguments) -> list[dict]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        call(*arguments)
    return [json.loads(line) for line in out.getvalue().splitlines()]


class PromisesTest(unittest.TestCase):
    def promises(self, rows: list[dict]) -> dict[str, bool]:
        return {row["name"]: report.check(row)["promised"] for row in rows}

    def test_of_a_trainings_step_and_not_of_its_calls(self):
        pairs = [(1.0001 + 1e-6 * n, 1.0) for n in range(9)]
        self.assertEqual({"training.step": True}, self.promises(printed(training_bench.row, "step", pairs, pairs)))
        self.assertEqual({"training.calls": False}, self.promises(printed(training_bench.row_of_calls, pairs, pairs)))

    def test_a_trainings_rows_say_who_read_the_rings(self):
        pairs = [(1.0001 + 1e-6 * n, 1.0) for n in range(9)]
        for call, more in ((training_bench.row, ("step",)), (training_bench.row_of_calls, ())):
            for has_agent, said in ((False, "no agent"), (True, "an agent on another processor reads the rings")):
                (row,) = printed(call, *more, pairs, pairs, has_agent)
                self.assertTrue(row["against"].endswith(said), row)

    def test_of_calls_and_the_import_unless_said_otherwise(self):
        row = ("record", [40.0, 41.0, 42.0], "ns", "an empty loop", "<= 100")
        self.assertEqual({"python.record": True}, self.promises(printed(python_bench.row, *row)))
        self.assertEqual({"hooks.record": False}, self.promises(printed(hooks_bench.row, *row, "hooks", False)))
        missed = printed(python_bench.row, "record", [400.0, 410.0, 420.0], *row[2:])
        self.assertEqual(["python.record"], report.broken_promises([report.check(one) for one in missed]))


if __name__ == "__main__":
    unittest.main()
