"""What `stepwell run` puts before a Python program: it waits until that imports torch, and then hooks it. Another
sitecustomize, which this one stands before, is run as if it were alone.
"""

import os
import sys


def _begin():
    try:
        from stepwell import hooks

        begin = hooks.begin_with_torch
    except Exception as error:
        sys.stderr.write(
            "stepwell: nothing of this training is seen: %s has no package stepwell of this release (%s); "
            "pip install ./client/python\n" % (sys.executable, error)
        )
        return
    begin()


def _set(name):
    return os.environ.get(name, "0") not in ("", "0")


def _absolute(entry):
    """As it is where the working directory is gone."""
    try:
        return os.path.abspath(entry or os.curdir)
    except OSError:
        return entry


def _chain(here):
    """Runs the next one on the path, under its name."""
    import importlib.machinery
    import importlib.util

    path = [entry for entry in sys.path if _absolute(entry) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_here = os.path.dirname(_absolute(__file__))
if not _set("STEPWELL_DISABLED") and os.environ.get("STEPWELL_HOOKS", "1") not in ("", "0"):
    try:
        import stepwell_watch

        stepwell_watch.on_import("torch", _begin)
    except Exception as _error:
        sys.stderr.write("stepwell: nothing of this program is seen: %s\n" % _error)
# The program finds its modules where it would without us. Its children have the variable still.
sys.path[:] = [_entry for _entry in sys.path if _absolute(_entry) != _here]
_chain(_here)
