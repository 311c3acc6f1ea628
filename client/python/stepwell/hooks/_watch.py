"""Tells of the first import of a module, right after it. Leans on nothing: `stepwell run` puts a copy of this file
before each Python program, of whatever version of 3.4 and later.
"""

import sys


def on_import(name, call, failed):
    """`call` is not to raise; if it does, failed(error) is called, which says so. Where it is imported already: never."""
    sys.meta_path.insert(0, _Watch(name, call, failed))


class _Watch:
    """There until an import has succeeded: many ask for the spec first, and import later or never."""

    def __init__(self, name, call, failed):
        self._name = name
        self._call = call
        self._failed = failed
        self._finding = set()  # the threads that ask the other finders

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        import _thread
        import importlib.util

        here = _thread.get_ident()
        if here in self._finding:
            return None
        self._finding.add(here)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(here)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)
        return spec

    def imported(self):
        """Right after it. Loaded under another name it is not the program's."""
        if self not in sys.meta_path or self._name not in sys.modules:
            return
        sys.meta_path.remove(self)
        try:
            self._call()
        except Exception as error:
            self._failed(error)


class _Loader:
    """The module's own loader, and the call after it. The module never sees it but while it is imported."""

    def __init__(self, loader, watch):
        self._loader = loader
        self._watch = watch

    def __getattr__(self, name):
        if name == "_loader":  # asked for before it is there, by copy
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._watch.imported()
