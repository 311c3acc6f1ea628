// Mirror: another profiler that is told, while it records, where scopes are entered and left; those of coroutines are
// left out. Process-wide. Needs the GIL.
#pragma once

#include <Python.h>

#include "client/python/core/hot.h"

// NULL: none records.
extern HOT_DATA PyObject* mirror_begin;
// What it raised was no Exception: the scope's entering or leaving raises it, or the next one's.
extern int mirror_was_interrupted;

// What it wants back at the end; NULL = nothing. No exception is set. REQUIRES: one records.
PyObject* Mirror_Begin(PyObject* name);
// Takes the reference.
void Mirror_End(PyObject* mirrored);
// Whether an interrupt is set now, which there was.
int Mirror_RaisesInterrupt(void);

// mirror_scopes(begin, end): from now on begin(name) is called where one is entered, and end(what that gave) where it is
// left; None = nothing is.
PyObject* Mirror_Set(PyObject* module, PyObject* args);
