"""A notebook: its cells in a kernel of IPython's, which lives from one to the next."""

import os
import pathlib
import tempfile
import unittest

import product
from frameworks import package_path
from product import ProductTest

_NOTEBOOK = os.environ.get("STEPWELL_NOTEBOOK_PYTHON", "")  # that has notebook.txt; part `frameworks` makes it

# Runs the cells as Jupyter does, and says what each printed; one that takes longer than `timeout` seconds is interrupted.
_RUN = """
import json, nbclient, nbformat
cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
book = nbformat.v4.new_notebook(cells=cells)
client = nbclient.NotebookClient(book, timeout=TIMEOUT, kernel_name="python3", allow_errors=True, interrupt_on_timeout=True,
                                 store_widget_state=False)
client.execute()
def said(cell):
    return "".join(one.get("text", "") or one.get("ename", "") for one in cell.outputs if one.get("name") != "stderr")
print(json.dumps([said(cell) for cell in book.cells]))
print(json.dumps("".join(one.text for cell in book.cells for one in cell.outputs if one.get("name") == "stderr")))
"""


@unittest.skipUnless(_NOTEBOOK, "STEPWELL_NOTEBOOK_PYTHON names no interpreter; tests/run.sh --long --only frameworks makes one")
class KernelTest(ProductTest):
    def run_cells(self, *cells: str, timeout_s: int = 60, **variables: str) -> "tuple[list[str], str]":
        import json

        home = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(home.cleanup)
        source = _RUN.replace("CELLS", repr(list(cells))).replace("TIMEOUT", str(timeout_s))
        out, _ = self.run_trial(source, interpreter=_NOTEBOOK, variables={
            "PYTHONPATH": package_path(), "HOME": home.name, "IPYTHONDIR": home.name, "JUPYTER_RUNTIME_DIR": home.name,
            "PYDEVD_DISABLE_FILE_VALIDATION": "1", **variables})  # fmt: skip
        printed, err = (json.loads(line) for line in out.splitlines()[-2:])
        return printed, err

    def test_a_kernel_switches_in_its_cells_and_an_interrupted_one_goes_on(self):
        printed, err = self.run_cells(
            "import stepwell, time, asyncio\nrun = stepwell.init()\nprint(run.state)",
            "with run.scope('cell'): pass",
            "run.off()\nprint(run.state)\nwith run.scope('unseen'): pass",
            "run.on()\nfor i, b in run.steps('ab'): run.record('loss', i)",
            "with run.scope('interrupted'): time.sleep(3600)",
            "async def work():\n    async with run.scope('awaited'): await asyncio.sleep(0)\nawait asyncio.gather(work(), work())",
            "again = stepwell.init()\nprint(again is run)",
            "1 / 0",
            "with run.scope('cell'): pass",
            "print(run.flush(60), run.close(60))",
            timeout_s=15,
        )
        self.assertEqual(["recording\n", "", "off\n", "", "KeyboardInterrupt", "", "True\n", "ZeroDivisionError", "", "True True\n"],
                         [text if "[" not in text else "" for text in printed], err)  # fmt: skip
        self.assertIn("stepwell: 2 steps of ", err)
        self.await_counts({"cell": 2, "step": 2, "dataloader_next": 3, "loss": 2, "interrupted": 1, "awaited": 2})

    def test_a_kernel_that_is_shut_down_has_all_stored_and_its_trial_is_called_after_the_notebook(self):
        trial = "a_kernel_that_is_shut_down-"  # names have at most 64 characters before the time
        printed, err = self.run_cells(
            "import stepwell\nrun = stepwell.init()\nprint(run.trial)",
            "for i, b in run.steps('abc'): run.record('loss', i)",
            STEPWELL_TRIAL="unset", JPY_SESSION_NAME=f"mine/{trial[:-1]}.ipynb")  # fmt: skip
        self.assertTrue(printed[0].startswith(trial), printed)
        self.await_counts({"step": 3, "dataloader_next": 4, "loss": 3}, printed[0].strip())


class NameTest(ProductTest):
    def test_a_trial_of_a_kernel_is_called_after_its_notebook(self):
        """Not after the program that each of them is."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=product.folder()))
        launcher = folder / "ipykernel_launcher.py"
        launcher.write_text("import stepwell\nwith stepwell.init(server='offline') as run: print(run.trial)\n")
        for session, named in (("mine/My training.ipynb", "My_training-2"), ("", "notebook-2"), ("unset", "notebook-2"),
                               ("dir/.hidden", "hidden-2"), ("6f1a-uuid", "6f1a-uuid-2"), ("/", "notebook-2")):  # fmt: skip
            with self.subTest(session):
                variables = {"STEPWELL_TRIAL": "unset", "JPY_SESSION_NAME": session, "STEPWELL_EXIT_WAIT": "0"}
                process = self.start("", options=(str(launcher),), variables=variables)
                out, err = process.communicate(timeout=product.WAIT_S)
                self.assertTrue(out.startswith(named), out + err)


if __name__ == "__main__":
    unittest.main()
