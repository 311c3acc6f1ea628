"""What a training records arrives: right names, right counts, right batches."""

import json
import unittest

from product import ProductTest


class SamplesTest(ProductTest):
    def test_a_training_loop_arrives_as_it_was(self):
        out, _ = self.run_trial("""
            import stepwell
            with stepwell.init() as run:
                for epoch in range(2):
                    for batch_index, batch in run.steps(["a", "b", "c"]):
                        with run.scope("train_batch"):
                            with run.scope("forward"): pass
                            for _ in range(4):
                                with run.scope("backward"): pass
                        run.record("loss", 1 / (1 + batch_index))
                        print(batch_index, batch, end=" ")
            """)
        self.assertEqual("0 a 1 b 2 c 3 a 4 b 5 c ", out)
        found = self.samples()
        # A path gives one sample a step; two more fetches found their epoch's end.
        self.assertEqual({"step": 6, "dataloader_next": 8, "train_batch": 6, "train_batch/forward": 6, "loss": 6,
                          "train_batch/backward": 6, "train_batch/backward.count": 6}, self.counts())  # fmt: skip
        for name in ("step", "train_batch/forward", "loss"):
            self.assertEqual(list(range(6)), [sample.batch for sample in found if sample.name == name], name)
        self.assertEqual([1 / (1 + i) for i in range(6)], [sample.value for sample in found if sample.name == "loss"])
        self.assertEqual({4.0}, {sample.value for sample in found if sample.name == "train_batch/backward.count"})
        self.assertEqual([-1, -1], [s.batch for s in found if s.name == "dataloader_next" and s.batch < 0])
        self.assertEqual({"0"}, {sample.labels["rank"] for sample in found})

    def test_a_resumed_training_goes_on_where_it_says(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for start in (None, 1200):
                steps = run.steps(iter("ab") if start is None else "ab", start=start)
                print([index for index, _ in steps], [index for index, _ in steps])
            print(len(steps))
            """)
        self.assertEqual("[0, 1] []\n[1200, 1201] [1202, 1203]\n2\n", out)
        self.assertEqual([0, 1, 1200, 1201, 1202, 1203], [s.batch for s in self.samples() if s.name == "step"])

    def test_a_loop_in_a_step_is_no_step(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for index, batch in run.steps("ab"):
                for inner, _ in run.steps("xyz"):
                    with run.scope("evaluate"): print(index, inner, end=" ")
            """)
        self.assertEqual("0 0 0 1 0 2 1 0 1 1 1 2 ", out)
        self.assertEqual({"step": 2, "dataloader_next": 5, "dataloader_next.count": 2, "evaluate": 2,
                          "evaluate.count": 2}, self.counts())  # fmt: skip
        fetches = [(s.labels.get("loader"), s.batch) for s in self.samples() if s.name == "dataloader_next"]
        self.assertEqual([("train", -1), ("train", 0), ("train", 1)], sorted(f for f in fetches if f[0]))

    def test_a_loop_in_a_step_that_says_its_start_counts_by_itself(self):
        for arguments in ("", ", epoch=0"):
            with self.subTest(arguments):
                trial = f"{self.trial}{len(arguments)}"
                out, _ = self.run_trial(f"""
                    import stepwell
                    run = stepwell.init()
                    for index, batch in run.steps(range(6), start=10{arguments}):
                        print(index, end=" ")
                        if batch == 3:
                            for start in (0, 7, None):
                                print([inner for inner, _ in run.steps("ab", start=start{arguments})], end=" ")
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("10 11 12 13 [0, 1] [7, 8] [0, 1] 14 15 ", out)
                steps = [sample.batch for sample in self.samples(trial) if sample.name == "step"]
                self.assertEqual(list(range(10, 16)), steps)

    def test_an_iterator_that_is_kept_hides_no_later_loop_over_its_loader(self):
        for arguments in ("", ", epoch=0"):
            with self.subTest(arguments):
                trial = f"{self.trial}{len(arguments)}"
                out, _ = self.run_trial(f"""
                    import stepwell
                    run, loader = stepwell.init(), ["a", "b", "c"]
                    kept = iter(run.steps(loader{arguments}))
                    print(next(kept), end=" ")
                    print([index for index, _ in run.steps(loader{arguments})], end=" ")
                    print(next(kept), [index for index, _ in run.steps(["x"])])
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("(0, 'a') [0, 1, 2] (3, 'b') [0]\n", out)
                steps = [sample.batch for sample in self.samples(trial) if sample.name == "step"]
                self.assertEqual([0, 1, 2], steps, "3 was left midway, and holds the last loop")

    def test_a_loop_in_whose_step_another_run_began_has_its_steps_in_that(self):
        for arguments in ("", ", epoch=0"):
            with self.subTest(arguments):
                trial = f"{self.trial}{len(arguments)}"
                out, err = self.run_trial(f"""
                    import stepwell
                    run = stepwell.init()
                    for index, batch in run.steps(range(6){arguments}):
                        inner = [inner for inner, _ in run.steps("xy")]
                        if batch == 2:
                            run.close()
                            run = stepwell.init(trial=run.trial + ".second")
                        print(index, inner, end=" ")
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("0 [0, 1] 1 [0, 1] 2 [0, 1] " * 2, out)
                for name, batches in ((trial, [0, 1]), (trial + ".second", [0, 1, 2])):
                    self.assertEqual(batches, [s.batch for s in self.samples(name) if s.name == "step"], name)
                self.assertIn("stepwell: 3 steps of ", err)

    def test_a_loop_that_was_left_in_a_run_before_hides_none_of_the_next(self):
        self.run_trial("""
            import stepwell
            run = stepwell.init()
            kept = iter(run.steps("abc")); next(kept)
            run.close()
            run = stepwell.init(trial=run.trial + ".second")
            for _ in run.steps("xyz"): pass
            for _ in run.steps("uv"): next(kept)    # a part of the step
            """)
        steps = [sample.batch for sample in self.samples(self.trial + ".second") if sample.name == "step"]
        self.assertEqual([0, 1, 2, 3, 4], steps)

    def test_loops_over_one_loader_that_take_turns_are_one_loops_steps(self):
        out, _ = self.run_trial("""
            import stepwell
            run, loader = stepwell.init(), ["a", "b", "c", "d"]
            for (first, _), (second, _) in zip(run.steps(loader), run.steps(loader)): print(first, second, end=" ")
            """)
        self.assertEqual("0 0 0 1 1 2 2 3 ", out)
        self.assertEqual([0, 1, 2], [sample.batch for sample in self.samples() if sample.name == "step"])

    def test_a_loop_that_is_left_counts_its_whole_batches(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for index, batch in run.steps("abc"):
                if batch == "b": break
            try:
                for index, batch in run.steps("abc"):
                    if batch == "c": raise OSError("theirs")
            except OSError as error: print(error)
            def broken():
                yield 1
                raise KeyError("of the loader")
            try:
                for index, batch in run.steps(broken()): pass
            except KeyError as error: print(error)
            """)
        self.assertEqual("theirs\n'of the loader'\n", out)
        # The batch that was left midway keeps its number.
        self.assertEqual([0, 2, 3, 5], [sample.batch for sample in self.samples() if sample.name == "step"])

    def test_what_comes_after_a_loop_lies_in_no_step(self):
        self.run_trial("""
            import stepwell
            run = stepwell.init()
            for epoch in range(2):
                for _ in run.steps("ab"): pass
                for _ in range(3):
                    with run.scope("evaluate"): pass
                run.record("accuracy", epoch)
            """)
        found = self.samples()
        self.assertEqual([-1] * 6, [s.batch for s in found if s.name == "evaluate"])
        self.assertEqual([-1, -1], [s.batch for s in found if s.name == "accuracy"])
        self.assertEqual([0, 1, 2, 3], [s.batch for s in found if s.name == "step"])

    def test_a_loop_that_another_thread_drops_is_over(self):
        self.run_trial("""
            import threading, stepwell
            run = stepwell.init()
            for _ in range(3):
                held = [iter(run.steps("abc"))]
                next(held[0]); next(held[0])
                thread = threading.Thread(target=held.clear)
                thread.start(); thread.join()
            for _ in run.steps("xy"): pass
            def loop():
                for _ in run.steps("uvw"): pass
            threads = [threading.Thread(target=loop) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            """)
        self.assertEqual(3 * 1 + 2 + 4 * 3, self.counts()["step"])

    def test_scopes_are_kept_nested_and_decorate(self):
        out, _ = self.run_trial("""
            import asyncio, threading, stepwell
            run = stepwell.init()
            kept = run.scope("kept")
            with kept:
                with kept:
                    with kept: pass
            @run.scope("function")
            def fall(n): return n if n == 0 else fall(n - 1)
            @run.scope("coroutine")
            async def task(n):
                await asyncio.sleep(0)
                return n
            @run.scope("generator")
            def count(n):
                got = yield n
                return got
            async def tasks(): return await asyncio.gather(*(task(n) for n in range(5)))
            print(fall(3), fall.__name__, asyncio.run(tasks()), list(count(1)))
            def work():
                for _ in range(100):
                    with kept: pass
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(repr(kept), kept.name)
            """)
        self.assertEqual("0 fall [0, 1, 2, 3, 4] [1]\n<stepwell.Scope 'kept'> kept\n", out)
        counts = self.counts()
        self.assertEqual(803, sum(count for name, count in counts.items() if name.endswith("kept")))
        self.assertEqual(4, sum(count for name, count in counts.items() if name.endswith("function")))
        # Tasks interleave: where they lie is lost, that they were is not.
        self.assertEqual(5, sum(count for name, count in counts.items() if name.endswith("coroutine")))
        self.assertEqual(1, counts["generator"])

    def test_scopes_of_tasks_that_take_turns_are_true_and_lie_apart(self):
        out, _ = self.run_trial("""
            import asyncio, json, time, stepwell
            run, now = stepwell.init(), time.perf_counter
            kept = run.scope("kept")
            inner, outer = {}, {}
            async def wait(name, n):
                begin = now()
                await asyncio.sleep(n % 100 / 1000)
                with run.scope("within " + name): pass
                await asyncio.sleep(0)
                inner.setdefault(name, []).append(now() - begin)
            @run.scope("decorated")
            async def decorated(n): await wait("decorated", n)
            async def entered(n):
                async with run.scope("entered") as scope: await wait(scope.name, n)
            async def shared(n):
                async with kept:
                    if n % 10: await wait("kept", n)
                    else:
                        async with kept: await wait("kept", n)
            async def timed(name, task, n):
                begin = now()
                try: await task(n)
                finally: outer.setdefault(name, []).append(now() - begin)
            async def fails(n):
                async with kept: raise OSError("theirs")
            async def main():
                tasks = [("decorated", decorated), ("entered", entered), ("kept", shared)]
                await asyncio.gather(*(timed(name, task, n) for n in range(1000) for name, task in tasks))
                for result in await asyncio.gather(fails(1), return_exceptions=True): print(repr(result))
            with run.scope("around"): asyncio.run(main())
            @run.scope("generator")
            def count(n):
                for i in range(n):
                    yield i
            for pair in zip(*(count(3) for _ in range(50))): pass
            print(run.dropped_count)
            print(json.dumps([inner, outer]))
            """)
        said = out.splitlines()
        self.assertEqual(["OSError('theirs')", "0"], said[:2])
        inner, outer = json.loads(said[2])
        found = self.samples()
        for name in ("decorated", "entered"):
            values = sorted(sample.value for sample in found if sample.name == name)
            self.assertEqual(1000, len(values))
            for low, value, high in zip(sorted(inner[name]), values, sorted(outer[name])):
                self.assertTrue(low - 1e-6 <= value <= high + 1e-6, (name, low, value, high))
        values = [sample.value for sample in found if sample.name == "kept"]
        self.assertEqual(1000 + 100 + 1, len(values))
        self.assertGreaterEqual(sum(values), sum(inner["kept"]))
        self.assertLessEqual(sum(values), 1.2 * sum(outer["kept"]), "each of them its own")
        counts = self.counts()
        self.assertEqual((1, 50), (counts["around"], counts["generator"]))
        self.assertEqual(3000, sum(counts.get(f"around/within {name}", 0) for name in ("decorated", "entered", "kept")))

    def test_scopes_by_hand_end_on_other_threads_and_twice(self):
        self.run_trial("""
            import contextlib, threading, stepwell
            run = stepwell.init()
            scope = run.scope("handed_on")
            scope.__enter__()
            thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
            thread.start(); thread.join()
            scope.__exit__(None, None, None)  # not open any more
            with contextlib.ExitStack() as stack:
                stack.enter_context(run.scope("stacked"))
            run.scope("forgotten").__enter__()
            with run.scope("after"): pass
            """)
        # One that ended on another thread is still around what comes later on its own.
        self.assertEqual({"handed_on": 1, "handed_on/stacked": 1, "handed_on/forgotten": 1, "handed_on/after": 1},
                         self.counts())  # fmt: skip

    def test_a_scope_is_left_with_any_arguments_and_outlives_its_last_name(self):
        out, _ = self.run_trial("""
            import gc, stepwell
            run = stepwell.init()
            kept = run.scope("kept")
            for arguments in ((), (None,), (None, None, None), (1, 2, 3, 4)):
                kept.__enter__()
                kept.__exit__(*arguments)
            leave = [run.scope("left").__exit__ for _ in range(100)]
            same = leave[0]
            opened = run.scope("opened")
            opened.__enter__()
            late = opened.__exit__
            del opened
            gc.collect()
            [run.scope("between") for _ in range(100)]
            print(late(None, None, None), leave[5](), same is leave[0])
            with run.scope("after"): pass
            try: kept(1, 2, 3)
            except TypeError as error: print("refused")
            """, variables={"PYTHONMALLOC": "debug"})  # fmt: skip
        self.assertEqual("False False True\nrefused\n", out)
        self.assertEqual({"kept": 4, "opened": 1, "after": 1}, self.counts())

    def test_a_scope_that_two_threads_are_in_knows_whose_it_is(self):
        self.run_trial("""
            import threading, time, stepwell
            run = stepwell.init()
            kept = run.scope("kept")
            entered, left = threading.Event(), threading.Event()
            def stay():
                with run.scope("long"), kept:
                    begin = time.perf_counter()
                    entered.set(); left.wait()
                    while time.perf_counter() - begin < 2 * took + 0.01: time.sleep(0.01)
            thread = threading.Thread(target=stay)
            with run.scope("short"):
                begin = time.perf_counter()
                with kept: thread.start(); entered.wait()
                took = time.perf_counter() - begin
            left.set(); thread.join()
            """)
        values = {sample.name: sample.value for sample in self.samples()}
        self.assertEqual({"long", "long/kept", "short", "short/kept"}, values.keys())
        self.assertLess(values["short/kept"], values["long/kept"])

    def test_an_exception_passes_and_the_scope_closes(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for error in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
                try:
                    with run.scope("outer"):
                        with run.scope("inner"): raise error("theirs")
                except BaseException as caught: print(type(caught).__name__, caught)
            with run.scope("after"): pass
            """)
        self.assertEqual("ValueError theirs\nKeyboardInterrupt theirs\nSystemExit theirs\nGeneratorExit theirs\n", out)
        self.assertEqual({"outer": 4, "outer/inner": 4, "after": 1}, self.counts())

    def test_a_series_has_what_was_said_of_it(self):
        self.run_trial("""
            import stepwell
            run = stepwell.init(labels={"team": "vision"})
            loss = run.series("loss", unit="nats")
            run.record("loss", 1)
            run.record(loss, 2)
            loss.record(3)
            split = {"split": "a\\"b'c ü"}
            run.series("examples", group="mine", unit="examples", kind="counter", labels=split).record(4)
            """)
        found = self.samples()
        self.assertEqual([1, 2, 3], [sample.value for sample in found if sample.name == "loss"])
        self.assertEqual({"nats"}, {sample.unit for sample in found if sample.name == "loss"})
        (examples,) = (sample for sample in found if sample.name == "examples")
        self.assertEqual(("mine", "examples"), (examples.group, examples.unit))
        self.assertEqual(("a\"b'c ü", "vision"), (examples.labels["split"], examples.labels["team"]))

    def test_numbers_of_each_kind_are_recorded(self):
        self.run_trial("""
            import decimal, fractions, stepwell
            run = stepwell.init()
            class Tensor:
                def __float__(self): return 5.5
            class Index:
                def __index__(self): return 6
            for value in (1, 2.5, True, decimal.Decimal("3.5"), fractions.Fraction(9, 2), Tensor(), Index()):
                run.record("value", value)
            run.record(name="value", value=7)
            """)
        # Those of one microsecond come in no order.
        self.assertEqual([1, 1, 2.5, 3.5, 4.5, 5.5, 6, 7], sorted(sample.value for sample in self.samples()))

    def test_names_are_taken_as_they_are(self):
        names = ["sp ace", "quo\"te's", "ümläut", "日本語", "a" * 200, "語" * 66, "50%", "{}", "back\\slash"]
        self.run_trial(f"""
            import stepwell
            run = stepwell.init()
            for name in {names!r}:
                with run.scope(name): pass
                with run.scope("".join(list(name))): pass  # equal, another object
                run.record(name, 1)
            """)
        self.assertEqual({name: 3 for name in names}, self.counts())

    def test_a_loop_that_comes_to_its_end_within_its_own_fetch_is_over(self):
        out, _ = self.run_trial("""
            import itertools, threading, stepwell
            run = stepwell.init()
            class Asks:
                asked = 0
                def __iter__(self): return self
                def __next__(self):
                    Asks.asked += 1
                    if Asks.asked == 1: return next(loop, None)
                    raise StopIteration
            loop = iter(run.steps(zip(Asks(), itertools.count())))
            print(next(loop), next(loop, None))
            class Waits:
                def __iter__(self): return self
                def __next__(self):
                    if threading.current_thread() is threading.main_thread(): raise StopIteration
                    entered.set(); ended.wait()
                    return "alive"
            entered, ended, given = threading.Event(), threading.Event(), []
            loop = iter(run.steps(zip(Waits(), itertools.count())))
            thread = threading.Thread(target=lambda: given.append(next(loop)))
            thread.start(); entered.wait()
            print(next(loop, None))
            ended.set(); thread.join()
            print(given)
            """, variables={"PYTHONMALLOC": "debug"})  # fmt: skip
        self.assertEqual("(0, (None, 0)) None\nNone\n[(0, ('alive', 0))]\n", out)

    def test_a_loader_that_fails_at_one_batch_goes_on(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            class Loader:
                batch = 0
                def __iter__(self): return self
                def __next__(self):
                    self.batch += 1
                    if self.batch == 2: raise OSError("bad batch")
                    if self.batch > 4: raise StopIteration
                    return self.batch
            loop = iter(run.steps(Loader()))
            given = []
            while True:
                try: given.append(next(loop))
                except OSError as error: given.append(str(error))
                except StopIteration: break
            print(given, list(loop))
            """)
        self.assertEqual("[(0, 1), 'bad batch', (1, 3), (2, 4)] []\n", out)
        self.assertEqual([0, 1, 2], [sample.batch for sample in self.samples() if sample.name == "step"])

    def test_loops_in_loops_without_end_are_an_error_and_no_crash(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            nested, begun = run.steps("ab"), iter("ab")
            for _ in range(100000): nested, begun = run.steps(nested), iter(run.steps(begun))
            for call in (iter, len, list):
                try: call(nested)
                except RecursionError: print("refused", end=" ")
            try: next(begun)
            except RecursionError: print("refused")
            del nested, begun
            print(list(run.steps("ab", start=0)), bool(run.steps("")), bool(run.steps(iter(""))))
            """)
        self.assertEqual("refused refused refused refused\n[(0, 'a'), (1, 'b')] True True\n", out)


if __name__ == "__main__":
    unittest.main()
