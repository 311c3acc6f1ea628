#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/names.h"

#include "client/python/core/refusal.h"

// Of those that were refused, so many are remembered.
#define REFUSED_COUNT_MAX 4096

static PyObject* scope_names;   // {name: ScopeName}
static PyObject* scope_ids;     // {id: name}
static PyObject* plain_series;  // {name: Series} of the group "training"
static int refused_count;

int Names_Init(void) {
  scope_names = PyDict_New();
  scope_ids = PyDict_New();
  plain_series = PyDict_New();
  return scope_names != NULL && scope_ids != NULL && plain_series != NULL &&
         PyType_Ready(&ScopeName_Type) == 0 && PyType_Ready(&Series_Type) == 0;
}

// As UTF-8 without a NUL in it; NULL with or without an exception set.
static const char* PlainText(PyObject* name) {
  Py_ssize_t bytes = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &bytes);
  return text == NULL || (Py_ssize_t)strlen(text) != bytes ? NULL : text;
}

// Whether one more refused name is.
static int MayRemember(const char* text) {
  if (text == NULL || refused_count == REFUSED_COUNT_MAX) return 0;
  ++refused_count;
  return 1;
}

static ScopeName* NewScopeName(PyObject* name, stepwell_scope_id id) {
  ScopeName* made = PyObject_New(ScopeName, &ScopeName_Type);
  if (made == NULL) return NULL;
  Py_INCREF(name);
  made->name = name;
  made->id = id;
  made->lasting = NULL;
  return made;
}

static int KeepId(ScopeName* scope) {
  PyObject* id = PyLong_FromUnsignedLong(scope->id);
  const int is_kept = id != NULL && PyDict_SetItem(scope_ids, id, scope->name) == 0;
  Py_XDECREF(id);
  return is_kept;
}

// Under this one nothing is recorded.
static ScopeName* NoScope(void) {
  static ScopeName* none;
  if (none == NULL) {
    PyObject* name = PyUnicode_FromString("");
    none = name == NULL ? NULL : NewScopeName(name, 0);
    Py_XDECREF(name);
  }
  return none;
}

static ScopeName* RefuseScope(PyObject* name) {
  return Refuse(
             kRefusedScope,
             "stepwell: scope %R is not recorded; allowed: 1 ... 200 bytes of text without '/' and "
             "control characters, not 'step', nor ending in '.count', at most 4096 names",
             name) < 0
             ? NULL
             : NoScope();
}

// A name in a program is one object: where it was found last is known by its address.
#define SEEN_COUNT 64

static struct {
  PyObject* name;  // owned, so that no other object comes to lie there
  ScopeName* scope;
} seen_scopes[SEEN_COUNT];

static inline size_t SeenIndex(const PyObject* name) { return ((uintptr_t)name >> 4) % SEEN_COUNT; }

static void RememberSeen(PyObject* name, ScopeName* scope) {
  PyObject* before = seen_scopes[SeenIndex(name)].name;
  Py_INCREF(name);
  seen_scopes[SeenIndex(name)].name = name;
  seen_scopes[SeenIndex(name)].scope = scope;
  Py_XDECREF(before);
}

ScopeName* Names_FindScope(PyObject* name) {
  if (seen_scopes[SeenIndex(name)].name == name) return seen_scopes[SeenIndex(name)].scope;
  if (PyUnicode_CheckExact(name)) {
    PyObject* known = PyDict_GetItemWithError(scope_names, name);
    if (known != NULL) {
      RememberSeen(name, (ScopeName*)known);
      return (ScopeName*)known;
    }
  }
  if (!PyUnicode_CheckExact(name) && PyUnicode_Check(name)) {
    PyObject* exact = PyUnicode_FromObject(name);
    ScopeName* found = exact == NULL ? RefuseScope(name) : Names_FindScope(exact);
    Py_XDECREF(exact);
    return found;
  }
  const char* text = PyUnicode_Check(name) ? PlainText(name) : NULL;
  const stepwell_scope_id id = text == NULL ? 0 : stepwell_define_scope(text);
  if (id == 0 && !MayRemember(text)) return RefuseScope(name);
  ScopeName* made = NewScopeName(name, id);
  const int is_kept = made != NULL && (id == 0 || KeepId(made)) &&
                      PyDict_SetItem(scope_names, name, (PyObject*)made) == 0;
  Py_XDECREF(made);
  if (!is_kept || id == 0) {
    ScopeName* none = RefuseScope(name);
    return is_kept && none != NULL ? made : none;  // the dictionary holds it
  }
  return made;
}

Series* Names_NewSeries(PyObject* name) {
  Series* made = PyObject_New(Series, &Series_Type);
  if (made == NULL) return NULL;
  Py_INCREF(name);
  made->name = name;
  made->id = 0;
  made->definition = NULL;
  return made;
}

ScopeName* Names_NewLabelledScope(const char* name, const char* label, const char* value) {
  const stepwell_label labels = {label, value};
  const stepwell_scope_id id = stepwell_define_labelled_scope(name, &labels, 1);
  PyObject* text = PyUnicode_InternFromString(name);
  ScopeName* made = text == NULL ? NULL : NewScopeName(text, id);
  Py_XDECREF(text);
  if (made != NULL && !KeepId(made)) Py_CLEAR(made);
  return made;
}

