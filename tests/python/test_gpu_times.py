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
            stepwell.init()
            torch.cuda.is_there = True          # and done with nothing
            model = torch.nn.Model()
            for batch in torch.utils.data.DataLoader(range(1030)): model(torch.Tensor())
            """)
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


if __name__ == "__main__":
    unittest.main()
