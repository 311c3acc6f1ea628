"""Lightning's integration beside the package `lightning`, and where a program has imported both of its names."""

import unittest

import test_frameworks

_OTHER = "pytorch_lightning"


class LightningPackageTest(test_frameworks.LightningTest):
    """All that holds under the other name."""

    module = "lightning.pytorch"
    MODEL = test_frameworks.LightningTest.MODEL.replace("import pytorch_lightning", f"import {module}").replace(
        'getLogger("pytorch_lightning")', f'getLogger("{module}")')  # fmt: skip

    def test_a_program_that_has_imported_both_trains_with_either(self):
        if reason := test_frameworks.frameworks.reason_to_skip(_OTHER):
            self.skipTest(reason)
        out, _ = self.train(f"    import {_OTHER}, {self.module}" + self.MODEL + f"""
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    logging.getLogger("{_OTHER}").setLevel(logging.ERROR)
    for name in ("{_OTHER}", "{self.module}"):
        pl = sys.modules[name]
        class Of(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 2)
            training_step, configure_optimizers = Model.training_step, Model.configure_optimizers
        for more in (dict(callbacks=StepwellCallback()), dict(profiler=StepwellProfiler())):
            trainer(max_epochs=1, enable_checkpointing=False, **more).fit(Of(), loader())
            print(name, *more)
    """.replace("\n    ", "\n    import sys\n    ", 1))
        self.assertEqual([f"{name} {more}" for name in (_OTHER, self.module) for more in ("callbacks", "profiler")],
                         [line for line in out.splitlines() if "lightning" in line])  # fmt: skip
        steps = sorted([*range(6)] * 4)
        self.assert_steps(steps, (*self.NAMES, "samples_per_second"))


if __name__ == "__main__":
    unittest.main()