static Series* RefuseSeries(PyObject* name) {
  static Series* none;
  if (Refuse(kRefusedSeries,
             "stepwell: %R is not recorded; allowed: a series, or 1 ... 200 bytes of text without "
             "control "
             "characters, at most 16384 series",
             name) < 0) {
    return NULL;
  }
  if (none == NULL) {
    PyObject* empty = PyUnicode_FromString("");
    none = empty == NULL ? NULL : Names_NewSeries(empty);
    Py_XDECREF(empty);
  }
  Py_XINCREF(none);
  return none;
}

Series* Names_FindSeries(PyObject* name) {
  if (PyUnicode_CheckExact(name)) {
    PyObject* known = PyDict_GetItemWithError(plain_series, name);
    if (known != NULL) {
      Py_INCREF(known);
      return (Series*)known;
    }
  }
  if (Py_TYPE(name) == &Series_Type) {
    Py_INCREF(name);
    return (Series*)name;
  }
  if (!PyUnicode_CheckExact(name) && PyUnicode_Check(name)) {
    PyObject* exact = PyUnicode_FromObject(name);
    Series* found = exact == NULL ? RefuseSeries(name) : Names_FindSeries(exact);
    Py_XDECREF(exact);
    return found;
  }
  const char* text = PyUnicode_Check(name) ? PlainText(name) : NULL;
  const stepwell_series_id id =
      text == NULL ? 0 : stepwell_define_series("training", text, "", STEPWELL_GAUGE, NULL, 0);
  if (id == 0 && !MayRemember(text)) return RefuseSeries(name);
  Series* made = Names_NewSeries(name);
  if (made != NULL) made->id = id;
  const int is_kept = made != NULL && Names_SetDefault(name, made);
  if (is_kept && id != 0) return made;
  // The warning is shown by code of theirs.
  Series* none = RefuseSeries(name);
  if (is_kept && none != NULL) {
    Py_DECREF(none);
    return made;
  }
  Py_XDECREF(made);
  return none;
}

int Names_SetDefault(PyObject* name, Series* series) {
  return PyDict_SetItem(plain_series, name, (PyObject*)series) == 0;
}

PyObject* Names_OfScope(stepwell_scope_id id) {
  PyObject* key = PyLong_FromUnsignedLong(id);
  PyObject* name = key == NULL ? NULL : PyDict_GetItemWithError(scope_ids, key);
  Py_XDECREF(key);
  if (name == NULL && PyErr_Occurred() == NULL) PyErr_Format(PyExc_KeyError, "scope %u", id);
  return name;
}

PyObject* Names_Pickled(const char* function, PyObject* arguments) {
  PyObject* module = PyImport_ImportModule("stepwell._pickled");
  PyObject* found = module == NULL ? NULL : PyObject_GetAttrString(module, function);
  Py_XDECREF(module);
  return found == NULL ? NULL : Py_BuildValue("(NO)", found, arguments);
}

int Series_Record(const Series* series, PyObject* value) {
  // A value on a GPU is waited for.
  if (series->id == 0 || !stepwell_enabled()) return 0;
  double number = 0;
  if (PyFloat_CheckExact(value)) {
    number = PyFloat_AS_DOUBLE(value);
  } else {
    number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred() != NULL) {
      return Refuse(kRefusedValue,
                    "stepwell: %U: a value of type %s is not recorded; allowed: a number",
                    series->name, Py_TYPE(value)->tp_name);
    }
  }
  stepwell_record(series->id, number);
  return 0;
}

static void ScopeName_Dealloc(PyObject* self) {
  Py_DECREF(((ScopeName*)self)->name);
  PyObject_Free(self);
}

PyTypeObject ScopeName_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core._ScopeName",
    .tp_basicsize = sizeof(ScopeName),
    .tp_dealloc = ScopeName_Dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

static void Series_Dealloc(PyObject* self) {
  Py_DECREF(((Series*)self)->name);
  Py_XDECREF(((Series*)self)->definition);
  PyObject_Free(self);
}

static PyObject* Series_Repr(PyObject* self) {
  return PyUnicode_FromFormat("<stepwell.Series %R>", ((Series*)self)->name);
}

static PyObject* Series_RecordCall(PyObject* self, PyObject* value) {
  if (Series_Record((Series*)self, value) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject* Series_Reduce(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  const Series* series = (Series*)self;
  return Names_Pickled("series", series->definition);
}

static PyMethodDef series_methods[] = {
    {"record", Series_RecordCall, METH_O,
     "record($self, value, /)\n--\n\nRecords a number, with the batch of the step that is open on "
     "this thread."},
    {"__reduce__", Series_Reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Series_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell.Series",
    .tp_basicsize = sizeof(Series),
    .tp_dealloc = Series_Dealloc,
    .tp_repr = Series_Repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "What numbers are recorded under; made by Run.series().",
    .tp_methods = series_methods,
};
