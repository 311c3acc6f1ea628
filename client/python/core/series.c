#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/series.h"

#include "client/python/core/names.h"
#include "client/python/core/refusal.h"

stepwell_label* Series_Labels(PyObject* labels, size_t* count) {
  *count = (size_t)PyDict_GET_SIZE(labels);
  stepwell_label* views = PyMem_Calloc(*count + 1, sizeof(stepwell_label));
  if (views == NULL) return (stepwell_label*)PyErr_NoMemory();
  PyObject* name = NULL;
  PyObject* value = NULL;
  Py_ssize_t position = 0;
  for (size_t i = 0; PyDict_Next(labels, &position, &name, &value); ++i) {
    views[i].name = PyUnicode_AsUTF8(name);
    views[i].value = views[i].name == NULL ? NULL : PyUnicode_AsUTF8(value);
    if (views[i].value == NULL) {
      PyMem_Free(views);
      return NULL;
    }
  }
  return views;
}

PyObject* Series_Define(PyObject* Py_UNUSED(module), PyObject* args) {
  const char *group = NULL, *unit = NULL;
  PyObject *name = NULL, *labels = NULL;
  int kind = 0;
  if (!PyArg_ParseTuple(args, "sUsiO!:define_series", &group, &name, &unit, &kind, &PyDict_Type,
                        &labels)) {
    return NULL;
  }
  const char* text = PyUnicode_AsUTF8(name);
  size_t label_count = 0;
  stepwell_label* views = text == NULL ? NULL : Series_Labels(labels, &label_count);
  if (views == NULL) return NULL;
  const stepwell_series_id id =
      stepwell_define_series(group, text, unit, (stepwell_series_kind)kind, views, label_count);
  PyMem_Free(views);
  // As record() does it: a training that makes one more goes on without it.
  if (id == 0 &&
      Refuse(kRefusedSeries, "stepwell: series %R is not recorded; allowed: at most 16384 series",
             name) < 0) {
    return NULL;
  }
  Series* series = Names_NewSeries(name);
  if (series == NULL) return NULL;
  series->id = id;
  Py_INCREF(args);
  series->definition = args;
  // From now on the plain name means this one.
  if (id != 0 && strcmp(group, "training") == 0 && label_count == 0 &&
      !Names_SetDefault(name, series)) {
    Py_CLEAR(series);
  }
  return (PyObject*)series;
}

PyObject* Series_RecordAt(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject* series = NULL;
  int batch = -1;
  long long time_us = 0;
  double value = 0;
  if (!PyArg_ParseTuple(args, "O!iLd:record_at", &Series_Type, &series, &batch, &time_us, &value)) {
    return NULL;
  }
  if (stepwell_enabled()) stepwell_record_at(((Series*)series)->id, batch, time_us, value);
  Py_RETURN_NONE;
}
