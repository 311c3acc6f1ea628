#define PY_SSIZE_T_CLEAN
#include "client/python/core/around.h"

#include <Python.h>

static int Call(PyObject* of, const char* name) {
  PyObject* done = PyObject_CallMethod(of, name, NULL);
  Py_XDECREF(done);
  return done != NULL;
}

static PyObject* Around_Enter(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  if (!Call(self, "_begin")) return NULL;
  PyObject* scope = PyObject_GetAttrString(self, "_scope");
  const int is_entered = scope != NULL && Call(scope, "__enter__");
  Py_XDECREF(scope);
  if (!is_entered) return NULL;
  Py_INCREF(self);
  return self;
}

static PyObject* Around_Exit(PyObject* self, PyObject* Py_UNUSED(raised)) {
  PyObject *kind = NULL, *error = NULL, *trace = NULL;
  if (!Call(self, "_end")) PyErr_Fetch(&kind, &error, &trace);
  PyObject* scope = PyObject_GetAttrString(self, "_scope");
  PyObject* exit = scope == NULL ? NULL : PyObject_GetAttrString(scope, "__exit__");
  PyObject* done =
      exit == NULL ? NULL : PyObject_CallFunctionObjArgs(exit, Py_None, Py_None, Py_None, NULL);
  Py_XDECREF(exit);
  Py_XDECREF(scope);
  if (kind != NULL) {
    PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(kind, error, trace);
    return NULL;
  }
  return done;
}

static PyMethodDef methods[] = {
    {"__enter__", Around_Enter, METH_NOARGS, NULL},
    {"__exit__", Around_Exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Around_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.Around",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_methods = methods,
    .tp_new = PyType_GenericNew,
};
