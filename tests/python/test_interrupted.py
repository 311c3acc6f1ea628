"""Ctrl-C at each line of ours leaves what comes after as it would be: scopes, functions that are timed, frameworks."""

import textwrap
import unittest

import interrupts
from product import ProductTest
from test_accelerate import _ACCELERATE
from test_hooks import _FAKE
from test_trainings import _TRAINER



class InterruptedTest(ProductTest):
    def test_scopes_of_the_gpu_functions_that_are_timed_and_traces(self):
        out, _ = self.run_trial(interrupts.SOURCE + textwrap.dedent("""
            import asyncio, pathlib, tempfile, stepwell, torch
            torch.cuda.is_there = True
            run = stepwell.init(hooks=False)
            trace = pathlib.Path(tempfile.mkdtemp()) / "of.json"
            trace.write_text("{}")
            gpu = run.device_scope("gpu")
            with gpu: torch.cuda.work(1)
            def scopes():
                with gpu, run.device_scope("inner"): torch.cuda.work(1)
                torch.cuda.finish()
            @run.scope("function")
            def function(): pass
            @run.scope("items")
            def items(): yield from "ab"
            @run.device_scope("task")
            async def task(): pass
            def timed():
                function(); list(items())
                coroutine = task()
                try: coroutine.send(None)
                except StopIteration: pass
                finally: coroutine.close()
                run.scope("made")(function)()
            def handed_over(): run.upload_trace(trace, epoch=1)
            def of_ours(code):
                # A trace comes once more to a `with` that ends, before its exit, where no signal does.
                return "/stepwell/" in code.co_filename and not (code.co_filename.endswith("/_decorator.py") and code.co_name == "call")
            def after(line):
                with run.scope("after"): pass
            for live in (scopes, timed, handed_over):
                count, swallowed = interrupt_each(live, of_ours, after)
                print(live.__name__, swallowed, count > 5)
                with gpu: torch.cuda.work(1)
                torch.cuda.finish()
                after(0)
            print(run.upload_trace(trace), run.close(60))
            """), variables={"PYTHONPATH": _FAKE})  # fmt: skip
        self.assertEqual("".join(f"{live} [] True\n" for live in ("scopes", "timed", "handed_over")) + "True True\n", out)
        found = self.counts()
        self.assertEqual([], [name for name in found if name.endswith("/after")])
        self.assertGreater(found["after"], 50)
        # Of what was not interrupted the GPU's times are there still.
        self.assertGreater(len([s for s in self.samples() if s.name == "gpu" and s.labels.get("clock") == "device"]), 30)

    def test_trainings_of_frameworks(self):
        for name, steps, source in [
            ("transformers", 2, _TRAINER + textwrap.dedent("""
                watched = watch(trainer)
                def live(): trainer.train(); trainer.evaluate()
                def is_left(): return type(trainer) is Trainer and type(trainer.loaders[-1]) is Loader
                """)),
            ("accelerate", 4, _ACCELERATE + textwrap.dedent("""
                from stepwell.integrations.accelerate import watch
                watched = watch(accelerator, loader, evaluation)
                def live():
                    for batch in loader: accelerator.backward(batch)
                    for batch in evaluation: pass
                    watched.training.leave()
                def is_left(): return type(accelerator) is Accelerator and type(loader) is Loader
                """)),
        ]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                out, _ = self.run_trial(interrupts.SOURCE + source + textwrap.dedent("""
                    run = stepwell.init()
                    def after(line):
                        with run.scope("after"): pass
                    count, swallowed = interrupt_each(live, lambda code: "/stepwell/" in code.co_filename, after)
                    print(swallowed, count > 100)
                    run.close()
                    run = stepwell.init(trial=run.trial + ".after")
                    live()
                    after(0)
                    watched.end()
                    print(is_left(), run.close(60))
                    """), variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("[] True\nTrue True\n", out)
                found = self.samples(trial + ".after")
                counts = {name: [s.name for s in found].count(name) for name in ("step", "after")}
                self.assertEqual({"step": steps, "after": 1}, counts)


if __name__ == "__main__":
    unittest.main()
