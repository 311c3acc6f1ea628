"""The lines at the end of a run, from its numbers."""

import importlib.util
import os
import pathlib
import re
import sys
import unittest
import unittest.mock
from typing import Any

_PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "client" / "python" / "stepwell"


def _load(name: str) -> Any:
    """Without the package's extension."""
    spec = importlib.util.spec_from_file_location(name, _PACKAGE / f"_{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


closing, identity, page = _load("closing"), _load("identity"), _load("page")

MS = 1_000_000


class ClosingTest(unittest.TestCase):
    def test_durations_have_three_digits(self):
        for seconds, text in [(0.0, "0 ns"), (999e-9, "999 ns"), (1.5e-6, "1.50 µs"), (8.8e-3, "8.80 ms"),
                              (0.0754, "75.4 ms"), (0.5, "500 ms"), (15.0, "15.0 s"), (4321.0, "4,321 s")]:  # fmt: skip
            with self.subTest(text):
                self.assertEqual(text, closing.duration(seconds))

    def test_shares_are_of_own_time_with_the_largest_first(self):
        paths = {"train": (80 * MS, 2), "train/forward": (20 * MS, 2), "train/backward": (50 * MS, 2),
                 "fetch": (10 * MS, 2)}  # fmt: skip
        self.assertEqual(
            ["stepwell: 2 steps of 50.0 ms, 100 ms in all",
             "stepwell: train/backward 50.0 %, train/forward 20.0 %, train 10.0 %, fetch 10.0 %, unaccounted 10.0 %",
             "stepwell: stored"],
            closing.lines(2, 100 * MS, paths, "stored"))  # fmt: skip

    def test_of_many_scopes_the_largest_are_shown(self):
        paths = {f"scope{i}": (i * MS, 1) for i in range(1, 10)}
        shares = closing.lines(1, 45 * MS, paths, "stored")[1]
        self.assertIn("scope9 20.0 %, scope8", shares)
        self.assertTrue(shares.endswith(", 5 more"), shares)

    def test_less_than_nothing_is_nothing(self):
        self.assertIn("unaccounted 0.0 %", closing.lines(1, 9 * MS, {"all": (10 * MS, 1)}, "stored")[1])

    def test_what_overlaps_is_not_less_than_nothing(self):
        paths = {"all": (10 * MS, 1), "all/a": (8 * MS, 1), "all/b": (8 * MS, 1)}
        self.assertEqual("stepwell: unaccounted 50.0 %, all/a 40.0 %, all/b 40.0 %, all 0.0 %",
                         closing.lines(1, 20 * MS, paths, "stored")[1])  # fmt: skip

    def test_what_was_dropped_is_a_line(self):
        self.assertEqual(["stepwell: 1,234 dropped, for want of room", "stepwell: stored"],
                         closing.lines(1, MS, {}, "stored", 1234)[1:])  # fmt: skip

    def test_without_steps_or_scopes_it_is_shorter(self):
        self.assertEqual(["stepwell: no steps; stored"], closing.lines(0, 0, {}, "stored"))
        self.assertEqual(2, len(closing.lines(1, MS, {}, "stored")))

    def test_the_end_says_what_to_do(self):
        for name, arguments, text in [
            ("stored", ("run", True, ""), "stored: stepwell report run"),
            ("with its page", ("run", True, "", "http://a/#/trial/7/timings"),
             "stored: stepwell report run, or http://a/#/trial/7/timings"),
            ("of a job", (None, True, ""), "stored: stepwell trials"),
            ("offline", ("run", False, "offline: 'stepwell upload /tmp/a b' sends it"),
             "no master: stepwell serve, then stepwell upload /tmp/a b, then stepwell report run"),
            ("offline, and more", ("run", False, "'x' is refused; offline: 'stepwell upload /tmp/a' sends it"),
             "no master: stepwell serve, then stepwell upload /tmp/a, then stepwell report run"),
            ("refused", ("run", False, "no agent"), "not stored: no agent"),
            ("late", ("run", False, ""),
             "not stored yet, its agent goes on: stepwell report run, or stepwell agent status"),
            ("offline, and more behind", ("run", False, "offline: 'stepwell upload /tmp/a' sends it; no agent"),
             "no master: stepwell serve, then stepwell upload /tmp/a, then stepwell report run"),
            ("a name that a shell would split", ("a b", True, ""), "stored: stepwell report 'a b'"),
        ]:  # fmt: skip
            with self.subTest(name):
                self.assertEqual(text, closing.ending(*arguments))

    def test_without_an_agent_the_end_says_where_it_waits(self):
        self.assertEqual(
            "not stored: no agent: it cannot be started; it waits in /tmp/a b: stepwell upload '/tmp/a b', then stepwell report run",
            closing.ending("run", False, "no agent: it cannot be started", spool_dir="/tmp/a b"))  # fmt: skip
        waits = "stepwell upload"
        for name, message, more, text in [
            ("its master, which was named", "no agent: x", {"server": "gpu-master:7817"},
             f"it waits in /tmp/a: {waits} --server gpu-master:7817 /tmp/a, then stepwell report run"),
            ("one that a shell would take apart", "no agent: x", {"server": "[::1]:7817"},
             f"it waits in /tmp/a: {waits} --server '[::1]:7817' /tmp/a, then stepwell report run"),
            ("traces", "no agent: x", {"has_traces": True},
             f"it waits in /tmp/a: {waits} --named-files /tmp/a, then stepwell report run"),
            ("both", "no agent: x", {"server": "gpu-master:7817", "has_traces": True},
             f"it waits in /tmp/a: {waits} --named-files --server gpu-master:7817 /tmp/a, then stepwell report run"),
            ("another directory", "the spool directory /tmp/a is refused: others may enter it; records into /tmp/b c; no agent: x", {},
             f"it waits in /tmp/b c: {waits} '/tmp/b c', then stepwell report run"),
            ("another remark before it", "'y' is refused; no agent: x", {},
             f"it waits in /tmp/a: {waits} /tmp/a, then stepwell report run"),
        ]:  # fmt: skip
            with self.subTest(name):
                self.assertEqual(f"not stored: {message}; {text}", closing.ending("run", False, message, spool_dir="/tmp/a", **more))

    def test_where_its_directory_is_gone_nothing_waits(self):
        message = "no agent is started: /tmp/a/w1 is gone"
        self.assertEqual(f"not stored: {message}", closing.ending("run", False, message, spool_dir="/tmp/a"))

    def test_the_master_that_somebody_named_is_known(self):
        for given, variable, named in [(None, "", ""), ("a:1", "", "a:1"), (None, "b:2", "b:2"), ("a:1", "b:2", "a:1"),
                                       ("offline", "b:2", ""), (None, "offline", "")]:  # fmt: skip
            with self.subTest(f"{given} {variable}"), unittest.mock.patch.dict(os.environ, {"STEPWELL_SERVER": variable}):
                self.assertEqual(named, identity.named_server(given))

    def test_the_end_says_what_to_do_where_a_master_that_was_named_does_not_answer(self):
        for name, more, text in [
            ("of this machine", {"absent": "127.0.0.1:7817"},
             "no master at 127.0.0.1:7817 (STEPWELL_SERVER names another): "
             "stepwell serve, and its agent sends it (later stepwell upload --server "
             "127.0.0.1:7817 '/tmp/a b'), then stepwell report run"),
            ("at another port", {"absent": "localhost:1"},
             "no master at localhost:1 (STEPWELL_SERVER names another): "
             "stepwell serve --grpc-listen localhost:1, and its agent sends it (later stepwell "
             "upload --server localhost:1 '/tmp/a b'), then stepwell report run"),
            ("with traces", {"absent": "127.0.0.1:7817", "has_traces": True},
             "no master at 127.0.0.1:7817 (STEPWELL_SERVER names another): "
             "stepwell serve, and its agent sends it (later stepwell upload --named-files --server "
             "127.0.0.1:7817 '/tmp/a b'), then stepwell report run"),
            ("of another machine", {"absent": "10.0.0.1:7817"},
             "no master at 10.0.0.1:7817 (STEPWELL_SERVER names another): "
             "its agent sends it to one that comes (later stepwell upload --server "
             "10.0.0.1:7817 '/tmp/a b'), then stepwell report run"),
            ("of windows that nobody knows of", {"unknown_count": 1200},
             "not known to be stored, 1,200 windows before the last: stepwell agent status, then stepwell report run"),
            ("one that answers", {}, "not stored yet, its agent goes on: stepwell report run, or stepwell agent status"),
        ]:  # fmt: skip
            with self.subTest(name):
                self.assertEqual(text, closing.ending("run", False, "", spool_dir="/tmp/a b", **more))

    def test_a_trial_is_called_after_its_program_without_its_ending(self):
        for program, notebook, named in [
            ("train.py", "", "train"), ("dir/train.v2.py", "", "train.v2"), ("my.pyro", "", "my.pyro"),
            ("train.pytorch", "", "train.pytorch"), ("run.py.py", "", "run.py"), ("x.ipynb", "", "x"),
            ("ipykernel_launcher.py", "train.pytorch.ipynb", "train.pytorch"),
            ("ipykernel_launcher.py", "dir/my.py.ipynb", "my.py"), ("ipykernel_launcher.py", "my.py", "my"),
            ("ipykernel_launcher.py", "a.ipynb.copy", "a.ipynb.copy"), ("ipykernel_launcher.py", "", "notebook"),
            ("ipykernel_launcher.py", ".ipynb", "notebook"), (".py", "", "python"), ("", "", "python"),
        ]:  # fmt: skip
            with self.subTest(f"{program} {notebook}"), unittest.mock.patch.object(sys, "argv", [program]), \
                    unittest.mock.patch.dict(os.environ, {"JPY_SESSION_NAME": notebook}, clear=True):  # fmt: skip
                self.assertRegex(identity.trial_name(None), rf"^{re.escape(named)}-\d{{8}}-\d{{6}}-[0-9a-f]{{4}}$")

    def test_traces_are_told_of_where_the_recorder_takes_them(self):
        for environment, is_so in [
            ({}, False), ({"STEPWELL_TRACES": ""}, False), ({"STEPWELL_TRACES": "relative"}, False),
            ({"STEPWELL_TRACES": "/traces"}, True), ({"STEPWELL_TRACES": "/traces", "STEPWELL_TRACES_UPLOAD": "1"}, True),
            ({"STEPWELL_TRACES": "/traces", "STEPWELL_TRACES_UPLOAD": "0"}, False),
        ]:  # fmt: skip
            with self.subTest(environment), unittest.mock.patch.dict(os.environ, environment, clear=True):
                self.assertEqual(is_so, identity.uploads_traces())


if __name__ == "__main__":
    unittest.main()
