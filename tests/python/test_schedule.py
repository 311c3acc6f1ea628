"""Schedules: which batches are recorded."""

import enum
import importlib.util
import os
import pathlib
import pickle
import random
import sys
import unittest

_FILE = pathlib.Path(__file__).resolve().parents[2] / "client" / "python" / "stepwell" / "_schedule.py"
_spec = importlib.util.spec_from_file_location("schedule_core", _FILE)
assert _spec is not None and _spec.loader is not None
core = importlib.util.module_from_spec(_spec)
sys.modules["schedule_core"] = core  # pickle looks there
_spec.loader.exec_module(core)

_LETTERS = {core.Action.SKIP: "S", core.Action.WARMUP: "W", core.Action.ACTIVE: "A", core.Action.SAVE: "V"}
SEED_COUNT = 60


def actions(schedule, count: int, *, epoch: int = 0, length: "int | None" = None) -> str:
    return "".join(_LETTERS[schedule(core.Place(b, epoch, b, length))] for b in range(count))


def composer(*numbers: int, first_batch: int = 0):
    skip_first, wait, warmup, active, repeat = numbers
    return core.Schedule(skip_first=skip_first, wait=wait, warmup=warmup, active=active, repeat=repeat, per="epoch",
                         first_batch=first_batch)  # fmt: skip


