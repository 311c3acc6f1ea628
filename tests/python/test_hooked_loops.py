"""Loops over a DataLoader that hooks see: how they begin, how they are left, and windows of a schedule in them."""

import unittest

from test_hooks import _STEP, HookedTrial


class HookedLoopsTest(HookedTrial):
    def batches(self, trial: "str | None" = None) -> "dict[str, list[int]]":
        """Of each name the batches of its samples, those in no step left out."""
        found: dict[str, list[int]] = {}
        for sample in self.samples(trial):
            if sample.batch >= 0:
                found.setdefault(sample.name, []).append(sample.batch)
        return {name: sorted(batches) for name, batches in found.items()}

    def test_what_iter_takes_is_told_with_the_label_of_its_loop(self):
        self.run_hooked("""
            import time, stepwell, torch
            from stepwell import hooks
            begin = torch.utils.data.DataLoader.__iter__
            def slow(loader):
                time.sleep(0.02)
                return begin(loader)
            torch.utils.data.DataLoader.__iter__ = slow
            hooks.begin_with_torch()                  # as stepwell run: the run is opened by the first batch
            for batch in torch.utils.data.DataLoader("ab"): torch.nn.Model()(torch.Tensor()).backward()
            for batch in torch.utils.data.DataLoader("a"):
                with torch.no_grad():
                    for other in torch.utils.data.DataLoader("x"): pass
            never = iter(torch.utils.data.DataLoader("a"))
            """)
        found = [(s.labels["loader"], s.batch, s.unit) for s in self.samples() if s.name == "dataloader_iter"]
        self.assertEqual([("eval", 2, "seconds"), ("train", -1, "seconds"), ("train", -1, "seconds")], sorted(found))
        took = [s.value for s in self.samples() if s.name == "dataloader_iter"]
        self.assertTrue(all(0.02 <= seconds < 1 for seconds in took), took)

    def test_a_loop_that_was_left_has_no_batch_though_its_iterator_persists(self):
        self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            model = torch.nn.Model()
            scheduler = torch.optim.lr_scheduler.LRScheduler()
            def train(after):
                loader = torch.utils.data.DataLoader("abc", persists=True)
                for batch in loader:
                    with torch.no_grad():              # in the loop: it is open
                        for other in torch.utils.data.DataLoader("x"): run.record("within", 1)
                    if batch == "b": break
                after()
                run.record("after", 1)
                loop = iter(torch.utils.data.DataLoader("ab", persists=True))
                next(loop); torch.save(model, "x"); run.record("kept", 1); list(loop)  # held by a name
            def evaluate():
                with torch.no_grad():
                    for batch in torch.utils.data.DataLoader("xy"): model(torch.Tensor())
            train(evaluate)
            train(lambda: torch.save(model, "x"))
            train(scheduler.step)
            """)
        found = self.samples()
        batches = {name: sorted(s.batch for s in found if s.name == name) for name in ("within", "after", "kept", "step")}
        self.assertEqual({"within": [-1, -1, -1, 0, 4, 8], "after": [-1] * 3, "kept": [2, 6, 10],
                          "step": [0, 2, 3, 4, 6, 7, 8, 10, 11]}, batches)  # fmt: skip
        fetches = [s.batch for s in found if s.name == "dataloader_next" and s.labels.get("loader") == "eval" and s.batch < 0]
        self.assertEqual(2, len(fetches), "of the evaluation after the loop")
        # In a step they would be one sample, with their count.
        self.assertEqual((2, None), (self.counts().get("forward"), self.counts().get("forward.count")))

    def test_hooks_follow_a_schedule_by_run_and_by_epoch(self):
        for name, schedule, wanted in (
            ("run", "skip_first=1, wait=1, warmup=1, active=2, repeat=2", [2, 3, 4, 6, 7, 8]),
            ("epoch", "wait=1, active=2, repeat=1, per='epoch'", [1, 2, 5, 6, 9, 10]),
            ("function", None, [4, 7]),
        ):  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                plan = "lambda place: place.is_last and place.epoch > 0 or int(place) == 4" if schedule is None else (
                    f"stepwell.schedule({schedule})")  # fmt: skip
                _, err = self.run_hooked("import stepwell, torch\n" + f"run = stepwell.init(schedule={plan})\n" + _STEP + f"""
model = torch.nn.Model()
for epoch in range({2 if schedule is None else 3}):
    train(torch.utils.data.DataLoader("abcd"))
    with torch.no_grad():
        for batch in torch.utils.data.DataLoader("xy"): model(torch.Tensor())
""", variables={"STEPWELL_TRIAL": trial})
                self.assertTrue(self.eventually(lambda t=trial, w=wanted: self.batches(t).get("step") == w), self.batches(trial))
                for timing in ("dataloader_next", "train_batch", "train_batch/forward", "train_batch/optimizer_step"):
                    self.assertEqual(wanted, self.batches(trial)[timing], timing)
                self.assertIn(f"stepwell: {len(wanted)} steps", err)
                self.assertNotIn("no window", err)

    def test_hooks_follow_a_schedule_over_loaders_that_fetch_ahead(self):
        self.run_hooked("import stepwell, torch, accelerate\n"
                        "run = stepwell.init(schedule=stepwell.schedule(wait=1, active=2, per='epoch'))\n" + _STEP + """
