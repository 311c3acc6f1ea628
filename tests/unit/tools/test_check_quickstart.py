"""tests/check_quickstart.py: each thing that a first user would miss is named."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import check_quickstart  # noqa: E402

RANK = """Where a step's time goes, rank {rank}  10 steps of 2 ms
  scope                  share               total   steps
  train_batch/forward   60.0 %  ########    1.2 s      10
  train_batch           20.1 %  ###         0.4 s      10
  dataloader_next        9.9 %  #           0.2 s      10
  to_device              2.0 %              0.0 s      10
  step_lr_schedulers     2.0 %              0.0 s      10
  from_device            2.0 %              0.0 s      10
  reduce_metrics         2.0 %              0.0 s      10
  unaccounted            2.0 %              0.0 s
  step                 100.0 %              2.0 s      10

"""
GOOD = ("the training started its agent by itself (pid 17, log /data/spool/f1/agent.log)\n"
        + RANK.format(rank=0) + RANK.format(rank=1) + "Machine\n  cpu cpu_util_simple 12 %\n  memory memory_free\n"
        "  disk_throughput_read 1\n  net_throughput_sent 2\n\n loss | 0 | {2.5,2.4,2.25}\n")


class CheckQuickstartTest(unittest.TestCase):
    def test_a_whole_report_is_enough(self):
        self.assertEqual([], check_quickstart.complaints(GOOD))
        self.assertEqual([], check_quickstart.complaints(GOOD.replace("Where", "\x1b[1mWhere")))

    def test_names_what_is_missing(self):
        for name, text, words in [
                ("a rank", GOOD.replace("rank 1", "rank 0"), "timings of ranks [0]"),
                ("a timing", GOOD.replace("to_device", "elsewhere"), "rank 0: no share of to_device"),
                ("a share", GOOD.replace("60.0 %", "61.0 %"), "rank 0: shares add up to 101.0 %"),
                ("a machine metric", GOOD.replace("memory_free", "x"), "no machine metric memory_free"),
                ("arrays", GOOD.replace("{2.5,2.4,2.25}", ""), "no array"),
                ("its own agent", GOOD.replace("by itself", "by hand"), "the training started no agent"),
                ("everything", "", "timings of ranks []")]:
            with self.subTest(name):
                self.assertTrue(any(words in one for one in check_quickstart.complaints(text)),
                                check_quickstart.complaints(text))


if __name__ == "__main__":
    unittest.main()
