"""Lightning's trainer, by its looks alone, has what it had before: its profiler with a report still to come, and its callbacks."""

import unittest

from product import ProductTest
from test_interrupted_frameworks import LIGHTNING

_SOURCE = LIGHTNING.replace("PACKAGE", "pytorch_lightning")


class GivenBackTest(ProductTest):
    def test_the_trainers_own_profiler_reports_before_it_is_torn_down(self):
        source = _SOURCE.replace("CALLBACKS, PROFILER", "[StepwellCallback()], Own()")
        source = source.replace("class Trainer:", """class Own(Profiler):
    def __init__(self): self.actions = []
    def stop(self, action): self.actions.append(action)
    def teardown(self, stage): self.actions.clear()
    def describe(self):
        reports.append((self.actions.count("run_training_batch"), self.actions[-1].rpartition(".")[2]))
        super().describe()
reports = []
class Trainer:""")
        out, err = self.run_trial(source + """
live(0)
def fails(*_): raise OSError("theirs")
Callback.on_train_batch_end = fails
trainer.callbacks.append(Callback())
try: live(4)
except OSError: print(trainer.profiler.actions.count("run_training_batch"), end=" ")
Callback.on_train_batch_end = lambda *_: None
trainer.profiler.describe()
own = Own()
own.actions.append("of the program")
StepwellProfiler(then=own)          # that nobody keeps
print(*reports, own.actions)
""")
        self.assertEqual("1 (4, 'teardown') (1, 'run_training_epoch') ['of the program']\n", out, err)

    def test_the_counter_of_the_profiler_alone_is_gone_after_each_fit_and_skips_no_callback(self):
        source = _SOURCE.replace("CALLBACKS, PROFILER", "[Other()], StepwellProfiler()")
        source = source.replace("class Other(Callback):", """class Other(Callback):
    def teardown(self, *_): told.append("teardown")
    def on_exception(self, *_): told.append("on_exception")
told = []
class Late(Callback):
    def setup(self, trainer, *_): trainer.callbacks.append(Other())      # behind the counter
class None_(Callback):""").replace("class None_(Callback):\n", "class Unused(Callback):\n")
        out, err = self.run_trial(source + """
class Fails(Callback):
    def on_train_batch_end(self, *_): raise OSError("theirs")
live(0)
print(is_left(), told)
callbacks = trainer.callbacks
callbacks.append(Fails())
try: live(4)
except OSError: pass
print(is_left(), told, trainer.callbacks == callbacks)
del callbacks[-1:]
trainer.callbacks, told[:] = [Late(), *callbacks], []
live(8)
print([type(one).__name__ for one in trainer.callbacks], told)
trainer.fit_loop = None
trainer.profiler.teardown("fit")            # of who tears it down by himself
print(trainer.profiler._stepwell._trainer)
""")
        self.assertEqual("['Other'] ['teardown']\n['Other', 'Fails'] ['teardown', 'on_exception'] True\n"
                         "['Late', 'Other', 'Other'] ['teardown', 'teardown']\nNone\n", out, err)  # fmt: skip
        self.assertEqual([*range(4), *range(8, 12)], [s.batch for s in self.samples()
                                                      if s.name == "samples_per_second" and s.batch not in (4,)])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
