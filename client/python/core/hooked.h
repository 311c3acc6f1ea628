// Hooked: a function of a framework's, and a function of ours that is called in its place, with it as the first
// argument. Within itself, on any thread but the main one, and while nothing is recorded, it is the
// framework's alone: the inner modules of a model cost a comparison. It is equal to what it stands for,
// with its name, its documentation and its hash. Needs the GIL.
#pragma once

#include <Python.h>

extern PyTypeObject Hooked_Type;

// await_hooks(is_waiting): whether hooks are called though nothing is recorded, to open a run.
PyObject* Hooked_Await(PyObject* module, PyObject* is_waiting);
