"""Lightning under both of its names, by its looks alone."""

import unittest

from product import ProductTest
from test_interrupted_frameworks import LIGHTNING, LIGHTNING_STEPS

_NAMES = ("lightning.pytorch", "pytorch_lightning")


class LightningNamesTest(ProductTest):
    def test_callback_and_profiler_are_those_of_each_name_that_the_program_has_imported(self):
        """Trainers ask whether what they are given is one of their own's classes."""
        package, used = LIGHTNING.split("from stepwell.integrations", 1)
        used = "from stepwell.integrations" + used
        for imported in ([_NAMES[0]], [_NAMES[1]], [*_NAMES], [*reversed(_NAMES)]):
            for made in ("[Other(), StepwellCallback()], None", "[Other()], StepwellProfiler()"):
                trial = f"{self.trial}.{'.'.join(imported)}.{'Callback' in made}"
                with self.subTest(trial):
                    # That of the last one trains.
                    source = "".join(package.replace("PACKAGE", name) for name in imported)
                    out, err = self.run_trial(source + used.replace("CALLBACKS, PROFILER", made) + """
live(0)
print(is_left(), all(isinstance(made, sys.modules[name].Callback) and isinstance(profiler, sys.modules[name].profilers.Profiler)
      for name in sys.modules if name in ("lightning.pytorch", "pytorch_lightning")
      for made, profiler in [(StepwellCallback(), StepwellProfiler())]))
import pickle
print(type(pickle.loads(pickle.dumps(StepwellCallback()))) is StepwellCallback)
""", variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                    left = ["Other", "StepwellCallback"] if "Callback()" in made else ["Other"]
                    self.assertEqual(f"{left} True\nTrue\n", out, err)
                    found = self.samples(trial)
                    for name in LIGHTNING_STEPS:
                        batches = [sample.batch for sample in found if sample.name == name and sample.batch >= 0]
                        self.assertEqual(list(range(4)), sorted(batches), name)
                    self.assertEqual(2, [sample.name for sample in found].count("eval_batch"))


if __name__ == "__main__":
    unittest.main()
