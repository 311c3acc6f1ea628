"""on, off, flush, and runs one after the other."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import product
from product import ProductTest


class SwitchingTest(ProductTest):
    def test_off_records_nothing_and_on_goes_on_in_the_same_attempt(self):
        self.run_trial("""
            import stepwell
            run = stepwell.init()
            kept = run.scope("kept")
            for window in range(3):
                run.on(); run.on()
                with kept: pass
                run.record("window", window)
                run.off(); run.off()
                with kept: pass
                with run.scope("off"): pass
                run.record("off", 1)
                for _ in run.steps("ab"): pass
            print(run.dropped_count)
            """)
        found = self.await_counts({"kept": 3, "window": 3})
        self.assertEqual([0, 1, 2], [sample.value for sample in found if sample.name == "window"])
        self.assertEqual({1}, {sample.attempt for sample in found})

    def test_a_runs_calls_are_its_types_own_and_a_type_made_of_it_may_have_others(self):
        out, _ = self.run_trial("""
            import stepwell
            from stepwell import _core
            own = vars(stepwell.Run)
            print([name for name in ("scope", "record", "instant") if own[name].__objclass__ is not stepwell.Run])
            class Mine(stepwell.Run):
                def scope(self, name): return super().scope("mine_" + name)
            @_core.own_calls
            class Theirs(Mine): record = None
            print(Theirs.scope is Mine.scope, Theirs.record, Theirs.steps is stepwell.Run.steps,
                  vars(Theirs)["instant"].__objclass__ is Theirs)
            for kind in (int, stepwell.Series, 7):
                try: _core.own_calls(kind)
                except TypeError as error: print(error)
            run = stepwell.init()
            mine = Mine({})
            with mine.scope("name"): mine.record("value", 1)
            with run.scope(name="named"): run.record(name="value", value=2)
            print(run.dropped_count)
            """)
        self.assertEqual(["[]", "True None True True"] + 3 * ["stepwell: own_calls() takes a type of recordings"] + ["0"],
                         out.splitlines())  # fmt: skip
        self.await_counts({"mine_name": 1, "named": 1, "value": 2})

    def test_a_scope_is_whole_in_memory_that_was_something_elses(self):
        """Of a text its hash lay where a scope's own counts lie; CPython 3.12 and later leave some of what they find there as
        it is."""
        out, _ = self.run_trial("""
            import sys, time
            import stepwell
            run = stepwell.init()
            texts = [f"{number:0110}" for number in range(50_000)]
            hashes = set(map(hash, texts))
            del texts
            scopes = [run.scope("slept") for _ in range(2000)]
            while scopes:
                with scopes.pop(): time.sleep(1e-4)
            before = sys.getallocatedblocks()
            for _ in range(50):
                scopes = [run.scope("passed") for _ in range(100)]
                while scopes:
                    with scopes.pop(): pass
            print(run.dropped_count, sys.getallocatedblocks() - before < 1000)
            """)
        self.assertEqual("0 True\n", out)
        found = self.await_counts({"slept": 2000, "passed": 5000})
        self.assertGreaterEqual(min(sample.value for sample in found if sample.name == "slept"), 1e-4)

    def test_what_tasks_leave_open_while_it_is_off_takes_no_more_and_more_memory(self):
        """A generator that is left within its block is closed by another task."""
        out, _ = self.run_trial("""
            import asyncio, gc, sys, stepwell
            run = stepwell.init()
            kept = run.scope("kept")
            async def numbers():
                async with run.scope("named"):
                    async with kept:
                        yield 1
            async def leave():
                async for _ in numbers(): break
            async def leave_many(count):
                for _ in range(count): await leave()
                await asyncio.get_running_loop().shutdown_asyncgens()
            asyncio.run(leave_many(100))
            run.off()
            asyncio.run(leave_many(1500))
            gc.collect()
            before = sys.getallocatedblocks()
            asyncio.run(leave_many(3000))
            gc.collect()
            print(sys.getallocatedblocks() - before < 1000)
            async def across():
                async with run.scope("across"):
                    run.on()
                    async with run.scope("across"): pass
                    async with run.scope("within"): run.off()
                run.on()
                async with run.scope("after"): pass
            asyncio.run(across())
            print(run.dropped_count)
            """)
        self.assertEqual("True\n0\n", out)
        self.await_counts({"named": 100, "across": 1, "after": 1})

    def test_scopes_that_were_made_while_it_was_off_record_once_it_is_on(self):
        self.run_trial("""
            import threading, stepwell
            run = stepwell.init()
            run.off()
            kept, same, other = run.scope("kept"), run.scope("kept"), run.scope("other")
            leave = kept.__exit__
            @run.scope("decorated")
            def decorated(depth):
                if depth: decorated(depth - 1)
            with kept as entered: pass
            decorated(2)
            assert (entered.name, entered) == ("kept", kept) and repr(other) == "<stepwell.Scope 'other'>"
            run.on()
            with kept: pass
            with same:
                with other:
                    with kept: pass
            kept.__enter__()
            leave(None, None, None)
            try:
                with other: raise KeyError
            except KeyError:
                pass
            decorated(0)
            # Each on a thread of its own, over each other.
            inside, outside = threading.Event(), threading.Event()
            def of_a_thread():
                with other:
                    inside.set()
                    outside.wait()
            thread = threading.Thread(target=of_a_thread)
            thread.start()
            inside.wait()
            with other: pass
            outside.set()
            thread.join()
            entered = kept.__enter__()
            run.off()
            leave(None, None, None)
            with run.scope("kept"): pass
            run.on()
            with run.scope("kept"): pass
            print(run.dropped_count)
            """)
        self.await_counts({"kept": 4, "kept/other": 1, "kept/other/kept": 1, "other": 3, "decorated": 1})

    def test_what_loops_go_on_to_call_once_it_is_off_is_no_loss(self):
        _, err = self.run_trial("""
            import time, stepwell
            run = stepwell.init(schedule=stepwell.schedule(wait=2, active=3, repeat=2))
            for index, _ in run.steps(range(200)):
                with run.scope("train_batch"): time.sleep(0.001)
                run.record("value", index)
            run.close()
            run = stepwell.init()
            run.record("value", 1)
            run.off()
            until = time.monotonic() + 0.3
            while time.monotonic() < until: run.record("value", 1)
            run.close()
            """)
        self.await_counts({"value": 7, "train_batch": 6, "dataloader_next": 6, "step": 6})
        done = subprocess.run([product.program(), "trials", "--server", product.server(), "--json", "--contains", self.trial],
                              stdout=subprocess.PIPE, text=True, timeout=product.WAIT_S, check=True)  # fmt: skip
        (trial,) = json.loads(done.stdout)
        self.assertEqual((0, False), (trial["samples_missing"], trial["has_missing_samples"]), trial)
        self.assertNotIn("given up", err)

    def test_any_thread_may_switch(self):
        out, _ = self.run_trial("""
            import threading, stepwell
            run = stepwell.init()
            def switch():
                for i in range(5):
                    (run.on if i % 2 == 0 else run.off)()
                    with run.scope("thread"): pass
            threads = [threading.Thread(target=switch) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            run.on()
            with run.scope("end"): pass
            print(run.state)
            """)
        self.assertEqual("recording\n", out)
        self.assertEqual(1, self.counts()["end"])

    def test_a_run_that_is_closed_is_so_while_another_records(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            run.close()
            second = stepwell.init()
            print(run.state, second.state)
            """)
        self.assertEqual("closed recording\n", out)

    def test_on_changes_what_is_sampled(self):
        self.run_trial("""
            import time, stepwell
            run = stepwell.init(system_metrics=True, interval=0.01, groups="memory")
            run.on(interval=0.02, groups=["cpu", "memory"])
            run.on(interval=0.02)
            run.record("value", 1)
            """, variables={"STEPWELL_SYSTEM_METRICS": "unset"})  # fmt: skip
        self.assertTrue(self.eventually(lambda: {"memory_free", "cpu_load_1m"} <= self.counts().keys()))
        self.assertNotIn("disk_iops", self.counts())

    def test_flush_waits_until_all_is_stored(self):
        out, _ = self.run_trial("""
            import os, subprocess, stepwell
            run = stepwell.init()
            run.record("before", 1)
            print(run.flush(60), flush=True)
            subprocess.run([os.environ["PROGRAM"], "read", os.environ["STEPWELL_TRIAL"], "--name", "before",
                            "--server", os.environ["STEPWELL_SERVER"]], check=True, stdout=subprocess.DEVNULL)
            run.record("after", 1)
            run.close()
            print(run.flush(60), run.close())
            """, variables={"PROGRAM": __import__("product").program()})  # fmt: skip
        self.assertEqual("True\nFalse False\n", out)
        self.assertEqual({"before": 1, "after": 1}, self.counts())

    def test_a_flush_that_waits_holds_nobody_up(self):
        """Nor Ctrl-C: of a master that does not answer."""
        out, _ = self.run_trial("""
            import os, signal, threading, stepwell
            from stepwell import _run
            run = stepwell.init()
            run.record("before", 1)
            awaited, await_ack = {}, _run.core.close_await
            def told_await(closing, timeout_ms):
                if timeout_ms > 0:  # it waits for the master, in slices
                    awaited[threading.get_ident()].set()
                return await_ack(closing, timeout_ms)
            _run.core.close_await = told_await
            def flush_without_end():
                awaited[threading.get_ident()] = flush_awaits
                print(run.flush(3600))
            flush_awaits = threading.Event()
            flush = threading.Thread(target=flush_without_end, daemon=True)
            flush.start(); flush_awaits.wait()
            run.record("meanwhile", 1)
            run.off(); run.on(interval=0.5); run.off(); run.on()
            print(run.state, flush.is_alive())
            for call in (run.flush, run.close):
                this_awaits = awaited[threading.get_ident()] = threading.Event()  # the other goes on meanwhile
                thread = threading.Thread(target=lambda: this_awaits.wait() and os.kill(os.getpid(), signal.SIGINT))
                thread.start()
                try: call(3600)
                except KeyboardInterrupt: print("interrupted")
                thread.join()
            print(run.state, flush.is_alive())
            """, variables={"STEPWELL_SERVER": "127.0.0.1:1", "STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("recording True\ninterrupted\ninterrupted\nclosed True\n", out)

    def test_a_second_init_is_the_run_that_is_open(self):
        out, err = self.run_trial("""
            import stepwell
            first = stepwell.init()
            print(stepwell.init() is first, stepwell.init(trial="another") is first, first.trial)
            first.record("value", 1)
            first.close()
            second = stepwell.init(trial=first.trial + ".second")
            second.record("value", 2)
            first.record("value", 3)  # there is one recorder in a process
            """)
        self.assertEqual(f"True True {self.trial}\n", out)
        self.assertEqual(1, err.count("ignored: trial 'another'"), err)
        self.assertEqual([1], [sample.value for sample in self.samples()])
        self.assertEqual([2, 3], [sample.value for sample in self.samples(self.trial + ".second")])

    def test_a_second_init_names_all_options_that_it_ignores_and_no_others(self):
        out, err = self.run_trial("""
            import warnings, stepwell
            warnings.simplefilter("always")
            def open_again(**options):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    stepwell.init(**options)
                print([str(one.message).partition("ignored: ")[2] for one in told])
            def plan(): return stepwell.schedule(wait=1, active=2)
            given = {"interval": 1.0, "groups": "cpu", "labels": {"a": "b"}, "rank": 0}
            run = stepwell.init(schedule=plan(), **given)
            open_again()
            open_again(trial=run.trial, schedule=plan(), **given)
            for index, batch in run.steps("abc", start=4): pass     # its windows count from there
            open_again(schedule=plan())
            open_again(trial="another", interval=0.5, groups="memory", labels={"a": "c"}, token="secret", rank=3,
                       start_agent=False, schedule=lambda batch: True)
            """)
        self.assertEqual("[]\n[]\n[]\n[\"trial 'another', interval, groups, labels, token, rank, start_agent, schedule\"]\n",
                         out)  # fmt: skip
        self.assertNotIn("secret", err)

    def test_a_closed_run_records_nothing_and_raises_nothing(self):
        out, err = self.run_trial("""
            import stepwell
            with stepwell.init() as run: run.record("value", 1)
            with run.scope("late"): pass
            run.record("late", 1)
            print([pair for pair in run.steps("ab")])
            run.on(); run.on(); run.off()
            print(run.state, run.message)
            """)
        self.assertEqual("[(0, 'a'), (1, 'b')]\nclosed closed\n", out)
        self.assertIn("the run is closed", err)
        self.assertEqual({"value": 1}, self.counts())

    def test_a_notebook_switches_in_its_cells(self):
        """Cells are run one by one, in an interpreter that lives on."""
        out, _ = self.run_trial("""
            import code
            shell = code.InteractiveInterpreter()
            for cell in ("import stepwell", "run = stepwell.init()", "with run.scope('cell'): pass\\n",
                         "run.off()", "run.on()", "for i, b in run.steps('ab'): run.record('loss', i)\\n",
                         "run = stepwell.init()", "1 / 0", "print(run.close())"):
                shell.runsource(cell)
            """)
        self.assertEqual("True\n", out)
        self.await_counts({"cell": 1, "step": 2, "dataloader_next": 3, "loss": 2})

    def test_a_second_run_counts_its_batches_anew(self):
        out, _ = self.run_trial("""
            import stepwell
            for trial in (None, "another"):
                with stepwell.init(trial=trial) as run: print([index for index, _ in run.steps("abc")])
            """)
        self.assertEqual("[0, 1, 2]\n[0, 1, 2]\n", out)

    def test_a_run_that_a_signal_closes_within_flush_stays_closed(self):
        out, _ = self.run_trial("""
            import stepwell
            from stepwell import _run
            run = stepwell.init()
            close = _run.core.close_begin
            def close_and_more(into):
                _run.core.close_begin = close
                is_left = close(into)
                run.close()
                return is_left
            _run.core.close_begin = close_and_more
            run.flush(0)
            print(run.state)
            """, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("closed\n", out)

    def test_while_what_a_window_held_is_let_go_of_other_threads_go_on(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            library = f"{name}/libheld.so"
            source = str(pathlib.Path(__file__).with_name("held_munmap.c"))
            subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
            out, _ = self.run_trial(f"""
                import ctypes, threading, time, stepwell
                state = ctypes.c_int.in_dll(ctypes.CDLL({library!r}), "held_munmap_state")
                run = stepwell.init(hooks=False)
                with run.scope("a"): pass
                run.off()
                def let_go_on():
                    until = time.monotonic() + 60
                    while state.value < 2 and time.monotonic() < until: time.sleep(0.001)
                    if state.value == 2: state.value = 3
                thread = threading.Thread(target=let_go_on)
                thread.start()
                state.value = 1
                run._closings._kept.clear()
                thread.join()
                print(state.value)
                """, variables={"LD_PRELOAD": library})  # fmt: skip
        self.assertEqual("4\n", out)

    def test_steps_that_end_while_a_run_closes_are_in_its_numbers(self):
        _, err = self.run_trial("""
            import stepwell
            from stepwell import _run
            run = stepwell.init()
            loop = iter(run.steps("abcd"))
            close = _run.core.close_begin
            def late_close(into):
                for _ in loop: pass
                return close(into)
            _run.core.close_begin = late_close
            next(loop)
            run.close()
            """)
        self.assertIn("stepwell: 4 steps", err)


if __name__ == "__main__":
    unittest.main()
