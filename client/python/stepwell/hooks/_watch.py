"""Tells of the first import of a module, right after it. Leans on nothing: `stepwell run` puts a copy of this file
before each Python program, of whatever version.
"""

import sys


def on_import(name, call):
    """`call` is not to raise. Where it is imported already: never."""
    sys.meta_path.insert(0, _Watch(name, call))


class _Watch:
    def __init__(self, name, call):
        self._name = name
        self._call = call

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self._call)
        return spec


class _Loader:
    """The module's own loader, and the call after it. The module never sees it but while it is imported."""

    def __init__(self, loader, call):
        self._loader = loader
        self._call = call

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._call()