from accelerate.data_loader import DataLoaderShard
for epoch in range(2): train(DataLoaderShard(torch.utils.data.DataLoader([torch.Tensor() for _ in range(5)])))
""")
        # Its length is its loader's to say; here it says none, so that the last batch ends no window by itself.
        wanted = [1, 2, 4, 6, 7, 9]
        self.assertTrue(self.eventually(lambda: self.batches().get("step") == wanted), self.batches())
        self.assertEqual(wanted, self.batches()["train_batch"])

    def test_a_loop_that_was_left_while_nothing_is_recorded_lets_the_schedule_go_on(self):
        for name, leave in (
            ("persists", "for batch in loader: break"),
            ("kept", "kept = iter(loader); next(kept)"),
        ):  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                _, err = self.run_hooked("import stepwell, torch\n"
                                         "run = stepwell.init(schedule=stepwell.schedule(wait=3, active=2, repeat=1))\n" + _STEP + f"""
loader = torch.utils.data.DataLoader("abc", persists=True)
{leave}
train(torch.utils.data.DataLoader("abcdefghijklmnop"))
""", variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertNotIn("no window", err)
                self.assertTrue(self.eventually(lambda t=trial: self.batches(t).get("step") == [3, 4]), self.batches(trial))
                self.assertEqual([3, 4], self.batches(trial)["train_batch/optimizer_step"])

    def test_iterators_and_schedules_of_others_harm_neither_the_hook_nor_the_training(self):
        out, err = self.run_hooked("import stepwell, torch\n" + _STEP + """
class Slotted:
    __slots__ = ("items",)
    def __init__(self): self.items = iter("ab")
    def __iter__(self): return self
    def __next__(self): return next(self.items)
class Loader(torch.utils.data.DataLoader): pass
DataLoader = torch.utils.data.DataLoader
iterate = DataLoader.__iter__.__wrapped__ if hasattr(DataLoader.__iter__, "__wrapped__") else DataLoader.__iter__
DataLoader.__iter__ = lambda loader: Slotted() if isinstance(loader, Loader) else iterate(loader)
run = stepwell.init()
print("".join(Loader("")), end=" ")
train(DataLoader("abc"))
run.close()
old = run
run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1, per="epoch"))
from stepwell._schedule import Place
from stepwell._stepping import Stepping
late = Stepping(old)                            # of a run that is over
late.begin(Place(0)); late.leave()
train(DataLoader("abc"))
from stepwell.hooks._planned import Planner
def broken(planner, run, epoch): raise KeyError("of ends")
Planner.ends = broken
train(DataLoader("abc"))
print("trained")
""")
        self.assertEqual("ab trained\n", out)
        self.assertEqual(1, err.count("is not recorded any more"), err)
        self.assertIn("of ends", err)
        self.assertTrue(self.eventually(lambda: self.batches().get("step") == [0, 1, 1, 2, 4]), self.batches())

    def test_iterators_that_answer_for_others_keep_their_answers_to_themselves(self):
        out, err = self.run_hooked("import stepwell, torch\n" + _STEP + """
from torch.utils.data.dataloader import _BaseDataLoaderIter
class Answering(_BaseDataLoaderIter):
    def __getattr__(self, name): return {}[name]    # no AttributeError
class Inner(_BaseDataLoaderIter): pass
class Delegating(_BaseDataLoaderIter):
    def __getattr__(self, name): return getattr(self.__dict__["inner"], name)
DataLoader = torch.utils.data.DataLoader
iterate = DataLoader.__iter__
def made(loader):
    items = iterate(loader)
    items.__class__ = kind
    if kind is Delegating:
        items.inner = iterate(DataLoader("xyz"))    # which has notes of its own
    return items
run = stepwell.init()
for kind in (Answering, Delegating):
    DataLoader.__iter__ = made
    with torch.no_grad():
        print("".join(DataLoader("ab")), end=" ")
    train(DataLoader("abc"))
    DataLoader.__iter__ = iterate
