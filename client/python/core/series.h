// Series: how one is defined, with its labels. At definition time: errors are raised.
#pragma once

#include <Python.h>

#include "stepwell/recorder.h"

// Views of a dictionary of str, valid as long as that is; free with PyMem_Free. NULL with an
// exception set.
stepwell_label* Series_Labels(PyObject* labels, size_t* count);

// define_series(group, name, unit, kind, labels): a Series. ValueError where the recorder refuses
// it.
PyObject* Series_Define(PyObject* module, PyObject* args);
// record_at(series, batch, time_us, value): of a known time, since 1970 UTC, and batch, -1 = none.
PyObject* Series_RecordAt(PyObject* module, PyObject* args);
