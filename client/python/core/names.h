// Names: what a name that a training uses is known by. Once it was seen, finding it again is one
// look into a dictionary. Process-wide, as the recorder is. Needs the GIL.
#pragma once

#include "stepwell/recorder.h"

// A name of scopes as Python knows it: keeps its id.
typedef struct {
  PyObject base;
  PyObject* name;
  stepwell_scope_id id;  // 0 = refused
  PyObject* lasting;     // Scope_Lasting's; NULL = nobody asked for it
} ScopeName;

// A series that is recorded under. `record` is its one call.
typedef struct {
  PyObject base;
  PyObject* name;
  stepwell_series_id id;  // 0 = refused
  PyObject* definition;   // arguments of define_series; NULL: Python never sees it
} Series;

extern PyTypeObject ScopeName_Type;
extern PyTypeObject Series_Type;

// 0 with an exception set.
int Names_Init(void);

// Borrowed; never raises but what is no Exception: NULL. Refused names warn once, and record
// nothing.
ScopeName* Names_FindScope(PyObject* name);
// New: that of timings with this label; NULL with an exception set.
ScopeName* Names_NewLabelledScope(const char* name, const char* label, const char* value);
// New: a value's own code may give the name another series meanwhile. The series of `name` in the
// group "training", without unit and labels; or what Names_SetDefault said.
Series* Names_FindSeries(PyObject* name);

// What a plain name stands for from now on. 0 with an exception set.
int Names_SetDefault(PyObject* name, Series* series);
// New, with id 0 and no definition.
Series* Names_NewSeries(PyObject* name);
// Borrowed. NULL with an exception set: no scope has this id.
PyObject* Names_OfScope(stepwell_scope_id id);

// What pickle wants: a function of stepwell._pickled and its arguments. NULL with an exception set.
PyObject* Names_Pickled(const char* function, PyObject* arguments);

// Records `value`, which is not looked at where nothing is recorded: what is no number warns once.
// -1 with an exception set that is no Exception.
int Series_Record(const Series* series, PyObject* value);
