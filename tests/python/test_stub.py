"""The stub of the extension, `_core.pyi`, beside the extension that was built: what mypy believes is what is there."""

import ast
import json
import pathlib
import unittest

import product
from product import ProductTest

# By these an object takes part in a language's words; of others, as __repr__, each class has one.
_PROTOCOLS = ("__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__", "__len__", "__bool__", "__call__",
              "__getitem__", "__await__", "__wrapped__")  # fmt: skip

# Name -> whether it is called; of a class the same of what it has.
_SEEN = f"""
import json
from stepwell import _core
def is_told(name): return not name.startswith("_") or name in {_PROTOCOLS!r} or name == "_apart"
def names_of(kind):
    own = set().union(*(vars(base) for base in kind.__mro__ if base is not object))
    return {{name: callable(getattr(kind, name)) for name in own if is_told(name)}}
names = {{name: getattr(_core, name) for name in dir(_core) if not name.startswith("_")}}
print(json.dumps({{name: names_of(it) if isinstance(it, type) else callable(it) for name, it in names.items()}}))
"""


def named_in(body: "list[ast.stmt]") -> "dict[str, object]":
    """As _SEEN tells it, of the stub."""
    found: "dict[str, object]" = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {name: it for name, it in named_in(node.body).items() if name != "__init__"}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = not any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = False
    return found


class StubTest(ProductTest):
    def test_it_names_what_the_extension_has_and_what_of_it_is_called(self):
        (site,) = pathlib.Path(product.python()).parents[1].glob("lib/python*/site-packages")
        stub = named_in(ast.parse((site / "stepwell" / "_core.pyi").read_text("utf-8")).body)
        out, _ = self.run_trial(_SEEN)
        self.maxDiff = None
        self.assertEqual(stub, json.loads(out))
        self.assertGreater(len(stub), 40)


if __name__ == "__main__":
    unittest.main()
