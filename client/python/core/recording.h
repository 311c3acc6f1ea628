// Recording: the calls of a Run that a training step makes. They raise nothing of ours.
#pragma once

#include <Python.h>

extern PyTypeObject Recording_Type;

// A class's decorator: the calls that the type inherits from Recording become its own.
PyObject* Recording_OwnCalls(PyObject* module, PyObject* type);
