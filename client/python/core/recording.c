#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/recording.h"

#include "client/python/core/mirror.h"
#include "client/python/core/names.h"
#include "client/python/core/refusal.h"
#include "client/python/core/scope.h"
#include "client/python/core/steps.h"

// Arguments by their names, in `values`; those that are missing are NULL. 0 where they are others.
static int Arrange(const char* const* wanted, Py_ssize_t wanted_count, PyObject* const* args,
                   Py_ssize_t count, PyObject* keywords, PyObject** values) {
  const Py_ssize_t keyword_count = keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords);
  if (count + keyword_count > wanted_count) return 0;
  for (Py_ssize_t i = 0; i < wanted_count; ++i) values[i] = i < count ? args[i] : NULL;
  for (Py_ssize_t k = 0; k < keyword_count; ++k) {
    Py_ssize_t i = count;
    while (i < wanted_count &&
           PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, k), wanted[i]) != 0) {
      ++i;
    }
    if (i == wanted_count || values[i] != NULL) return 0;
    values[i] = args[count + k];
  }
  return 1;
}

static PyObject* Recording_Scope(PyObject* Py_UNUSED(self), PyObject* const* args, Py_ssize_t count,
                                 PyObject* keywords) {
  static const char* const kWanted[] = {"name"};
  PyObject* values[1] = {count == 1 ? args[0] : NULL};
  if ((keywords != NULL || count != 1) &&
      (!Arrange(kWanted, 1, args, count, keywords, values) || values[0] == NULL)) {
    if (Refuse(kRefusedCall, "stepwell: scope() takes one argument, name; nothing is recorded") <
        0) {
      return NULL;
    }
    values[0] = Py_None;
  }
  ScopeName* name = Names_FindScope(values[0]);
  if (name == NULL) return NULL;
  return stepwell_enabled() || mirror_begin != NULL ? Scope_New(name) : Scope_Lasting(name);
}

static PyObject* Recording_Record(PyObject* Py_UNUSED(self), PyObject* const* args,
                                  Py_ssize_t count, PyObject* keywords) {
  static const char* const kWanted[] = {"name", "value"};
  PyObject* values[2] = {count == 2 ? args[0] : NULL, count == 2 ? args[1] : NULL};
  if ((keywords != NULL || count != 2) && (!Arrange(kWanted, 2, args, count, keywords, values) ||
                                           values[0] == NULL || values[1] == NULL)) {
    if (Refuse(kRefusedCall,
               "stepwell: record() takes two arguments, name and value; nothing is recorded") < 0) {
      return NULL;
    }
    Py_RETURN_NONE;
  }
  Series* series = Names_FindSeries(values[0]);
  if (series == NULL) return NULL;
  const int is_done = Series_Record(series, values[1]) == 0;
  Py_DECREF(series);
  if (!is_done) return NULL;
  Py_RETURN_NONE;
}

static PyObject* Recording_Instant(PyObject* Py_UNUSED(self), PyObject* const* args,
                                   Py_ssize_t count, PyObject* keywords) {
  static const char* const kWanted[] = {"name"};
  PyObject* values[1] = {count == 1 ? args[0] : NULL};
  if ((keywords != NULL || count != 1) &&
      (!Arrange(kWanted, 1, args, count, keywords, values) || values[0] == NULL)) {
    if (Refuse(kRefusedCall, "stepwell: instant() takes one argument, name; nothing is recorded") <
        0) {
      return NULL;
    }
    Py_RETURN_NONE;
  }
  const ScopeName* name = Names_FindScope(values[0]);
  if (name == NULL) return NULL;
  if (stepwell_enabled()) stepwell_instant(name->id);
  Py_RETURN_NONE;
}

static PyObject* Recording_Steps(PyObject* Py_UNUSED(self), PyObject* args, PyObject* keywords) {
  static char* kWanted[] = {"loader", "start", NULL};
  PyObject* loader = NULL;
  PyObject* start = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$O:steps", kWanted, &loader, &start)) {
    return NULL;
  }
  long first = -1;
  if (start != Py_None) {
    first = PyLong_AsLong(start);
    if (first < 0 || first > INT32_MAX) {
      PyErr_Clear();
      PyErr_Format(PyExc_ValueError, "stepwell: steps: start is %R; allowed: 0 ... 2147483647",
                   start);
      return NULL;
    }
  }
  return Steps_New(loader, (int32_t)first);
}

static PyMethodDef recording_methods[] = {
    {"scope", (PyCFunction)(void (*)(void))Recording_Scope, METH_FASTCALL | METH_KEYWORDS,
     "scope($self, name)\n--\n\nA named, timed region: a context manager and a decorator."},
    {"record", (PyCFunction)(void (*)(void))Recording_Record, METH_FASTCALL | METH_KEYWORDS,
     "record($self, name, value)\n--\n\n"
     "Records a number under a name, or a series, with the batch of the step that is open."},
    {"instant", (PyCFunction)(void (*)(void))Recording_Instant, METH_FASTCALL | METH_KEYWORDS,
     "instant($self, name)\n--\n\nA moment: in traces an event without length, in no timing."},
    {"steps", (PyCFunction)(void (*)(void))Recording_Steps, METH_VARARGS | METH_KEYWORDS,
     "steps($self, loader, *, start=None)\n--\n\n"
     "Pairs (batch_index, batch) of the loader, each a step; its fetch is timed."},
    {NULL, NULL, 0, NULL},
};

// CPython calls a method of C without a detour (since 3.11) where the type that has it is exactly the object's, not one
// that this inherits (docs/python.md has what that saves).
PyObject* Recording_OwnCalls(PyObject* Py_UNUSED(module), PyObject* type) {
  if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject*)type, &Recording_Type)) {
    PyErr_SetString(PyExc_TypeError, "stepwell: own_calls() takes a type of recordings");
    return NULL;
  }
  for (PyMethodDef* method = recording_methods; method->ml_name != NULL; ++method) {
    PyObject* found = PyObject_GetAttrString(type, method->ml_name);
    const int is_inherited = found != NULL && Py_TYPE(found) == &PyMethodDescr_Type &&
                             ((PyMethodDescrObject*)found)->d_method == method;
    PyObject* own = is_inherited ? PyDescr_NewMethod((PyTypeObject*)type, method) : NULL;
    const int is_done =
        !is_inherited ? found != NULL
                      : own != NULL && PyObject_SetAttrString(type, method->ml_name, own) == 0;
    Py_XDECREF(own);
    Py_XDECREF(found);
    if (!is_done) return NULL;
  }
  Py_INCREF(type);
  return type;
}

PyTypeObject Recording_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.Recording",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The calls of a Run that a training step makes.",
    .tp_methods = recording_methods,
    .tp_new = PyType_GenericNew,
};
