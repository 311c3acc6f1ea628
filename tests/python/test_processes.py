"""Forked and spawned children, as those of a data loader."""

import unittest

from product import ProductTest


class ProcessesTest(ProductTest):
    def test_forked_children_record_as_workers(self):
        out, err = self.run_trial("""
            import os, stepwell
            run = stepwell.init()
            run.record("value", 0)
            children = []
            for worker in range(4):
                child = os.fork()
                if child == 0:
                    with run.scope("load"): run.record("value", 1 + worker)
                    if worker == 1: os._exit(0)
                    if worker == 2: raise SystemExit(0)
                    if worker == 3: run.close()
                    break
                children.append(child)
            else:
                for child in children: print(os.waitpid(child, 0)[1])
            """)
        self.assertEqual("0\n" * 4, out)
        self.assertEqual(1, err.count("stored:"), "the end is said once, by the parent")
        found = self.await_counts({"value": 5, "load": 4})
        self.assertEqual({0, 1, 2, 3, 4}, {sample.value for sample in found if sample.name == "value"})
        self.assertEqual(4, sum("worker" in sample.labels for sample in found if sample.name == "value"))

    def test_a_pool_of_forked_workers_gives_its_answers(self):
        out, _ = self.run_trial("""
            import multiprocessing, stepwell
            run = stepwell.init()
            @run.scope("square")
            def square(n): return n * n
            with multiprocessing.get_context("fork").Pool(3) as pool:
                for index, answer in run.steps(pool.imap(square, range(6))): print(answer, end=" ")
                pool.close(); pool.join()
            """)
        self.assertEqual("0 1 4 9 16 25 ", out)
        self.await_counts({"step": 6, "dataloader_next": 7, "square": 6})

    def test_spawned_children_take_the_run_along_and_may_open_their_own(self):
        out, _ = self.run_trial("""
            import multiprocessing, stepwell
            class Data:
                def __init__(self, run): self.run, self.scope, self.series = run, run.scope("load"), run.series("n")
                def __call__(self, n):
                    if n == 1: self.run = stepwell.init()
                    with self.scope: self.series.record(n)
                    with self.run.scope("load"): self.run.record("m", n)
                    return n
            if __name__ == "__main__":
                run = stepwell.init()
                with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
                    print(pool.map(Data(run), range(2), chunksize=1))
                    pool.close(); pool.join()
            """, as_file=True)  # fmt: skip
        self.assertEqual("[0, 1]\n", out)
        self.await_counts({"load": 2, "n": 1, "m": 1})

    def test_a_lock_that_a_thread_held_at_the_fork_is_free_in_the_child(self):
        out, _ = self.run_trial("""
            import os, threading, stepwell
            run = stepwell.init()
            held, over = threading.Event(), threading.Event()
            def hold():
                with run._lock:
                    held.set(); over.wait()
            thread = threading.Thread(target=hold); thread.start(); held.wait()
            child = os.fork()
            if child == 0:
                run.off(); os._exit(7)
            over.set(); thread.join()
            print(os.waitpid(child, 0)[1] >> 8)
            """)
        self.assertEqual("7\n", out)

    def test_a_forked_child_is_in_none_of_its_parents_loops(self):
        out, _ = self.run_trial("""
            import os, stepwell
            run = stepwell.init()
            for index, batch in run.steps("ab"):
                if index == 1: child = os.fork()
                if index == 1 and child == 0:
                    mine = stepwell.init()
                    print([index for index, _ in mine.steps("xyz")], flush=True)
                    print([index for index, _ in mine.steps("xyz")], flush=True)
                    os._exit(0)
            os.waitpid(child, 0)
            """)
        self.assertEqual("[0, 1, 2]\n[3, 4, 5]\n", out)
        self.assertTrue(self.eventually(lambda: self.counts().get("step") == 2 + 6), self.counts())

    def test_in_a_sub_interpreter_nothing_is_recorded_and_the_processs_run_goes_on(self):
        for before in (True, False):
            with self.subTest(is_loaded_before=before):
                trial = f"{self.trial}.{before}"
                out, err = self.run_trial(("import stepwell" if before else "") + """
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
one = interpreters.create()
def run_there(): interpreters.run_string(one, '''if True:
        import stepwell
        with stepwell.init(trial="of another interpreter") as run:
            for index, batch in run.steps("abc"):
                with run.scope("inner"): run.record("inner", 1)
        print(index, batch, run.state, flush=True)
        ''')
if "stepwell" not in globals(): run_there()
import stepwell
with stepwell.init() as run:
    for index, batch in run.steps("ab"):
        with run.scope("outer"): run_there()
    print(index, run.state)
""", variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("2 c closed\n" * (2 if before else 3) + "1 recording\n", out)
                self.assertEqual(1, err.count("nothing is recorded: "), err)
                # As we say it, or CPython since 3.13.
                self.assertIn("subinterpreter", err.replace("-", ""))
                self.await_counts({"step": 2, "outer": 2, "dataloader_next": 3}, trial)

    def test_two_threads_that_watch_objects_of_one_class_leave_it_as_it_was(self):
        out, _ = self.run_trial("""
            import threading, time
            from stepwell.integrations import _watch
            heard, within, at_once = [], [], []
            class Model:
                def __init_subclass__(cls): heard.append(cls)
                def step(self): return 1
            own, make = vars(Model)["__init_subclass__"], _watch._quiet_child
            def slowly(*of):
                within.append(1)
                time.sleep(0.05)
                at_once.append(len(within))
                made = make(*of)
                within.pop()
                return made
            _watch._quiet_child = slowly
            def watch(): _watch.watch_call(Model(), "step", lambda: None, lambda: None)
            threads = [threading.Thread(target=watch) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(vars(Model)["__init_subclass__"] is own, len(heard), at_once)
            """)
        self.assertEqual("True 0 [1, 1, 1, 1]\n", out)


if __name__ == "__main__":
    unittest.main()
