#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/refusal.h"

int Refuse(Refusal kind, const char* format, ...) {
  static int is_told[kRefusalCount];
  if (PyErr_Occurred() != NULL) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
  }
  if (is_told[kind]) return 0;
  is_told[kind] = 1;
  va_list arguments;
  va_start(arguments, format);
  PyObject* text = PyUnicode_FromFormatV(format, arguments);
  va_end(arguments);
  const char* words = text == NULL ? NULL : PyUnicode_AsUTF8(text);
  // Where warnings are errors this one stays unsaid: a training step is no place to raise it.
  if (words == NULL || PyErr_WarnEx(PyExc_RuntimeWarning, words, 1) != 0) {
    if (PyErr_Occurred() != NULL && !PyErr_ExceptionMatches(PyExc_Exception)) {
      Py_XDECREF(text);
      return -1;
    }
    PyErr_Clear();
  }
  Py_XDECREF(text);
  return 0;
}
