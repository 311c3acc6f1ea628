"""Where a loop over run.steps begins: its first batch, its epoch, and the run that is open."""

import unittest

from product import ProductTest


class LoopsBeginTest(ProductTest):
    def test_an_iterator_that_is_never_asked_takes_no_start(self):
        for arguments in ("", ", batch_in_epoch=2"):
            with self.subTest(arguments):
                trial = f"{self.trial}{len(arguments)}"
                out, _ = self.run_trial(f"""
                    import gc, stepwell, weakref
                    run = stepwell.init()
                    class Loader(list): pass
                    steps, loader = run.steps("ab", start=7{arguments}), Loader("xy")
                    iter(steps); unasked = iter(steps)
                    print([index for index, _ in steps], [index for index, _ in steps], [index for index, _ in unasked])
                    left = iter(run.steps(loader, start=3{arguments}))
                    held = weakref.ref(loader)
                    del left, loader
                    gc.collect()
                    print(held() is None)
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("[7, 8] [9, 10] [11, 12]\nTrue\n", out)
                self.assertEqual([*range(7, 13)], [s.batch for s in self.samples(trial) if s.name == "step"])

    def test_a_resumed_epoch_of_an_iterator_that_is_never_asked_is_the_next_ones(self):
        self.run_trial("""
            import stepwell
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1, repeat=1, per="epoch"))
            steps = run.steps("cd", start=2, epoch=0, batch_in_epoch=2)
            iter(steps)
            for _ in steps: pass
            for _ in run.steps("abcd", epoch=1): pass
            """)
        batches = lambda: [s.batch for s in self.samples() if s.name == "step"]  # noqa: E731
        self.assertTrue(self.eventually(lambda: batches() == [3, 5]), batches())

    def test_a_loop_in_whose_step_another_run_began_tells_that_its_epoch_and_follows_its_schedule(self):
        for name, schedule, steps in (("all", "None", [0, 1, 2]), ("schedule", "stepwell.schedule(wait=1, active=1, repeat=1)", [1])):
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                self.run_trial(f"""
                    import stepwell
                    run = stepwell.init()
                    for index, batch in run.steps(range(6), epoch=4):
                        if batch == 2:
                            run.close()
                            run = stepwell.init(trial=run.trial + ".second", schedule={schedule})
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                second = trial + ".second"
                found = lambda: self.samples(second)  # noqa: E731, B023
                self.assertTrue(self.eventually(lambda: steps == [s.batch for s in found() if s.name == "step"]), steps)
                self.assertEqual([(steps[0], 4.0)], [(s.batch, s.value) for s in found() if s.name == "epoch"])
                self.assertEqual([(0, 4.0)], [(s.batch, s.value) for s in self.samples(trial) if s.name == "epoch"])


if __name__ == "__main__":
    unittest.main()
