"""The GPU's times of a training without a line in it, with a torch that is made of little."""

import unittest

from product import ProductTest
from test_hooks import _FAKE


class GpuTimesTest(ProductTest):
    def run_hooked(self, source: str) -> tuple[str, str]:
        return self.run_trial(source, variables={"PYTHONPATH": _FAKE})

    def test_the_gpu_is_asked_later_and_never_waited_for(self):
        out, _ = self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            torch.cuda.is_there = True
            model = torch.nn.Model()
            def forward(batch): torch.cuda.work(10); return batch
            model.inner[0].forward = forward
            for batch in torch.utils.data.DataLoader(range(6)):
                torch.cuda.is_capturing = batch == 3
                model(torch.Tensor())
                if batch == 4: torch.cuda.finish()
            print(len(torch.cuda.recorded))
            """)
        self.assertEqual("10\n", out)
        device = [s for s in self.samples() if s.labels.get("clock") == "device"]
        self.assertEqual([("forward", batch, 0.01) for batch in (0, 1, 2, 4)],
                         [(s.name, s.batch, round(s.value, 6)) for s in device])  # fmt: skip

    def test_gpu_times_that_were_given_up_are_told(self):
        _, err = self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            torch.cuda.is_there = True          # and done with nothing
            model = torch.nn.Model()
            for batch in torch.utils.data.DataLoader(range(1030)): model(torch.Tensor())
            run.close()
            run = stepwell.init()               # of which nothing is given up
            for batch in torch.utils.data.DataLoader("ab"):
                model(torch.Tensor()); torch.cuda.finish()
            """)
        self.assertEqual(1, err.count("the GPU's time of"), err)
        self.assertIn("stepwell: not seen: the GPU's time of 1,030 timings, for it had not done them in time", err)

    def test_gpu_times_of_the_last_step_are_its_runs_and_no_others(self):
        self.run_hooked(f"""
            import stepwell, torch
            model = torch.nn.Model()
            def forward(batch): torch.cuda.work(10); return batch
            model.inner[0].forward = forward
            torch.cuda.is_there = True
            for trial, is_done in ((None, True), ({self.trial!r} + ".late", False), ({self.trial!r} + ".next", True)):
                with stepwell.init(trial=trial):
                    for batch in torch.utils.data.DataLoader("abc"):
                        model(torch.Tensor())
                        if is_done and batch == "c": torch.cuda.finish()
            """)
        for trial, batches in (("", [0, 1, 2]), (".late", []), (".next", [0, 1, 2])):
            found = [s for s in self.samples(self.trial + trial) if s.labels.get("clock") == "device"]
            # Of the first batch in which the GPU is looked at its own forward pass is seen.
            self.assertEqual(batches, [s.batch for s in found], trial)

    def test_gpu_times_of_a_windows_last_step_are_told_in_the_next_with_their_own_batch(self):
        _, err = self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            model = torch.nn.Model()
            def forward(batch): torch.cuda.work(10); return batch
            model.inner[0].forward = forward
            torch.cuda.is_there = True
            for batch in torch.utils.data.DataLoader("abcdef"):
                if batch == "e": torch.cuda.finish(); run.on()
                model(torch.Tensor())
                if batch == "b": run.off()      # the GPU has done nothing of it yet
                if batch == "f": run.off()      # nor of these, and nobody comes back for them
            """)
        wanted = [(batch, 0.01) for batch in (0, 1)]

        def found() -> list[tuple[int, float]]:
            return sorted((s.batch, round(s.value, 6)) for s in self.samples() if s.labels.get("clock") == "device")

        # A run that ends while it is off waits for no ack.
        self.assertTrue(self.eventually(lambda: found() == wanted), found())
        self.assertIn("stepwell: not seen: the GPU's time of 2 timings, for it had not done them in time", err)

    def device_times(self) -> "list[tuple[str, int, float]]":
        return sorted((s.name, s.batch, round(s.value, 6)) for s in self.samples() if s.labels.get("clock") == "device")

    def test_a_scope_of_a_run_of_ones_own_is_timed_on_the_gpu_and_never_waited_for(self):
        out, err = self.run_hooked("""
            import stepwell, threading, torch
            with stepwell.init(hooks=False) as run:
                early = run.device_scope("early")
                with early: pass                            # before the GPU is used
                torch.cuda.is_there = True
                kept = run.device_scope("kept")
                @run.device_scope("called")
                def called(): torch.cuda.work(3); return 4
                def elsewhere():
                    with kept: pass
                for index, batch in run.steps(range(5)):
                    torch.cuda.is_capturing = index == 3
                    with kept: torch.cuda.work(10)
                    with run.device_scope("outer"):
                        with run.device_scope("outer"): called()
                    thread = threading.Thread(target=elsewhere); thread.start(); thread.join()
                    if index == 2:
                        try:
                            with run.device_scope("raises"): raise OSError("theirs")
                        except OSError as error: print(error, kept.name)
                    torch.cuda.finish()
                torch.cuda.is_capturing = False
                with kept: torch.cuda.work(20)              # in no step
                torch.cuda.finish()
            """)
        self.assertEqual("theirs kept\n", out)
        steps = (0, 1, 2, 4)
        self.assertEqual([("called", batch, 0.003) for batch in steps] + [("kept", -1, 0.02)]
                         + [("kept", batch, 0.01) for batch in steps] + [("outer", batch, 0.003) for batch in steps]
                         + [("raises", 2, 0.0)], self.device_times())  # fmt: skip
        host = [s.batch for s in self.samples() if s.name == "kept" and "clock" not in s.labels]
        self.assertEqual(list(range(5)), sorted(batch for batch in host if batch >= 0))
        counters = {s.name for s in self.samples() if s.group == "torch"}
        self.assertLessEqual({"cuda_allocated", "cuda_reserved_peak", "cuda_alloc_retries"}, counters)

    def test_what_an_integration_tells_is_timed_on_the_gpu_too(self):
        _, err = self.run_hooked("""
            import torch
            torch.cuda.is_there = True
            from stepwell.integrations.keras import _Watcher
            from stepwell.integrations.pytorch import TrainingLoop
            watcher = _Watcher(None, None)
            watcher.train_begins(); watcher.epoch_begins(0)
            for batch in range(3):
                watcher.batch_begins(batch); torch.cuda.work(5); watcher.batch_ends(batch); torch.cuda.finish()
            watcher.epoch_ends(); watcher.train_ends()
            training = TrainingLoop()
            for index, batch in training.steps("ab"):
                with training.train_batch:
                    with training.forward: torch.cuda.work(7)
                with training.to_device: pass
                torch.cuda.finish()
            """)
        self.assertEqual([("forward", 3, 0.007), ("forward", 4, 0.007)] + [("train_batch", batch, 0.005) for batch in range(3)]
                         + [("train_batch", 3, 0.007), ("train_batch", 4, 0.007)], self.device_times())  # fmt: skip
        self.assertIn("cuda_allocated", self.counts())
        self.assertNotIn("not seen", err)

    def test_a_gpu_that_is_used_first_within_a_loops_own_scope_is_timed_from_then_on(self):
        self.run_hooked("""
            import torch
            from stepwell.integrations.pytorch import TrainingLoop
            training = TrainingLoop()
            for index, batch in training.steps(range(4)):
                with training.train_batch:
                    torch.cuda.is_there = True
                    with training.forward: torch.cuda.work(7)
                torch.cuda.finish()
            """)
        self.assertEqual([("forward", batch, 0.007) for batch in range(4)] + [("train_batch", batch, 0.007) for batch in (1, 2, 3)],
                         self.device_times())  # fmt: skip
        host = [s.batch for s in self.samples() if s.name == "train_batch" and "clock" not in s.labels]
        self.assertEqual([0, 1, 2, 3], host)

    def test_what_a_scope_refuses_is_not_timed_on_the_gpu_either(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            torch.cuda.is_there = True
            with stepwell.init(hooks=False) as run:
                refused = [run.device_scope(name) for name in
                           ("a/b", "step", "x.count", "", "a" * 201, "語" * 67, "a\\nb", "a\\x7f", "a\\0b", None, 7)]
                refused += [run.device_scope(), run.device_scope("a", "b"), run.device_scope(nome="a")]
                @run.device_scope("c/d")
                def called(): torch.cuda.work(1)
                for index, batch in run.steps("ab"):
                    for scope in refused:
                        with scope: torch.cuda.work(1)
                    called()
                    with run.device_scope(name="taken"): torch.cuda.work(2)
                    torch.cuda.finish()
            print(len(torch.cuda.recorded))
            """)
        self.assertEqual("4\n", out)
        self.assertEqual(2, err.count("RuntimeWarning"), err)
        self.assertEqual([("taken", 0, 0.002), ("taken", 1, 0.002)], self.device_times())

    def test_each_of_two_gpus_has_its_own_events(self):
        _, err = self.run_hooked("""
            import stepwell, torch
            torch.cuda.is_there = True
            with stepwell.init(hooks=False) as run:
                for index, batch in run.steps(range(6)):
                    torch.cuda.device = index % 2
                    with run.device_scope("kept"): torch.cuda.work(5 + index)
                    if index == 4:
                        with run.device_scope("moved"): torch.cuda.device = 1
                    torch.cuda.finish()
            """)
        self.assertNotIn("is not recorded any more", err)
        self.assertEqual([("kept", batch, (5 + batch) / 1000) for batch in range(6)], self.device_times())
        self.assertIn("not seen: the GPU's time of 1 timings", err)

    def test_a_gpu_that_fails_is_left_alone_with_one_line_and_the_training_goes_on(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            torch.cuda.is_there = True
            def fail(*_, **__): raise RuntimeError("a device-side assert")
            torch.cuda.Event = torch.cuda.memory_stats = fail
            with stepwell.init(hooks=False) as run:
                for index, batch in run.steps("abc"):
                    with run.device_scope("kept"): print(index, end=" ")
            """)
        self.assertEqual("0 1 2 ", out)
        self.assertEqual(1, err.count("the GPU's time is not recorded any more: RuntimeError: a device-side assert"), err)
        self.assertEqual([0, 1, 2], [s.batch for s in self.samples() if s.name == "kept"])


if __name__ == "__main__":
    unittest.main()
