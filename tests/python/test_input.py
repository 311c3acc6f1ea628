"""Wrong options are refused where they are given, by name; a training step never sees an error of ours."""

import socket
import unittest

import product
from product import ProductTest


class InputTest(ProductTest):
    def test_a_wrong_option_is_named(self):
        cases = [
            ("init(trial='')", "ValueError", "trial"), ("init(trial=7)", "ValueError", "trial"),
            ("init(trial='id:x')", "ValueError", "trial"), ("init(trial='a' * 257)", "ValueError", "trial"),
            ("init(trial='a\\n')", "ValueError", "trial"), ("init(trial='\\ud800')", "ValueError", "trial"),
            ("init(project=b'x')", "TypeError", "project"),
            ("init(interval=0)", "ValueError", "interval"), ("init(interval='1s')", "ValueError", "interval"),
            ("init(interval=True)", "TypeError", "interval"), ("init(interval=float('nan'))", "ValueError", "interval"),
            ("init(groups=[])", "TypeError", "groups"), ("init(groups=7)", "ValueError", "groups"),
            ("init(groups=['a,b'])", "TypeError", "groups"), ("init(without='')", "ValueError", "without"),
            ("init(labels=['a'])", "TypeError", "labels"), ("init(labels={'rank': '1'})", "ValueError", "labels"),
            ("init(labels={'a': 1})", "ValueError", "labels['a']"),
            ("init(labels={str(i): '' for i in range(31)})", "ValueError", "labels"),
            ("init(server='here')", "ValueError", "server"), ("init(server='h:0')", "ValueError", "server"),
            ("init(server=':7')", "ValueError", "server"), ("init(spool_dir=7)", "ValueError", "spool_dir"),
            ("init(rank=-1)", "ValueError", "rank"), ("init(rank='0')", "ValueError", "rank"),
            ("init(world_size=0)", "ValueError", "world_size"), ("init(start_agent=1)", "TypeError", "start_agent"),
            ("init(agent='')", "ValueError", "agent"), ("init('name')", "TypeError", "positional"),
            ("init(trail='x')", "TypeError", "trail"),
            ("run.series('')", "ValueError", "name"), ("run.series(7)", "ValueError", "name"),
            ("run.series('x' * 201)", "ValueError", "name"), ("run.series('語' * 67)", "ValueError", "name"),
            ("run.series('x', unit='語' * 67)", "ValueError", "unit"), ("run.series('x', group='')", "ValueError", "group"),
            ("run.series('x', unit=None)", "TypeError", "unit"), ("run.series('x', kind='sum')", "ValueError", "kind"),
            ("run.series('x', labels={'worker': '1'})", "ValueError", "labels"),
            ("run.steps(7)", "TypeError", "loader"), ("run.steps([], start=-1)", "ValueError", "start"),
            ("run.steps([], start='x')", "ValueError", "start"), ("run.scope('x')(7)", "TypeError", "decorates"),
            ("run.on(interval=-1)", "ValueError", "interval"), ("run.on(groups='')", "ValueError", "groups"),
            ("run.flush(-1)", "ValueError", "timeout"), ("run.close('x')", "ValueError", "timeout"),
        ]  # fmt: skip
        calls = [call for call, _, _ in cases]
        out, _ = self.run_trial(f"""
            import stepwell
            from stepwell import init
            run = stepwell.Run({{}})
            for call in {calls!r}:
                try: eval(call); print("passed")
                except Exception as error: print(type(error).__name__, ascii(str(error)))
            """)
        said = out.splitlines()
        self.assertEqual(len(cases), len(said))
        for (call, error, field), line in zip(cases, said):
            with self.subTest(call):
                self.assertTrue(line.startswith(error + " ") and field in line, line)

    HOT = """
        import stepwell
        run = stepwell.init()
        class Bad(str):
            def __hash__(self): raise OSError
            def __repr__(self): raise OSError
            def __eq__(self, other): raise OSError
        class Raises:
            def __float__(self): raise RuntimeError("device lost")
            def __repr__(self): raise OSError
        for _ in range(3):
            for name in ("", "a/b", "step", "x.count", "a" * 201, "語" * 67, "a\\0b", "\\ud800", None, 7, b"x", [], Raises()):
                with run.scope(name) as scope: pass
                with run.device_scope(name) as scope: pass
                run.record(name, 1)
            with run.scope(Bad("subclass")): run.record(Bad("subclass"), 1)
            for value in (None, "1", [], Raises(), 1j, 10 ** 400): run.record("value", value)
            for call in (lambda: run.scope(), lambda: run.scope("a", "b"), lambda: run.scope(nome="a"),
                         lambda: run.device_scope(), lambda: run.device_scope("a", "b"), lambda: run.device_scope(nome="a"),
                         lambda: run.record("a"), lambda: run.record("a", 1, 2), lambda: run.record(),
                         lambda: run.record("a", value=1, name="a"), lambda: run.record("a", valeu=1)):
                call()
            with run.scope(): pass
            with run.device_scope(): pass
        run.record("value", 1)
        """

    # Of series the recorder refuses less: these names are good ones there.
    STORED = {"a/b": 3, "step": 3, "x.count": 3, "subclass": 6, "value": 1}

    def test_a_hot_call_warns_once_of_each_kind_and_raises_nothing(self):
        _, err = self.run_trial(self.HOT)
        self.assertEqual(4, err.count("RuntimeWarning"), err)
        self.assertEqual(self.STORED, self.counts())

    def test_where_warnings_are_errors_a_hot_call_raises_nothing_either(self):
        self.run_trial(self.HOT, options=("-W", "error"))
        self.assertEqual(self.STORED, self.counts())

    def test_an_interrupt_within_a_value_passes(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            class Value:
                def __float__(self): raise KeyboardInterrupt("theirs")
            for call in (lambda: run.record("value", Value()), lambda: run.series("value").record(Value())):
                try: call()
                except KeyboardInterrupt as error: print(error)
            """)
        self.assertEqual("theirs\ntheirs\n", out)

    def test_bombs_of_names_are_bounded(self):
        out, err = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for i in range(20000):
                with run.scope(f"scope {i}"): pass
                run.record(f"series {i}", i)
            more = run.series("one more", unit="1")
            more.record(1)
            run.record(more, 2)
            print(run.dropped_count > 0)
            """, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("True\n", out)
        self.assertEqual(2, err.count("RuntimeWarning"), err)

    def test_one_series_more_than_there_are_ends_no_training(self):
        for options in ((), ("-W", "error")):
            with self.subTest(options):
                out, _ = self.run_trial("""
                    import pickle, stepwell
                    run = stepwell.init(start_agent=False, spool_dir="/dev/null/none")
                    for i in range(16384): run.series(str(i), unit="1")
                    more = pickle.loads(pickle.dumps(run.series("more")))
                    more.record(1); run.record("0", 1)
                    print(more)
                    """, options=options, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
                self.assertEqual("<stepwell.Series 'more'>\n", out)

    def test_bombs_of_labels_are_bounded(self):
        out, err = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for i in range(17000): run.series("bomb", labels={"sample": str(i)}).record(i)
            for labels in ({str(i): "" for i in range(33)}, {"a": "b" * 1025}, {"a" * 201: ""}, {"": "b"}):
                try: run.series("other", labels=labels)
                except ValueError as error: print("refused", end=" ")
            with run.scope("after"): pass
            """, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual("refused refused refused refused ", out)
        self.assertEqual(1, err.count("at most 16384 series"), err)

    def test_what_the_recorder_remarks_is_said(self):
        _, err = self.run_trial("import stepwell; stepwell.init(groups=['gpus'])",
                                variables={"STEPWELL_SYSTEM_METRICS": "unset"})  # fmt: skip
        self.assertIn("gpus", err)

    def test_a_value_whose_own_code_defines_its_series_anew_is_recorded_as_what_it_was(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            class Value:
                def __init__(self, unit, is_number): self.unit, self.is_number = unit, is_number
                def __float__(self):
                    run.series("loss", unit=self.unit)
                    others = [run.series(f"other {self.unit} {i}", unit="1") for i in range(8)]
                    if self.is_number: return 1.0
                    raise ValueError
            for unit in "abcd": run.record("loss", Value(unit, True))
            run.record("loss", Value("e", False))
            print("on")
            """, variables={"PYTHONMALLOC": "debug"})  # fmt: skip
        self.assertEqual("on\n", out)
        self.assertEqual({"loss": 4}, self.counts())

    def test_a_value_is_not_asked_for_where_nothing_is_recorded(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            class Value:
                def __float__(self):
                    print("asked")
                    return 1.0
            run.record("", Value())
            kept = run.series("kept")
            run.off()
            run.record("value", Value())
            kept.record(Value())
            """)
        self.assertEqual("", out)

    def test_a_token_is_in_no_message(self):
        out, _ = self.run_trial("""
            import stepwell
            for token in ("secret\\n", "", "secret" * 200, b"secret", ["secret"], "secret\\ud800"):
                try: stepwell.init(token=token)
                except (TypeError, ValueError) as error: print(error)
            """)
        self.assertEqual(6, out.count("token"))
        self.assertNotIn("secret", out)

    def test_the_environment_may_hold_bytes_that_are_no_text(self):
        for name, variables in [("name", {"STEPWELL_TRIAL": "\udcff", "STEPWELL_ATTEMPT_KEY": "\udcff"}),
                                ("path", {"STEPWELL_SPOOL_DIR": str(product.folder() / "sp\udcff")})]:  # fmt: skip
            with self.subTest(name):
                out, _ = self.run_trial("""
                    import os, stepwell
                    spool = os.environ["STEPWELL_SPOOL_DIR"]
                    run = stepwell.init(spool_dir=spool, agent=os.fsdecode(b"/no/such/\\xff"))
                    run.record("value", 1)
                    print(run.state, os.path.isdir(spool))
                    """, variables={**variables, "STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
                self.assertEqual("recording True\n", out)

    def test_a_decorated_class_or_static_method_is_refused_where_it_is_decorated(self):
        out, _ = self.run_trial("""
            import stepwell
            run = stepwell.init()
            for decorated in (staticmethod(len), classmethod(len), stepwell.Run):
                try: run.scope("decorator")(decorated)
                except TypeError as error: print(error)
            """)
        named = [line.partition(" decorates a ")[2].partition(";")[0] for line in out.splitlines()]
        self.assertEqual(["staticmethod", "classmethod", "class"], named)

    def test_an_asynchronous_generator_is_refused_with_what_does(self):
        out, err = self.run_trial("""
            import asyncio, stepwell
            run = stepwell.init()
            scope = run.scope("items")
            async def items(count):
                async with scope:
                    for item in range(count):
                        await asyncio.sleep(0)
                        yield item
            try: scope(items)
            except TypeError as error: print(error)
            async def read(count): return [item async for item in items(count)]
            async def read_all(): return await asyncio.gather(*map(read, (1, 3, 2)))
            with run.scope("around"): print(asyncio.run(read_all()))
            """)
        self.assertEqual("stepwell: scope 'items' decorates an asynchronous generator; allowed: a function, a coroutine, a generator; "
                         "in this one `async with` of the scope\n[[0], [0, 1, 2], [0, 1]]\n", out, err)  # fmt: skip
        self.assertEqual({"items": 3, "around": 1}, self.counts(), "each by itself, whichever ends first")


class ServerTest(ProductTest):
    def test_agent_rule_13_the_argument_goes_before_the_environment_and_that_before_this_machine(self):
        with socket.create_server(("127.0.0.1", 0)) as answers, socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))  # and does not listen
            places = {True: answers.getsockname(), False: silent.getsockname()}
            rows = (
                # argument, STEPWELL_SERVER, a master on this machine -> where it is sent; None = as the environment says,
                # where it says nothing this machine's
                ("127.0.0.1:1", product.server(), True, "127.0.0.1:1"), ("offline", product.server(), True, "offline"),
                (None, product.server(), False, None), (None, "offline", True, None),
                (None, "unset", True, None), (None, "unset", False, "offline"),
            )  # fmt: skip
            for given, variable, is_there, wanted in rows:
                with self.subTest(given=given, variable=variable, is_there=is_there):
                    out, _ = self.run_trial(f"""
                        from stepwell import _identity, _run
                        _identity._LOOPBACK = {places[is_there]!r}
                        _identity._is_served = lambda root: False
                        options = _run._resolved({{"trial": "x", "attempt_key": None, "agent": None, "rank": None,
                            "world_size": None, "server": {given!r}, "spool_dir": None, "start_agent": True}})
                        print(options["server"])
                        """, variables={"STEPWELL_SERVER": variable, "STEPWELL_SYSTEM_ROOT": "/no/such/root"})  # fmt: skip
                    self.assertEqual(f"{wanted}\n", out)


if __name__ == "__main__":
    unittest.main()
