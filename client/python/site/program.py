#!python
"""The command `stepwell` of an environment with the package: the program that lies in it."""

import importlib.util
import os
import sys

# Not imported: it would load the extension.
spec = importlib.util.find_spec("stepwell")
folders = [] if spec is None else spec.submodule_search_locations or []
programs = [os.path.join(folder, "_program", "bin", "stepwell") for folder in folders]
found = next((program for program in programs if os.access(program, os.X_OK)), "")
if not found:
    sys.exit("stepwell: the package stepwell of %s has no program: install it again" % sys.executable)
os.execv(found, ["stepwell", *sys.argv[1:]])
