"""However a training ends, what it recorded is stored, and the end says where."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import unittest

import interrupts
import product
from product import ProductTest

RECORDED = """
    import os, signal, sys, threading, stepwell
    run = stepwell.init()
    for index, batch in run.steps("abc"):
        with run.scope("train_batch"): pass
    """
COUNTS = {"step": 3, "dataloader_next": 4, "train_batch": 3}


class EndingsTest(ProductTest):
    def test_each_end_stores_what_was_recorded(self):
        for name, end, code in [
            ("returns", "pass", 0),
            ("closes", "print(run.close())", 0),
            ("exits", "sys.exit(3)", 3),
            ("raises", "raise ValueError('theirs')", 1),
            ("is_interrupted", "os.kill(os.getpid(), signal.SIGINT); threading.Event().wait()", -signal.SIGINT),
            ("leaves", "os._exit(4)", 4),
            ("is_killed", "os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
            ("has_a_daemon", "threading.Thread(target=threading.Event().wait, daemon=True).start()", 0),
            ("records_in_a_daemon", "threading.Thread(target=lambda: [run.record('late', 1) or "
             "threading.Event().wait(0.001) for _ in iter(int, 1)], daemon=True).start()", 0),
        ]:  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                self.run_trial(RECORDED + end, code=code, variables={"STEPWELL_TRIAL": trial})

                def is_stored(trial: str = trial) -> bool:
                    counts = self.counts(trial)
                    counts.pop("late", None)
                    return counts == COUNTS

                self.assertTrue(self.eventually(is_stored), self.counts(trial))

    def test_what_was_left_on_windows_before_is_waited_for_at_the_end(self):
        # Nobody says at once that it is stored: the first ask of a window left is answered with "not yet".
        _, err = self.run_trial("""
            import stepwell
            from stepwell import _closings
            await_ack, asked = _closings.core.close_await, []
            def told_await(closing, wait_ms):
                asked.append(wait_ms)
                return await_ack(closing, wait_ms) if wait_ms > 0 else 0
            _closings.core.close_await = told_await
            run = stepwell.init()
            for index, batch in run.steps("abc"):
                with run.scope("train_batch"): pass
                if index == 0: run.off(); run.on()
            run.off()
            print(run.close(), max(asked) > 0)
            """)
        self.assertIn(f"stored: stepwell report {self.trial}", err)
        self.assertEqual({"step": 2, "dataloader_next": 4, "train_batch": 3}, self.counts())

    def test_nothing_is_called_stored_while_a_window_before_is_not(self):
        for name, leaves in [("off", "run.off(); run.on()"), ("on", "run.on(interval=2.0)"), ("flush", "run.flush(0)")]:
            with self.subTest(name):
                # The first window names a master that is not there, all later ones name the one that is.
                out, err = self.run_trial(f"""
                    import os, stepwell
                    run = stepwell.init(server="127.0.0.1:1")
                    run.record("before", 1)
                    run._options["server"] = os.environ["STEPWELL_SERVER"]
                    {leaves}
                    run.record("after", 1)
                    print(run.flush(0.2), run.close(0.2))
                    """, variables={"STEPWELL_TRIAL": f"{self.trial}.{name}"})  # fmt: skip
                self.assertEqual("False False\n", out)
                self.assertIn("not stored yet, its agent goes on", err)

    MANY = """
            import os, stepwell
            from stepwell import _closings
            await_ack, is_told = _closings.core.close_await, False
            # Who does not wait hears nothing before `is_told`, however fast the agent is.
            _closings.core.close_await = lambda one, wait_ms: await_ack(one, wait_ms) if is_told or wait_ms > 0 else 0
            run = stepwell.init()
            def leave_windows(count):
                for window in range(count):
                    run.record("window", window)
                    run.off(); run.on()
                return len(os.listdir("/proc/self/fd"))
            """

    def test_any_number_of_windows_is_waited_for(self):
        """None is known to be stored until all are left."""
        out, err = self.run_trial(self.MANY + """
            before = leave_windows(20)
            print(leave_windows(100) < before + 20, len(run._closings.waiting()))
            print(run.flush(60), len(run._closings.waiting()))
            is_told = True
            run.off()
            print(len(run._closings.waiting()), run.close(60))
            """)
        self.assertEqual("True 120\nTrue 121\n51 True\n", out)
        self.assertIn(f"stored: stepwell report {self.trial}", err)
        self.assertEqual({"window": 120}, self.counts())

    def test_of_more_windows_than_are_kept_it_is_told_that_nobody_knows(self):
        out, err = self.run_trial("from stepwell import _closings; _closings.KEPT_MAX = 9\n" + textwrap.dedent(self.MANY + """
            leave_windows(11)
            is_flushed = run.flush(60)
            is_told = True
            print(is_flushed, run.close(60))
            """))
        self.assertEqual("False False\n", out)
        self.assertIn("not known to be stored, 3 windows before the last: stepwell agent status", err)
        self.await_counts({"window": 11})

    def test_signal_handlers_are_the_trainings_own(self):
        out, _ = self.run_trial("""
            import signal
            before = [signal.getsignal(number) for number in range(1, 65)]
            import stepwell
            with stepwell.init() as run: run.record("value", 1)
            print(before == [signal.getsignal(number) for number in range(1, 65)])
            """)
        self.assertEqual("True\n", out)

    def test_an_interrupt_at_any_line_leaves_a_recorder_that_goes_on(self):
        out, _ = self.run_trial(interrupts.SOURCE + textwrap.dedent("""
            import stepwell
            def live():
                with stepwell.init() as run:
                    for index, batch in run.steps("ab"):
                        with run.scope("train_batch"):
                            run.record("loss", index)
                    run.off(); run.on(interval=2.0); run.flush(0)
            count, swallowed = interrupt_each(live, lambda code: "stepwell" in code.co_filename or code.co_name == "live")
            print(swallowed, count > 200)
            run = stepwell.init()
            with run.scope("after"): run.record("last", 1)
            print(run.close(60))
            """), variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("[] True\nTrue\n", out)
        counts = self.counts()
        self.assertEqual((1, 1), (counts["after"], counts["last"]))

    def test_an_interrupt_of_an_end_or_a_begin_leaves_the_next_run_its_own(self):
        out, _ = self.run_trial(f"""
            import stepwell
            from stepwell import _run
            def interrupted(name, before):
                original = getattr(_run.core, name)
                def call(*arguments):
                    setattr(_run.core, name, original)
                    held = None if before else original(*arguments)
                    raise KeyboardInterrupt
                setattr(_run.core, name, call)
            def attempt(call):
                try: call()
                except KeyboardInterrupt: print("interrupted", end=" ")
            number = 0
            for name, before in (("close_begin", True), ("close_begin", False), ("open", True), ("open", False)):
                number += 1
                if name == "open": interrupted(name, before)
                attempt(lambda: stepwell.init(trial={self.trial!r} + ".left"))
                if name != "open":
                    interrupted(name, before)
                    attempt(_run._run.close)
                run = stepwell.init(trial={self.trial!r} + f".{{number}}")
                run.record("mine", 1)
                print(run.trial[-1], run.close(60))
            """)
        self.assertEqual("".join(f"interrupted {n} True\n" for n in (1, 2, 3, 4)), out)
        for number in range(1, 5):
            self.assertEqual({"mine": 1}, self.counts(f"{self.trial}.{number}"))

    def test_an_end_that_cannot_be_shown_is_one_line(self):
        out, err = self.run_trial("""
            import sys, stepwell
            with stepwell.init() as run: run.record("value", 1); sys.modules["stepwell._closing"] = None
            print("on")
            """)
        self.assertEqual("on\n", out)
        self.assertEqual(1, err.count("stepwell: the end of the run is not shown: ModuleNotFoundError"), err)

    def test_agent_rule_13_the_end_says_what_the_steps_consisted_of(self):
        _, err = self.run_trial("""
            import time, stepwell
            run = stepwell.init()
            for _ in run.steps("abcd"):
                with run.scope("train_batch"):
                    with run.scope("slow"): time.sleep(0.02)
            with run.scope("outside"): time.sleep(0.3)
            """)
        steps, shares, where = err.splitlines()
        self.assertRegex(steps, r"^stepwell: 4 steps of [\d.]+ ms, [\d.]+ m?s in all$")
        self.assertRegex(shares, r"^stepwell: train_batch/slow [6-9]\d\.\d %, ")
        self.assertNotIn("outside", shares)
        self.assertEqual(f"stepwell: stored: stepwell report {self.trial}", where)

    def test_agent_rule_13_the_end_links_the_page_of_this_very_trial(self):
        variables = {"STEPWELL_PAGE": product.page() + "/"}
        _, err = self.run_trial(RECORDED, variables=variables)
        where = err.splitlines()[-1]
        begin = f"stepwell: stored: stepwell report {self.trial}, or {product.page()}/#/trial/"
        self.assertRegex(where, f"^{re.escape(begin)}[1-9][0-9]*/timings$")
        number = where.removeprefix(begin).partition("/")[0]
        _, err = self.run_trial(RECORDED, variables={**variables, "STEPWELL_TRIAL": f"id:{number}"})
        self.assertIn(f", or {product.page()}/#/trial/{number}/timings", err)

    def test_a_page_that_does_not_answer_is_not_linked(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:  # and says nothing to who comes
            for page in (f"http://127.0.0.1:{mute.getsockname()[1]}", "http://127.0.0.1:1", "http://1.2:x", "http://", "x"):
                with self.subTest(page):
                    _, err = self.run_trial(RECORDED, variables={"STEPWELL_PAGE": page})
                    self.assertEqual(f"stepwell: stored: stepwell report {self.trial}", err.splitlines()[-1])

    def test_a_page_of_a_name_is_searched_for_the_trial_and_no_name_is_looked_up(self):
        looked_up = "import socket; socket.getaddrinfo = None\n" + textwrap.dedent(RECORDED)
        for page in ("https://a", "http://pages.example:7818"):
            with self.subTest(page):
                _, err = self.run_trial(looked_up, variables={"STEPWELL_PAGE": page, "STEPWELL_TRIAL": "a b/c"})
                self.assertTrue(err.splitlines()[-1].endswith(f", or {page}/#/trials?q=a%20b%2Fc"), err)

    def test_the_end_is_silent_where_it_is_asked_to_be(self):
        for name, variables in [("quiet", {"STEPWELL_QUIET": "1"}), ("another rank", {"RANK": "1", "WORLD_SIZE": "2"}),
                                ("disabled", {"STEPWELL_DISABLED": "1"})]:  # fmt: skip
            with self.subTest(name):
                self.assertEqual("", self.run_trial(RECORDED, variables=variables)[1])

    def test_agent_rule_13_where_no_master_answers_the_end_says_how_it_gets_there(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            server = f"127.0.0.1:{free.getsockname()[1]}"
        _, err = self.run_trial(RECORDED, variables={"STEPWELL_SERVER": server, "STEPWELL_EXIT_WAIT": "0.2"})
        self.assertEqual(
            f"stepwell: no master at {server} (STEPWELL_SERVER names another): "
            f"stepwell serve --grpc-listen {server}, and its agent sends it (later "
            f"stepwell upload --server {server} {os.environ['PRODUCT_SPOOL']}), then stepwell report {self.trial}",
            err.splitlines()[-1])  # fmt: skip

    def test_without_an_agent_the_end_says_how_it_gets_to_its_own_master(self):
        _, err = self.run_trial("""
            import stepwell
            run = stepwell.init(server="gpu-master:7817", agent="/no/such/agent")
            run.close(0)
            """, variables={"STEPWELL_SPOOL_DIR": str(product.folder() / "alone"), "STEPWELL_TRACES": str(product.folder())})  # fmt: skip
        spool = product.folder() / "alone"
        self.assertEqual(
            "stepwell: no steps; not stored: no agent: there is no program /no/such/agent; it waits in "
            f"{spool}: stepwell upload --named-files --server gpu-master:7817 {spool}, then stepwell report {self.trial}",
            err.splitlines()[-1])  # fmt: skip

    def test_a_run_that_is_off_at_its_end_says_what_became_of_it(self):
        _, err = self.run_trial(RECORDED + "run.flush(60); run.off()", variables={"STEPWELL_OFFLINE": "1"})
        self.assertIn("no master: stepwell serve, then stepwell upload", err)

    def test_what_was_dropped_is_told_at_the_end(self):
        _, err = self.run_trial("""
            import stepwell
            run = stepwell.init()
            with run.scope("scope"):
                for i in range(5000):
                    scopes = [run.scope(f"{i % 4000}") for _ in range(40)]
                    for scope in scopes: scope.__enter__()
                    for scope in reversed(scopes): scope.__exit__(None, None, None)
            """, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertRegex(err, r"stepwell: [\d,]+ dropped, for want of room\n")

    def test_a_program_given_as_text_has_a_name_that_is_no_option(self):
        out, _ = self.run_trial("""
            import sys, stepwell
            from stepwell import _identity
            print(_identity.trial_name(None))
            for program in (".hidden.py", "..", "-x.py"):
                sys.argv[0] = program
                print(_identity.trial_name(None))
            """, variables={"STEPWELL_TRIAL": "unset"})  # fmt: skip
        names = [line.split("-2")[0] for line in out.splitlines()]
        self.assertEqual(["python", "hidden", "python", "python"], names)

    def test_an_exit_does_not_wait_for_another_threads_flush(self):
        self.run_trial(RECORDED + """
    entered = threading.Event()
    from stepwell import _run
    await_ack = _run.core.close_await
    def told_await(*arguments):
        entered.set()
        return await_ack(*arguments)
    _run.core.close_await = told_await
    threading.Thread(target=run.flush, args=(3600,), daemon=True).start()
    entered.wait()
    """, variables={"STEPWELL_SERVER": "127.0.0.1:1", "STEPWELL_EXIT_WAIT": "0.2"})  # fmt: skip

    def test_a_closed_stderr_hurts_nobody(self):
        self.run_trial(RECORDED + "os.close(2); sys.stderr = None")


class AloneTest(ProductTest):
    """Without the agent and the master of the other tests."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.temporary = pathlib.Path(scratch.name)
        self.variables = {"STEPWELL_SPOOL_DIR": "unset", "STEPWELL_AGENT": product.program(),
                          "STEPWELL_AGENT_IDLE_EXIT": "1", "STEPWELL_SHARED_MEMORY": "",
                          "TMPDIR": str(self.temporary)}  # fmt: skip

    def await_agents_end(self):
        """Before its directory goes."""
        wanted = f"{self.temporary}/".encode()

        def is_gone() -> bool:
            for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    if wanted in process.read_bytes():
                        return False
                except OSError:
                    pass
            return True

        self.assertTrue(self.eventually(is_gone), "an agent stayed")

    def test_a_training_brings_its_agent(self):
        _, err = self.run_trial(RECORDED, variables=self.variables)
        self.assertIn(f"stored: stepwell report {self.trial}", err)
        self.assertEqual(COUNTS, self.counts())
        self.await_agents_end()

    def test_an_agent_whose_directory_is_removed_is_not_there_for_long(self):
        spool = self.temporary / "spool"
        self.run_trial(RECORDED, variables={**self.variables, "STEPWELL_SPOOL_DIR": str(spool),
                                            "STEPWELL_AGENT_IDLE_EXIT": "3600"})  # fmt: skip
        self.await_counts(COUNTS)  # what is not acked yet would have a minute
        lock = spool / "f1" / "agent.lock"
        self.assertTrue(self.eventually(lock.exists))
        shutil.rmtree(spool)
        self.await_agents_end()

    def test_offline_it_is_kept_and_uploaded_later(self):
        _, err = self.run_trial(RECORDED, variables={**self.variables, "STEPWELL_OFFLINE": "1"})
        spool = self.temporary / f"stepwell-{os.geteuid()}"
        number, unit = r"[0-9][0-9.,]*", "(?:s|ms|µs|ns)"
        steps, shares, ending = [line for line in err.splitlines() if line.startswith("stepwell: ")]
        self.assertRegex(steps, rf"^stepwell: 3 steps of {number} {unit}, {number} {unit} in all$")
        self.assertEqual({"train_batch", "dataloader_next", "unaccounted"},
                         set(re.findall(rf"([a-z_]+) {number} %", shares)), shares)  # fmt: skip
        self.assertRegex(shares, rf"^stepwell: [a-z_]+ {number} %(, [a-z_]+ {number} %){{2}}$")
        self.assertEqual(f"stepwell: no master: stepwell serve, then stepwell upload {spool}, then stepwell report "
                         f"{shlex.quote(self.trial)}", ending)  # fmt: skip
        self.await_agents_end()
        self.assertEqual({}, self.counts())
        subprocess.run([product.program(), "upload", str(spool), "--server", product.server()],
                       stdin=subprocess.DEVNULL, check=True, timeout=product.WAIT_S)  # fmt: skip
        self.await_counts(COUNTS)

    def test_where_no_agent_can_be_started_it_says_so(self):
        out, err = self.run_trial(RECORDED + "print(run.state)", variables={
            **self.variables, "STEPWELL_AGENT": "/no/such/agent", "STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("recording\n", out)
        self.assertIn("/no/such/agent", err)
        self.assertRegex(err, rf"it waits in (\S+): stepwell upload --server {re.escape(product.server())} \1, then stepwell report")

    def test_windows_that_no_agent_was_seen_for_are_known_once_a_later_one_stores_them(self):
        spool, go = self.temporary / "spool", self.temporary / "go"
        spool.mkdir(mode=0o700)
        trial = self.start(f"""
            import pathlib, time, stepwell
            run = stepwell.init(start_agent=False)
            run.record("before", 1)
            print(run.flush(60), flush=True)            # nobody came for two seconds
            for window in range(12):
                run.record("window", window)
                run.off(); run.on()
            print("left", flush=True)
            end = time.monotonic() + 60
            while not pathlib.Path({str(go)!r}).exists() and time.monotonic() < end: time.sleep(0.01)
            run.record("after", 1)
            end = time.monotonic() + 30
            while not (is_stored := run.flush(30)) and time.monotonic() < end: pass
            print(is_stored, run.close(60))
            """, variables={**self.variables, "STEPWELL_SPOOL_DIR": str(spool)})  # fmt: skip
        self.addCleanup(trial.kill)
        self.assertEqual(["False\n", "left\n"], [trial.stdout.readline() for _ in range(2)])
        words = [product.program(), "agent", "--server", product.server(), "--spool-dir", str(spool)]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
            try:
                self.assertTrue(self.eventually((spool / "f1" / "agent.lock").exists))
                go.write_text("")
                out, err = trial.communicate(timeout=2 * product.WAIT_S)
            finally:
                agent.terminate()
        self.assertEqual("True True\n", out, err)
        self.assertIn(f"stored: stepwell report {self.trial}", err)
        self.assertEqual({"before": 1, "window": 12, "after": 1}, self.counts())

    def test_without_a_spool_directory_it_trains_on(self):
        refused = self.temporary / "file"
        refused.write_text("")
        out, err = self.run_trial(RECORDED + "print(run.state)", variables={
            **self.variables, "STEPWELL_SPOOL_DIR": str(refused), "STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("memory only\n", out)
        self.assertIn(str(refused), err)


if __name__ == "__main__":
    unittest.main()
