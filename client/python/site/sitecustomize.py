"""What `stepwell run` puts before a Python program: it waits until that imports torch, and then hooks it. Another
sitecustomize, which this one stands before, is run as if it were alone. Programs of older Pythons, 2.7 among them, read
this, too: they are left alone.
"""

import os
import sys


def _say(text, error):
    """Neither an error that cannot say what it is, nor a stderr that takes nothing, ends the program, or changes its
    exit code, as what lies in a buffer at its end would."""
    try:
        described = "%s: %s" % (type(error).__name__, error)
    except Exception:
        described = type(error).__name__
    line = "stepwell: " + text % described + "\n"
    try:
        if sys.stderr is sys.__stderr__:
            os.write(sys.stderr.fileno(), line.encode("utf-8", "backslashreplace"))
        else:
            sys.stderr.write(line)
    except Exception:  # there is none, it is closed, or full
        pass


def _begin():
    try:
        from stepwell import hooks

        begin = hooks.begin_with_torch
    except Exception as error:
        _say(
            "nothing of this training is seen: " + str(sys.executable).replace("%", "%%")
            + " has no package stepwell of this release (%s); pip install ./client/python", error
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
    path = [entry for entry in sys.path if _absolute(entry) != here]
    if sys.version_info < (3, 4):
        _chain_by_imp(path)
        return
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _chain_by_imp(path):
    """Of a Python that knows no specs."""
    import imp

    try:
        file, name, kind = imp.find_module("sitecustomize", path)
    except ImportError:
        return
    try:
        imp.load_module("sitecustomize", file, name, kind)
    finally:
        if file:
            file.close()


_here = os.path.dirname(_absolute(__file__))
if sys.version_info >= (3, 4) and not _set("STEPWELL_DISABLED") and os.environ.get("STEPWELL_HOOKS", "1") not in ("", "0"):
    # An older one asks finders by find_module, of which ours has none: nothing would be found any more.
    try:
        import stepwell_watch

        stepwell_watch.on_import("torch", _begin, lambda error: _say("nothing of torch is hooked: %s", error))
    except Exception as _error:
        _say("nothing of this program is seen: %s", _error)
# The program finds its modules where it would without us. Its children have the variable still.
sys.path[:] = [_entry for _entry in sys.path if _absolute(_entry) != _here]
_chain(_here)
