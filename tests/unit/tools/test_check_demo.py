"""tests/check_demo.py: what it complains about, by made-up results and reports."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import check_demo  # noqa: E402

RESULT = {"stored": True, "recording_message": "", "held_out_loss": 2.1, "bigram_loss": 2.6}


def report(loader: float, train: float) -> dict:
    shares = {"step": 0.0, "dataloader_next": loader, "train_batch": train}
    timings = [{"name": name, "share": share, "in_step": True} for name, share in shares.items()]
    return {"timings": [*timings, {"name": "checkpoint", "share": 0.0, "in_step": False}]}


class CheckDemoTest(unittest.TestCase):
    def test_complaints(self):
        for name, result, shares, is_slow, words in [
                ("usual", RESULT, (0.2, 0.7), False, None),
                ("slow", RESULT, (0.9, 0.1), True, None),
                ("a slow one need not learn", {**RESULT, "held_out_loss": 3.2}, (0.9, 0.1), True, None),
                ("a usual one learns", {**RESULT, "held_out_loss": 2.6}, (0.2, 0.7), False, "held-out loss 2.6"),
                ("samples are missing", {**RESULT, "stored": False}, (0.2, 0.7), False, "not all of it was stored"),
                ("the loader leads", RESULT, (0.5, 0.4), False, "dataloader_next has the largest share"),
                ("slowness is not seen", RESULT, (0.2, 0.7), True, "train_batch has the largest share"),
                ("slowness is hardly seen", RESULT, (0.4, 0.3), True, "a share of only 0.4")]:
            with self.subTest(name):
                found = check_demo.complaints(result, report(*shares), is_slow)
                if words is None:
                    self.assertEqual([], found)
                else:
                    self.assertTrue(any(words in one for one in found), found)

    def test_no_timings_is_a_complaint(self):
        self.assertIn("nothing has the largest share", check_demo.complaints(RESULT, {"timings": []}, False)[0])


if __name__ == "__main__":
    unittest.main()