print("trained")
""")
        self.assertEqual("ab ab trained\n", out)
        self.assertNotIn("is not recorded any more", err)
        self.assertTrue(self.eventually(lambda: self.counts().get("step") == 6), self.counts())

    def test_who_tells_of_steps_follows_alone_and_a_run_after_has_none_to_follow(self):
        out, _ = self.run_hooked("""
            import stepwell, torch
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1))
            for index, batch in run.steps(torch.utils.data.DataLoader("abcd")):
                torch.nn.Model()(torch.Tensor()).backward()
                for other in torch.utils.data.DataLoader("xyz"): pass
            run.close()
            for batch in torch.utils.data.DataLoader("ab"): pass
            with stepwell.init() as run:
                for batch in torch.utils.data.DataLoader("ab"): pass
                run.off()
                for batch in torch.utils.data.DataLoader("ab"): print(run.state, end=" ")
            def broken(place): raise KeyError(place)
            with stepwell.init(schedule=broken) as run:
                for batch in torch.utils.data.DataLoader("ab"): print(run.state, end=" ")
            """)
        self.assertEqual("off off recording recording ", out)
        self.assertTrue(self.eventually(lambda: self.batches().get("step") == [0, 0, 1, 1, 1, 3]), self.batches())
        self.assertEqual([1, 3], self.batches()["backward"])

    def test_a_loop_in_whose_step_another_run_began_is_seen_in_that(self):
        out, _ = self.run_hooked("""
            import stepwell, torch
            from stepwell._load import core
            run = stepwell.init()
            model, optimizer = torch.nn.Model(), torch.optim.SGD()
            for batch in torch.utils.data.DataLoader(range(6)):
                if batch == 2:
                    run.close()
                    run = stepwell.init(trial=run.trial + ".second")
                print(core.batch(), end=" ")
                model(torch.Tensor().to("cuda")).backward(); optimizer.step()
            """)
        self.assertEqual("0 1 -1 0 1 2 ", out)
        self.assertEqual([0, 1], self.batches()["step"])
        found = self.batches(self.trial + ".second")
        for name in ("step", "to_device", "train_batch", "train_batch/optimizer_step"):
            self.assertEqual([0, 1, 2], found[name], name)

    def test_who_tells_of_no_steps_leaves_the_schedule_to_the_hooks(self):
        for name, told in (
            ("each step", "tracker.record('loss', 1)"),
            ("once", "if number == 2: tracker.record('loss', 1)"),
            ("an evaluation in each step", "for other in loop.evaluate('xy'): pass"),
            ("a loop that is a part of one", "for index, other in run.steps('xy', epoch=0): pass"),
        ):
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_")
                self.run_hooked(f"""
                    import stepwell, torch
                    from stepwell.integrations._training import Training
                    from stepwell.integrations.pytorch import TrainingLoop
                    run = stepwell.init(schedule=stepwell.schedule(wait=2, active=2))
                    tracker, loop = Training(run), TrainingLoop(run)
                    for number, batch in enumerate(torch.utils.data.DataLoader(range(12))):
                        {told}
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                wanted = [2, 3, 6, 7, 10, 11]
                self.assertTrue(self.eventually(lambda t=trial: self.batches(t).get("step") == wanted), self.batches(trial))
        with self.subTest("between epochs"):
            trial = f"{self.trial}.epochs"
            self.run_hooked("""
                import stepwell, torch
                from stepwell.integrations.pytorch import TrainingLoop
                run = stepwell.init(schedule=stepwell.schedule(wait=1, active=2, repeat=1, per="epoch"))
                loop = TrainingLoop(run)
                for epoch in range(3):
                    for batch in torch.utils.data.DataLoader("abcd"): pass
                    for batch in loop.evaluate("xy"): pass
                """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
            wanted = [1, 2, 5, 6, 9, 10]
            self.assertTrue(self.eventually(lambda: self.batches(trial).get("step") == wanted), self.batches(trial))

    def test_a_run_that_wants_hooks_after_one_that_wanted_none_has_them(self):
        loop = """
            for batch in torch.utils.data.DataLoader("ab"):
                torch.nn.Model()(torch.Tensor()).backward(); torch.optim.SGD().step()
            """
        for name, source in (
            ("before torch", "run = stepwell.init(hooks=False); run.close(); import torch; stepwell.init()"),
            ("while it waits for torch", "stepwell.init().close(); run = stepwell.init(hooks=False)\n"
                                         "import torch; run.close(); stepwell.init()"),
            ("they were in", "import torch; stepwell.init().close(); stepwell.init(hooks=False).close(); stepwell.init()"),
        ):  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}".replace(" ", "_")
                self.run_hooked("import stepwell\n" + source + loop.replace("\n            ", "\n"),
                                variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                wanted = {"step": 2, "train_batch": 2, "train_batch/forward": 2, "train_batch/backward": 2,
                          "train_batch/optimizer_step": 2}  # fmt: skip
                found = self.counts(trial)
                self.assertEqual(wanted, {key: found.get(key) for key in wanted})
        # While one is open that wanted none, it has none.
        out, _ = self.run_hooked("""
            import stepwell, torch
            run = stepwell.init(hooks=False)
            assert stepwell.init() is run
            print(type(torch.autograd.backward).__name__)
            """)
        self.assertEqual("function\n", out)

    def test_a_hook_that_failed_is_in_nothing_that_is_imported_later(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            from stepwell import hooks
            stepwell.init()
            for hook in [hooks._torch_hooks._batches.ahead_hook, *hooks._torch_hooks.hooks]: hook.fail(OSError("broken"))
            import safetensors.torch, accelerate.data_loader
            loader = accelerate.data_loader.DataLoaderShard
            print([hasattr(there, "__wrapped__") for there in (safetensors.torch.save_file, loader.__iter__, torch.save)])
            """)
        self.assertEqual("[False, False, False]\n", out, err)


if __name__ == "__main__":
    unittest.main()