class VectorsTest(unittest.TestCase):
    """Letters: skip, warm up, active, the last of a window. Numbers: skip_first, wait, warmup, active, repeat."""

    def test_per_epoch(self):
        for name, schedule, wanted, length in [
            ("defaults of Composer", composer(0, 0, 1, 4, 1), "WAAAVSSSSSSS", None),
            ("all of them", composer(1, 2, 3, 4, 1), "SSSWWWAAAVSSSSSS", None),
            ("without end", composer(1, 2, 3, 4, 0), "SSSWWWAAAVSSWWWAAAVSSWWW", None),
            ("resumed", composer(1, 2, 3, 4, 1, first_batch=4), "SSSSSSSWWWAAAVSS", None),
            ("an epoch ends in it", composer(0, 0, 0, 1000, 0), "AAAAAAAAAV", 10),
            ("an epoch of unknown length", composer(0, 0, 0, 1000, 0), "AAAAAAAAAA", None),
            ("one batch", composer(0, 0, 0, 1, 1), "VSSSSS", None),
            ("each batch", composer(0, 0, 0, 1, 0), "VVVVVV", None),
            ("none active", composer(0, 2, 1, 0, 0), "SSWSSW", None),
            ("nothing, once", composer(0, 0, 0, 0, 1), "SSS", None),
            # Its documentation shows two windows for repeat=1; one is what the number says.
            ("its documentation's", composer(1, 1, 1, 2, 1), "SSWAVSSSSSSS", None),
            ("two windows", composer(1, 1, 1, 2, 2), "SSWAVSWAVSSS", None),
        ]:  # fmt: skip
            with self.subTest(name):
                self.assertEqual(wanted, actions(schedule, len(wanted), length=length))
                if schedule.first_batch == 0:
                    self.assertEqual(wanted, actions(schedule, len(wanted), epoch=3, length=length), "each epoch")

    def test_per_run(self):
        for name, numbers, wanted in [
            ("one window", {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, "SWAVSSSS"),
            ("two windows", {"skip_first": 1, "wait": 2, "warmup": 3, "active": 4, "repeat": 2},
             "SSSWWWAAAVSSWWWAAAVSSSSS"),
            ("resumed", {"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "first_batch": 3}, "SSSSWAVSS"),
        ]:  # fmt: skip
            with self.subTest(name):
                schedule = core.Schedule(**numbers)
                self.assertEqual(wanted, actions(schedule, len(wanted)))
                self.assertEqual(wanted, "".join(_LETTERS[schedule(b)] for b in range(len(wanted))), "of plain numbers")

    def test_it_is_a_run_whose_windows_cross_epochs(self):
        schedule = core.Schedule(wait=2, active=3, repeat=2)
        said = "".join(_LETTERS[schedule(core.Place(b, b // 4, b % 4, 4))] for b in range(12))
        self.assertEqual("SSAAVSSAAVSS", said)

    def test_a_resumed_epoch_is_shorter_and_the_next_one_is_whole(self):
        schedule = composer(0, 1, 0, 2, 1).resumed(batch=3, epoch=5)
        self.assertEqual("SSSSSS", actions(schedule, 6, epoch=4))
        self.assertEqual("SSSSAV", actions(schedule, 6, epoch=5))
        self.assertEqual("SAVSSS", actions(schedule, 6, epoch=6))


class PropertiesTest(unittest.TestCase):
    def each(self, check) -> None:
        """With numbers of many seeds."""
        first = int(os.environ.get("STEPWELL_TEST_SEED", random.randrange(2**31)))
        for seed in range(first, first + SEED_COUNT):
            chance = random.Random(seed)
            numbers = {"skip_first": chance.randrange(6), "wait": chance.randrange(5), "warmup": chance.randrange(4),
                       "active": chance.randrange(1, 6), "repeat": chance.randrange(5)}  # fmt: skip
            with self.subTest(seed=seed, **numbers):
                check(chance, numbers)

    def test_there_are_as_many_windows_as_asked_for_and_each_is_whole(self):
        def check(_, n):
            window = n["wait"] + n["warmup"] + n["active"]
            windows = n["repeat"] or 7
            one = "S" * n["wait"] + "W" * n["warmup"] + "A" * (n["active"] - 1) + "V"
            wanted = "S" * n["skip_first"] + one * windows + ("S" * window if n["repeat"] else "")
            for per in ("run", "epoch"):
                self.assertEqual(wanted, actions(core.Schedule(per=per, **n), len(wanted)))

        self.each(check)

    def test_a_resumed_run_does_what_a_fresh_one_does_later(self):
        def check(chance, n):
            schedule, first = core.Schedule(**n), chance.randrange(100)
            self.assertEqual("S" * first + actions(schedule, 50), actions(schedule.resumed(batch=first), 50 + first))

        self.each(check)

    def test_no_window_of_an_epoch_goes_on_in_the_next(self):
        def check(chance, n):
            length = chance.randrange(1, 30)
            said = actions(core.Schedule(per="epoch", **n), length, length=length)
            self.assertNotEqual("A", said[-1], said)

        self.each(check)

    def test_it_comes_back_from_pickle_as_it_was(self):
        def check(_, n):
            schedule = core.Schedule(**n)
            again = pickle.loads(pickle.dumps(schedule))
            self.assertEqual((schedule, hash(schedule)), (again, hash(again)))

        self.each(check)


class InputTest(unittest.TestCase):
    def test_what_cannot_be_is_refused_by_name(self):
        for numbers, error, words in [
            ({"active": 0}, ValueError, "active is 0"),
            ({"active": -1}, ValueError, "active is -1; allowed: 0 ..."),
            ({"active": 1, "repeat": -1}, ValueError, "repeat is -1"),
            ({"active": 2, "skip_first": -2, "wait": 1, "per": "epoch"}, ValueError, "skip_first is -2"),
            ({"active": 1, "wait": 1.5}, TypeError, "wait is 1.5; allowed: a number of batches"),
            ({"active": 1, "warmup": True}, TypeError, "warmup is True"),
            ({"active": "1"}, TypeError, "active is '1'"),
            ({"active": 2**31}, ValueError, "active is 2147483648"),
            ({"active": 0, "per": "epoch"}, ValueError, "wait, warmup and active are 0"),
            ({"active": 1, "per": "step"}, ValueError, "per is 'step'; allowed: run, epoch"),
            ({"active": 1, "first_batch": -1}, ValueError, "first_batch is -1"),
            ({"wait": 1}, TypeError, "active"),
            ({"active": 1, "cycles": 2}, TypeError, "cycles"),
        ]:  # fmt: skip
            with self.subTest(**numbers), self.assertRaisesRegex(error, words.replace(".", r"\.")):
                core.Schedule(**numbers)

    def test_it_does_not_change(self):
        with self.assertRaisesRegex(AttributeError, "does not change"):
            core.Schedule(active=1).active = 2

    def test_a_function_may_say_what_others_call_it(self):
        theirs = enum.Enum("ProfilerAction", "NONE WARMUP RECORD RECORD_AND_SAVE")
        composers = enum.Enum("ProfilerAction", "SKIP WARMUP ACTIVE ACTIVE_AND_SAVE")
        for names in (theirs, composers, core.Action):
            self.assertEqual("SWAV", "".join(_LETTERS[core.action_of(said)] for said in names))
        self.assertEqual("AS", _LETTERS[core.action_of(True)] + _LETTERS[core.action_of(False)])
        for said in (None, 1, "ACTIVE", enum.Enum("Other", "ELSE").ELSE):
            with self.assertRaisesRegex(ValueError, "the schedule said"):
                core.action_of(said)

    def test_what_is_no_schedule_is_refused(self):
        self.assertIsNone(core.checked(None))
        for value in (3, "active=1", core.Schedule):
            with self.assertRaisesRegex(TypeError, "schedule is"):
                core.checked(value)


if __name__ == "__main__":
    unittest.main()
