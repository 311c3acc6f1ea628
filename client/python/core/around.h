// Around: what is timed otherwise, too, around a scope. Its child in Python has `_scope`, `_begin()` and `_end()`. In C, so
// that a Ctrl-C in one of those leaves no scope open: lines of an __exit__ in Python would be ended by it.
#pragma once

#include <Python.h>

extern PyTypeObject Around_Type;
