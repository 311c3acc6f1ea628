// Handler: what TimedCall, FetchCall and TransferCall have in common. Each does in C what a hook does at most calls, and
// stands before a handler of Python's for what is rare. Called as it is, with the original first; a Hooked calls its
// `direct`, which has no arguments to move. Needs the GIL.
#pragma once

#include <Python.h>

// original(*args, **keywords), handled; arguments as in PEP 590.
typedef PyObject* (*DirectCall)(PyObject* self, PyObject* original, PyObject* const* args,
                                size_t flagged_count, PyObject* keywords);

// What its types begin with.
typedef struct {
  PyObject base;
  vectorcallfunc call;
  DirectCall direct;
  PyObject* handler;  // owned; of Python's
} Handler;

// New, tracked; NULL with an exception set.
Handler* Handler_New(PyTypeObject* type, PyObject* handler, DirectCall direct);
// Of what is called in an original's place; NULL = it is none of these types.
DirectCall Handler_DirectOf(PyObject* handler);
// handler(original, *args, **keywords).
PyObject* Handler_Ask(PyObject* handler, PyObject* original, PyObject* const* args,
                      size_t flagged_count, PyObject* keywords);
