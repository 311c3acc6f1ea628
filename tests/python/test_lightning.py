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

    def test_the_trainers_own_profiler_is_told_all_and_is_the_trainers_again(self):
        source = LIGHTNING.replace("PACKAGE", "pytorch_lightning").replace("CALLBACKS, PROFILER", "[StepwellCallback()], Own()")
        source = source.replace("class Trainer:", """class Own(Profiler):
    def setup(self, stage, local_rank=None, log_dir=None): told.append(self._lightning_module is trainer.profiler._lightning_module)
    def start(self, action): started.add(action.rpartition(".")[2])
told, started = [], set()
class Trainer:""")
        out, err = self.run_trial(source + """
own = trainer.profiler
live(0)
print(trainer.profiler is own, "train_dataloader_next" in started, "run_training_batch" in started)
def fails(*_): raise OSError("theirs")
Callback.on_train_batch_end = fails
try: live(4)
except OSError as error: print(error, trainer.profiler is own)
Callback.on_train_batch_end = lambda *_: None
trainer.profiler = StepwellProfiler(then=own)       # the program's
live(8)
print(type(trainer.profiler).__name__, told)
""")  # fmt: skip
        self.assertEqual("True True True\ntheirs True\nStepwellProfiler [True, True, True]\n", out, err)
        self.assertEqual([*range(5), *range(8, 12)], sorted(s.batch for s in self.samples() if s.name == "step"))


if __name__ == "__main__":
    unittest.main()
