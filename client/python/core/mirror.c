#define PY_SSIZE_T_CLEAN
#include "client/python/core/mirror.h"

HOT_DATA PyObject* mirror_begin;
int mirror_was_interrupted;
static PyObject* mirror_end;
static PyObject *interrupt_type, *interrupt_value, *interrupt_trace;

int Mirror_RaisesInterrupt(void) {
  if (!mirror_was_interrupted || PyErr_Occurred() != NULL) return 0;
  PyErr_Restore(interrupt_type, interrupt_value, interrupt_trace);
  interrupt_type = interrupt_value = interrupt_trace = NULL;
  mirror_was_interrupted = 0;
  return 1;
}

// What it raises is not the training's, but for an interrupt.
static PyObject* Call(PyObject* function, PyObject* argument) {
  PyObject *type = NULL, *value = NULL, *traceback = NULL;
  PyErr_Fetch(&type, &value, &traceback);
  Py_INCREF(function);  // it may be switched off meanwhile
  PyObject* result = PyObject_CallOneArg(function, argument);
  Py_DECREF(function);
  if (result == NULL && !mirror_was_interrupted && !PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Fetch(&interrupt_type, &interrupt_value, &interrupt_trace);
    mirror_was_interrupted = 1;
  } else if (result == NULL) {
    PyErr_Clear();
  }
  PyErr_Restore(type, value, traceback);
  return result;
}

PyObject* Mirror_Begin(PyObject* name) { return Call(mirror_begin, name); }

void Mirror_End(PyObject* mirrored) {
  PyObject* result = mirror_end == NULL ? NULL : Call(mirror_end, mirrored);
  Py_XDECREF(result);
  Py_DECREF(mirrored);
}

PyObject* Mirror_Set(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *begin = NULL, *end = NULL;
  if (!PyArg_ParseTuple(args, "OO:mirror_scopes", &begin, &end)) return NULL;
  PyObject* begin_before = mirror_begin;
  PyObject* end_before = mirror_end;
  Py_INCREF(begin);
  mirror_begin = begin;
  if (begin == Py_None) Py_CLEAR(mirror_begin);
  // What is open is ended by what began it: the last one stays.
  if (end != Py_None) {
    Py_INCREF(end);
    mirror_end = end;
    Py_XDECREF(end_before);
  }
  Py_XDECREF(begin_before);
  Py_RETURN_NONE;
}
