"""What tests/run.sh counts: cases of a ctest JUnit file, and why each one failed or was skipped."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import read_junit  # noqa: E402

CASES = """<testsuite>
<testcase name="Ring.Fills" status="run"><system-out>ok</system-out></testcase>
<testcase name="Ring.Drops" status="fail"><failure message=""/><system-out>[ RUN ] Ring.Drops
ring_test.cc:12: Failure
Expected equality: 1 and 2

[  FAILED  ]</system-out></testcase>
<testcase name="Gpu.Reads" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
gpu_test.cc:7: Skipped
no NVIDIA driver on this machine

[  SKIPPED ]</system-out></testcase>
<testcase name="agent_tests_NOT_BUILT" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="Slow.One" status="fail"><failure message="Timeout"/></testcase>
<testcase name="store_contract" status="fail"><failure message=""/><system-out>
[ RUN      ] Store.Appends
[       OK ] Store.Appends (12 ms)
[ RUN      ] Store.Folds/Postgres
store_test.cc:9: Failure
hole
[  FAILED  ] Store.Folds/Postgres, where GetParam() = 0 (3 ms)
[ RUN      ] Store.Gpu
x.cc:1: Skipped
no driver
[  SKIPPED ] Store.Gpu (0 ms)
[  FAILED  ] Store.Folds/Postgres, where GetParam() = 0
</system-out></testcase>
<testcase name="crashing" status="fail"><failure message="SEGFAULT"/><system-out>
[       OK ] A.A (1 ms)
[       OK ] A.B (1 ms)
[ RUN      ] A.C
==7==ERROR: AddressSanitizer: heap-use-after-free on address
    #0 somewhere
SUMMARY: AddressSanitizer: heap-use-after-free a.cc:3</system-out></testcase>
<testcase name="Off.One" status="disabled"><skipped message="Disabled"/></testcase>
</testsuite>"""


class ReadJunitTest(unittest.TestCase):
    def test_counts_and_reasons(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(CASES)
            file.flush()
            passed, others = read_junit.read(file.name)
        self.assertEqual(1 + 1 + 2, passed)
        self.assertEqual([
            ("failed", "Ring.Drops", "ring_test.cc:12: Expected equality: 1 and 2"),
            ("skipped", "Gpu.Reads", "no NVIDIA driver on this machine"),
            ("failed", "agent_tests_NOT_BUILT", "Unable to find executable"),
            ("failed", "Slow.One", "Timeout"),
            ("failed", "Store.Folds/Postgres", "store_test.cc:9: hole"),
            ("skipped", "Store.Gpu", "no driver"),
            ("failed", "crashing",
             "SEGFAULT in A.C: ==7==ERROR: AddressSanitizer: heap-use-after-free on address | "
             "SUMMARY: AddressSanitizer: heap-use-after-free a.cc:3"),
            ("skipped", "Off.One", "disabled in its source"),
        ], others)


if __name__ == "__main__":
    unittest.main()
