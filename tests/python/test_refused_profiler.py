"""torch.profiler with a torch of little: what nobody takes, scopes that are mirrored, schedules."""

import unittest

from product import ProductTest

# torch.profiler, of little.
_TORCH = """
import enum, os, sys, tempfile, types
class ProfilerAction(enum.Enum): NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)
class Seen:     # autograd's, a new one in each window
    def export_chrome_trace(self, path): open(path, "w").write("{}")
class Profile:
    def __init__(self, schedule, on_trace_ready):
        self.schedule, self.ready, self.step_count = schedule, on_trace_ready, 0
        self.current_action = schedule(0)
    def start(self): pass
    def stop(self): pass
    def step(self):
        before, self.step_count = self.current_action, self.step_count + 1
        self.current_action = self.schedule(self.step_count)
        if before == ProfilerAction.RECORD_AND_SAVE:
            self.profiler = Seen()
            self.ready(self)
        actions.append(before.name)
actions = []
torch = types.ModuleType("torch")
torch.profiler = types.ModuleType("torch.profiler")
torch.profiler.ProfilerAction, torch.profiler.profile = ProfilerAction, Profile
torch.profiler.record_function = lambda name: None
sys.modules.update({"torch": torch, "torch.profiler": torch.profiler})
os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp()
import stepwell
"""


class RefusedProfilerTest(ProductTest):
    """torch.profiler with a torch of little, where nobody takes what it saw."""

    def test_what_nobody_takes_is_not_kept_and_ends_it(self):
        out, err = self.run_trial(_TORCH + """
from stepwell import _trace_writing
with stepwell.torch_profiler(schedule=stepwell.schedule(active=1)) as profiler:
    for _ in range(5): profiler.step(); _trace_writing.wait()
print(os.listdir(tempfile.tempdir), actions)
with stepwell.torch_profiler(schedule=stepwell.schedule(active=1), directory=tempfile.tempdir + "/kept") as profiler:
    for _ in range(3): profiler.step()
print(len(os.listdir(tempfile.tempdir + "/kept")))
""")
        # Torch asks one step ahead.
        self.assertEqual("[] ['RECORD_AND_SAVE', 'RECORD_AND_SAVE', 'NONE', 'NONE', 'NONE']\n3\n", out)
        self.assertEqual(1, err.count("records no more"), err)

    def test_scopes_are_mirrored_where_there_is_a_record_function_and_else_that_is_told_once(self):
        out, err = self.run_trial(_TORCH + """
from stepwell._load import core
run = stepwell.init()
def train():
    with stepwell.torch_profiler(schedule=lambda batch: True, directory=tempfile.tempdir + "/kept") as profiler:
        for _ in run.steps("ab"):
            with run.scope("mine"): profiler.step()
    with run.scope("after"): pass
class Region:
    def __init__(self, name): self.name = name
    def __enter__(self): print(self.name)
    def __exit__(self, *exception): print("/" + self.name)
class Odd(types.ModuleType):
    def __getattr__(self, name): raise OSError(name)
del torch.profiler.record_function
autograd = sys.modules["torch.autograd.profiler"] = types.ModuleType("torch.autograd.profiler")
train()
torch.profiler.__class__ = Odd
train()
autograd.record_function = Region
train()
run.close()
""", options=("-W", "always"))
        self.assertEqual("mine\n/mine\n" * 2, out.replace("step\n", "").replace("/step\n", ""), err)
        self.assertEqual(1, err.count("has no record_function"), err)

    def test_the_schedule_of_a_run_is_followed_also_where_it_is_a_function(self):
        out, err = self.run_trial(_TORCH + """
run = stepwell.init(schedule=lambda batch: batch % 2 == 1)
with stepwell.torch_profiler() as profiler:
    for _ in run.steps("abcd"): profiler.step()
print(actions)
""")
        self.assertEqual("['NONE', 'RECORD_AND_SAVE', 'NONE', 'RECORD_AND_SAVE']\n", out, err)


if __name__ == "__main__":
    unittest.main()
