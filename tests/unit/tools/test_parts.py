"""tests/parts.sh: what it lists by name is what there is."""

import pathlib
import re
import subprocess
import unittest

TESTS = pathlib.Path(__file__).parents[2]


# Says what it runs of a build's tests, and runs none of it.
STUBS = """
source tests/parts.sh
build() { :; }
prometheus_programs() { :; }
pgbouncer_program() { :; }
run_ctest() { echo "$@"; }
part_upgrade() { echo "the part upgrade"; }
jobs=2 waiting_jobs=4 long=no short=no
"""


def said(words: str) -> list[str]:
    done = subprocess.run(["bash", "-c", STUBS + words], cwd=TESTS.parent, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


class PartsTest(unittest.TestCase):
    def test_fault_tests_run_two_on_a_core_and_the_heavy_long_ones_alone(self):
        self.assertEqual(["release faults -j 4 -L ^faults$"], said("short=yes; part_faults"))
        heavy = "^(CrowdTest|CrashTest|MemoryLimitTest|SeriesFloodTest)\\."
        self.assertEqual(["release faults -j 4 -L ^faults$", "the part upgrade",
                          f"release faults_long -j 4 -L ^faults_long$ -E {heavy}|^LongUpgradeTest\\.",
                          f"release faults_heavy -L ^faults_long$ -R {heavy}"],
                         said("part_faults"))

    def test_no_run_ends_well_without_the_parts_that_prove_most(self):
        self.assertEqual(["release asan tsan"], said('echo "${parts_of_need[@]}"'))
        # Each says how long it takes.
        self.assertEqual([], said('for part in "${parts_of_need[@]}"; do '
                                  '[[ -n ${minutes_of_part[$part]:-} ]] || echo "$part"; done'))

    def test_every_fuzzer_is_run_by_its_noun(self):
        part = re.search(r"^part_fuzz\(\) \{\n(.*?)^\}", (TESTS / "parts.sh").read_text(), re.DOTALL | re.MULTILINE)
        self.assertIsNotNone(part)
        loop = re.search(r"\bfor noun in ([\w ]+); do", part.group(1))
        self.assertIsNotNone(loop)
        nouns = loop.group(1).split()
        written = [path.name.removesuffix("_fuzz.cc") for path in (TESTS / "fuzz").glob("*_fuzz.cc")]
        self.assertEqual(sorted(written), sorted(nouns))
        # Each starts from the corpus of its noun.
        for noun in nouns:
            self.assertTrue((TESTS / "fuzz" / noun).is_dir(), noun)


if __name__ == "__main__":
    unittest.main()
