"""Our scopes in profilers of torch's that others begin: with a torch that is made up, so that its profilers may fail, too."""

import unittest

from product import ProductTest

# What torch.autograd.profiler has, of little. seen() says what a profiler would be told of a scope.
_TORCH = """
import os, sys, threading, types
import stepwell
from stepwell import _torch_watch
seen_names = []
class Region:
    def __init__(self, name): self.name = name
    def __enter__(self): seen_names.append(self.name)
    def __exit__(self, *exception): pass
def begin(fails=False):
    if fails: raise RuntimeError("begin")
def end(fails=False):
    if fails: raise RuntimeError("end")
    return "events"
torch = types.ModuleType("torch.autograd.profiler")
torch.record_function = Region
torch._prepare_profiler = torch._enable_profiler = begin
torch._disable_profiler = end
sys.modules["torch.autograd.profiler"] = torch
run = stepwell.init(hooks=False)
def seen(name):
    seen_names.clear()
    with run.scope(name): pass
    return " ".join(seen_names) or "-"
def tried(do, *arguments):
    try: do(*arguments)
    except RuntimeError as error: print("raised", error)
def in_thread(do):
    thread = threading.Thread(target=do)
    thread.start(); thread.join()
"""


class TorchWatchTest(ProductTest):
    def said(self, program: str) -> "list[str]":
        out, err = self.run_trial(_TORCH + program + "\nrun.close()\n", options=("-W", "error"))
        self.assertNotIn("Warning", err)
        return out.splitlines()

    def test_one_that_cannot_begin_or_end_is_over(self):
        said = self.said("""
_torch_watch.put()
tried(torch._prepare_profiler, True)
tried(torch._enable_profiler, True)
print(seen("a"), _torch_watch.is_other_active())
torch._prepare_profiler(); print(seen("b"), _torch_watch.is_other_active())
tried(torch._enable_profiler, True); print(seen("c"), _torch_watch.is_other_active())
torch._prepare_profiler(); torch._enable_profiler(); print(seen("d"))
tried(torch._disable_profiler, True); print(seen("e"), _torch_watch.is_other_active())
torch._enable_profiler(); print(torch._disable_profiler(), seen("f"))
""")
        self.assertEqual(["raised begin", "raised begin", "- False", "- True", "raised begin", "- False", "d", "raised end",
                          "- False", "events -"], said)  # fmt: skip

    def test_scopes_are_there_until_the_last_of_two_threads_ends(self):
        said = self.said("""
_torch_watch.put()
begun, may_end = threading.Event(), threading.Event()
def other():
    torch._enable_profiler(); begun.set(); may_end.wait(); torch._disable_profiler()
thread = threading.Thread(target=other); thread.start(); begun.wait()
torch._enable_profiler(); print(seen("a"))
torch._disable_profiler(); print(seen("b"))
tried(torch._disable_profiler, True); print(seen("c"))  # torch says that this thread has none
may_end.set(); thread.join(); print(seen("d"))
torch._disable_profiler(); torch._disable_profiler(); torch._enable_profiler(); print(seen("e"))
in_thread(torch._disable_profiler); print(seen("f"))    # as where torch's is of all threads
""")
        self.assertEqual(["a", "b", "raised end", "c", "-", "e", "-"], said)

    def test_who_ends_with_a_thread_or_was_of_a_parent_wants_none(self):
        said = self.said("""
_torch_watch.put()
def other(): torch._enable_profiler(); print(seen("a"))
in_thread(other); print(seen("b"), _torch_watch.is_other_active())
torch._enable_profiler()
sys.stdout.flush()
if os.fork() == 0:
    print(_torch_watch.is_other_active(), flush=True)
    torch._enable_profiler(); print(_torch_watch.is_other_active(), flush=True)
    torch._disable_profiler(); print(_torch_watch.is_other_active(), flush=True)
    os._exit(0)
os.wait(); print(seen("c"))
torch._disable_profiler(); print(seen("d"))
""")
        self.assertEqual(["a", "- False", "False", "True", "False", "c", "-"], said)

    def test_nothing_is_told_once_it_is_not_wanted_whoever_stands_before_it(self):
        said = self.said("""
def before(watched): return lambda *arguments: watched(*arguments)
_torch_watch.put()
torch._enable_profiler()
torch._enable_profiler = before(torch._enable_profiler)
_torch_watch.remove(); print(seen("a"), torch._disable_profiler is end)
torch._enable_profiler(); print(seen("b"), _torch_watch.is_other_active())
torch._disable_profiler()
_torch_watch.put(); torch._enable_profiler(); print(seen("c"))
torch._disable_profiler(); print(seen("d"))
_torch_watch.remove(); torch._enable_profiler = begin   # the other one is out, and ours with it
_torch_watch.put(); torch._enable_profiler(); print(seen("e"))
""")
        self.assertEqual(["- True", "- False", "c", "-", "e"], said)

    def test_a_torch_that_lacks_one_of_them_has_the_others_watched_but_no_begin_without_an_end(self):
        said = self.said("""
del torch._prepare_profiler
print(_torch_watch.put()); torch._enable_profiler(); print(seen("a")); torch._disable_profiler(); print(seen("b"))
_torch_watch.remove()
torch._prepare_profiler = begin
del torch._enable_profiler
print(_torch_watch.put()); torch._prepare_profiler(); print(_torch_watch.is_other_active())
_torch_watch.remove()
torch._enable_profiler = begin
del torch._disable_profiler
print(_torch_watch.put()); torch._enable_profiler(); print(seen("c"), torch._enable_profiler is begin)
""")
        self.assertEqual(["True", "a", "-", "False", "True", "False", "- True"], said)

    def test_what_is_ours_is_so_in_its_thread_alone(self):
        said = self.said("""
_torch_watch.put()
with _torch_watch.Ours():
    torch._enable_profiler(); print(seen("a"))
    def other(): torch._enable_profiler(); print(seen("b")); torch._disable_profiler(); print(seen("c"))
    in_thread(other)
    torch._disable_profiler()
torch._enable_profiler(); print(seen("d"))
""")
        self.assertEqual(["-", "b", "-", "d"], said)

    def test_room_alone_wants_no_scopes_and_each_is_watched_as_long_as_it_is_wanted(self):
        said = self.said("""
_torch_watch.put(_torch_watch.ROOM); torch._enable_profiler(); print(seen("a"), _torch_watch.is_other_active())
_torch_watch.put(); print(seen("b"))
_torch_watch.remove(_torch_watch.ROOM); print(seen("c"), _torch_watch.is_other_active())
_torch_watch.put(_torch_watch.ROOM); _torch_watch.remove(); print(seen("d"), _torch_watch.is_other_active())
_torch_watch.remove(_torch_watch.ROOM); print(_torch_watch.is_other_active(), torch._enable_profiler is begin)
""")
        self.assertEqual(["- True", "b", "c True", "- True", "False True"], said)


if __name__ == "__main__":
    unittest.main()
