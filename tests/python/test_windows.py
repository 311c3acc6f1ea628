"""A run that a schedule switches on and off between its steps."""

import tempfile
import textwrap
import unittest

import interrupts
import product
from product import ProductTest
from test_hooks import _FAKE


class WindowsTest(ProductTest):
    def batches(self, trial: "str | None" = None) -> "dict[str, list[int]]":
        """Of each name the batches of its samples, those in no step left out."""
        found: dict[str, list[int]] = {}
        for sample in self.samples(trial):
            if sample.batch >= 0:
                found.setdefault(sample.name, []).append(sample.batch)
        return {name: sorted(batches) for name, batches in found.items()}

    def test_each_window_has_its_batches_whole(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init(schedule=stepwell.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2))
            given = []
            for epoch in range(3):
                for index, batch in run.steps("abcd", epoch=epoch):
                    with run.scope("train_batch"): run.record("loss", index)
                    given.append(f"{index}{batch}")
            print(*given, run.state)
            """)
        self.assertEqual("0a 1b 2c 3d 4a 5b 6c 7d 8a 9b 10c 11d off\n", out)
        windows = [2, 3, 4, 6, 7, 8]
        self.assertTrue(self.eventually(lambda: self.batches().get("step") == windows), self.batches())
        for name in ("dataloader_next", "train_batch", "loss"):
            self.assertEqual(windows, self.batches()[name], name)
        self.assertEqual([(2, 0.0), (4, 1.0), (6, 1.0), (8, 2.0)],
                         sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))  # fmt: skip
        self.assertEqual({1}, {sample.attempt for sample in self.samples()})

    def test_a_disabled_run_is_disabled_before_a_window_within_and_after_it(self):
        out, err = self.run_trial("""
            import stepwell
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1, repeat=1))
            print(run.state)
            for index, batch in run.steps("abc"): print(run.state)
            run.on(); print(run.state)
            run.off(); print(run.state)
            run.close(); print(run.state)
            """, variables={"STEPWELL_DISABLED": "1"})  # fmt: skip
        self.assertEqual([*["disabled"] * 6, "closed"], out.splitlines())
        self.assertEqual("", err)

    def test_per_epoch_an_epochs_end_ends_a_window_and_a_resumed_one_counts_from_where_it_begins(self):
        self.run_trial("""
            import stepwell
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=2, repeat=1, per="epoch"))
            for index, batch in run.steps("def", start=7, epoch=1, batch_in_epoch=3): pass  # 3 of 6 are left
            print(run.state)
            for index, batch in run.steps("ab", epoch=2):
                if index == 11: print(run.state)
            with run.scope("evaluate"): pass
            print(run.state)
            """)
        self.assertTrue(self.eventually(lambda: self.batches().get("step") == [8, 9, 11]), self.batches())
        self.assertNotIn("evaluate", self.counts())

    def test_per_run_a_resumed_one_counts_from_where_it_begins_unless_its_schedule_says_so(self):
        plan = "wait=1, active=2, repeat=1"
        for name, numbers, loops, begin, wanted in [
            ("steps", plan, "run", "start=7", [8, 9]),
            ("a TrainingLoop", plan, "TrainingLoop(run)", "start=7", [8, 9]),
            # It says where itself: no start is taken for it.
            ("first", plan + ", first_batch=7", "run", "", [8, 9]),
            ("first of a TrainingLoop", plan + ", first_batch=7", "TrainingLoop(run)", "", [8, 9]),
            ("first and a start", plan + ", first_batch=9", "run", "start=7", [10, 11]),
            ("first epoch", plan + ", per='epoch', first_epoch=1", "run", "epoch=1, start=7", [8, 9]),
            ("first epoch behind it", plan + ", per='epoch', first_epoch=2", "run", "epoch=1, start=7", []),
            ("first batch of the first epoch", plan + ", per='epoch', first_epoch=1, first_batch=2", "run",
             "epoch=1, start=7, batch_in_epoch=1", [9, 10]),
        ]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_")
                out, _ = self.run_trial(f"""
                    import stepwell
                    from stepwell.integrations.pytorch import TrainingLoop
                    run = stepwell.init(schedule=stepwell.schedule({numbers}))
                    for index, batch in {loops}.steps(range(12), {begin}):
                        with run.scope("train_batch"): pass
                    print(index, run.state)
                    run.on()
                    run.record("there", 1)
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual(f"{18 if 'start' in begin else 11} off\n", out)
                self.assertTrue(self.eventually(lambda t=trial: "there" in self.counts(t)))
                for timing in ("step", "train_batch"):
                    self.assertEqual(wanted, self.batches(trial).get(timing, []), timing)

    def test_of_loops_that_say_no_epoch_the_first_alone_counts_from_where_a_training_resumes(self):
        for name, made, leaves in [("steps", "run", ""), ("a TrainingLoop", "TrainingLoop(run)", ""),
                                   ("steps left", "run", "if batch == 'f': break"),
                                   ("a TrainingLoop left", "TrainingLoop(run)", "if batch == 'f': break")]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_")
                self.run_trial(f"""
                    import stepwell
                    from stepwell.integrations.pytorch import TrainingLoop
                    run = stepwell.init(schedule=stepwell.schedule(active=2, repeat=1, per="epoch"))
                    loops = {made}
                    for index, batch in loops.steps("defgh", start=7, batch_in_epoch=3):
                        for _ in loops.steps("xy") if loops is run else (): pass     # parts of its step
                        {leaves or "pass"}
                    for start in (12, None):
                        for index, batch in loops.steps("abcdefgh", start=start): pass
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                # Of the first loop what lies behind three batches, of the others their first two.
                wanted = [7, 8, 12, 13, 20, 21]
                is_there = self.eventually(lambda t=trial, w=wanted: self.batches(t).get("step") == w)
                self.assertTrue(is_there, self.batches(trial))

    def test_an_empty_loader_is_no_epoch(self):
        for name, given in [("steps", "run.steps({})"), ("a TrainingLoop", "TrainingLoop(run).steps({})"),
                            ("hooks", "enumerate(torch.utils.data.DataLoader({}))"),
                            ("hooks behind Accelerate's", "enumerate(Shard(torch.utils.data.DataLoader({})))")]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_").replace("'", "")
                out, _ = self.run_trial(f"""
                    import stepwell, torch
                    from accelerate.data_loader import DataLoaderShard as Shard
                    from stepwell.integrations.pytorch import TrainingLoop
                    asked = []
                    def follow(place):
                        asked.append(place.epoch)
                        return False
                    run = stepwell.init(schedule=follow)
                    for text in ("", "ab", "", "", "c", ""):
                        for index, batch in {given.format("text")}: print(batch, asked[-1], end=" ")
                    """, variables={"PYTHONPATH": _FAKE, "STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("a 0 b 0 c 1 ", out)

    def test_a_function_switches_and_may_be_torchs(self):
        for name, function, wanted in [
            ("of an index", "lambda batch: batch % 3 == 1", [1, 4]),
            ("of more", "lambda place: place.epoch == 1 and place.is_last", [5]),
            ("torch's",
             "lambda step: Theirs.RECORD if step in (2, 3) else Theirs.NONE", [2, 3]),
        ]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_").replace("'", "")
                self.run_trial(f"""
                    import enum, stepwell
                    Theirs = enum.Enum("ProfilerAction", "NONE WARMUP RECORD RECORD_AND_SAVE")
                    run = stepwell.init(schedule={function})
                    for epoch in range(2):
                        for _ in run.steps("abc", epoch=epoch): pass
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                is_there = self.eventually(lambda t=trial, w=wanted: self.batches(t).get("step") == w)
                self.assertTrue(is_there, self.batches(trial))

    def test_a_function_that_fails_is_given_up_with_one_warning_and_recording_goes_on(self):
        for name, function, said in [("raises", "lambda batch: 1 / 0", "ZeroDivisionError"),
                                     ("says nothing", "lambda batch: None", "the schedule said None")]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_")
                out, err = self.run_trial(f"""
                    import stepwell
                    run = stepwell.init(schedule={function})
                    print([index for index, _ in run.steps("abc")])
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("[0, 1, 2]\n", out)
                self.assertEqual(1, err.count("goes on without its schedule"), err)
                self.assertIn(said, err)
                self.assertTrue(self.eventually(lambda t=trial: self.batches(t).get("step") == [0, 1, 2]))

    def test_a_loop_of_a_schedule_is_as_any_other(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1))
            def broken():
                yield 1
                raise KeyError("of the loader")
            try:
                for index, batch in run.steps(broken()): pass
            except KeyError as error: print(error)
            for index, batch in run.steps("abc"):
                if batch == "b": break
            for index, batch in run.steps("ab"):
                for inner, _ in run.steps("xy"): print(index, inner, end=" ")
            print(len(run.steps("abc")), bool(run.steps("")), [i for i, _ in run.steps(iter("ab"), start=50)])
            for call in (lambda: run.steps(7), lambda: run.steps("a", start=-1), lambda: run.steps("a", epoch=-1),
                         lambda: run.steps("a", epoch="x"), lambda: run.steps("a", batch_in_epoch=1.5),
                         lambda: stepwell.init(schedule=3)):
                try: call()
                except (TypeError, ValueError) as error: print(str(error).partition(";")[0])
            """)
        self.assertEqual("'of the loader'\n3 0 3 1 4 0 4 1 3 True [50, 51]\n"
                         "stepwell: steps: loader is of type int\nstepwell: steps: start is -1\n"
                         "stepwell: epoch is -1\nstepwell: epoch is 'x'\nstepwell: batch_in_epoch is 1.5\n"
                         "stepwell: schedule is 3\n", out)  # fmt: skip
        self.assertTrue(self.eventually(lambda: self.batches().get("step") == [1, 3, 51]), self.batches())

    def test_windows_without_end_leave_no_descriptors(self):
        out, _ = self.run_trial("""
            import os, stepwell
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1))
            for _ in run.steps(range(300)): pass
            print(len(os.listdir("/proc/self/fd")) < 60)
            """, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("True\n", out)

    def test_a_training_loop_by_calls_has_steps_and_one_in_a_step_has_none(self):
        out, _ = self.run_trial("""
            from stepwell import _load, init
            run = init()
            loop, inner = _load.core.Loop(), _load.core.Loop()
            print(loop.begin(), inner.begin(), inner.count(), inner.count(), end=" ")
            for batch in (None, None, 7, None):
                print(loop.upcoming(), loop.count(batch), end=" ")
                with run.scope("forward"): pass
                inner.next()
                loop.next()
            loop.leave(); loop.next(); loop.leave()
            print(inner.begin(), inner.count())
            for wrong in (-1, 2**31, "x", 1.5):
                try: loop.count(wrong)
                except (TypeError, ValueError) as error: print(type(error).__name__, end=" ")
            """)
        self.assertEqual("True False 0 1 0 0 1 1 2 7 8 8 True 9\nValueError ValueError TypeError TypeError ", out)
        self.assertTrue(self.eventually(lambda: self.batches() == {"step": [0, 1, 7, 8], "forward": [0, 1, 7, 8]}))

    def test_an_interrupt_at_any_line_of_a_schedule_leaves_a_recorder_that_goes_on(self):
        # With a spool and an agent of its own: it has thousands of writers, which an agent is busy with for as long as the
        # machine is. What comes after them goes to the one of all tests.
        scratch = tempfile.TemporaryDirectory(dir=product.folder(), ignore_cleanup_errors=True)
        self.addCleanup(scratch.cleanup)
        out, _ = self.run_trial(interrupts.SOURCE + textwrap.dedent("""
            import os, stepwell
            from stepwell.integrations.pytorch import TrainingLoop
            def live():
                with stepwell.init(schedule=stepwell.schedule(wait=1, active=1)) as run:
                    for index, batch in run.steps("abc", epoch=1):
                        with run.scope("train_batch"): pass
                    training = TrainingLoop(run)
                    for index, batch in training.steps("ab", epoch=2):
                        with training.train_batch: pass
            count, swallowed = interrupt_each(live, lambda code: "stepwell" in code.co_filename or code.co_name == "live")
            print(swallowed, count > 300)
            run = stepwell.init()
            run.close()
            run = stepwell.init(spool_dir=os.environ["PRODUCT_SPOOL"])
            for index, batch in run.steps("ab"):
                with run.scope("after"): pass
            print(run.close(60))
            """), variables={"STEPWELL_EXIT_WAIT": "0", "STEPWELL_SPOOL_DIR": scratch.name}, wait_s=8 * product.WAIT_S)  # fmt: skip
        self.assertEqual("[] True\nTrue\n", out)
        self.assertTrue(self.eventually(lambda: self.batches().get("after") == [0, 1]), self.batches())


if __name__ == "__main__":
    unittest.main()
