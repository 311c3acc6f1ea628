// Scope: a named, timed region, as a context manager and a decorator. One that is kept may be
// entered again, also while it is open: recursion and other threads find it as they left it. Needs
// the GIL.
#pragma once

#include "client/python/core/names.h"

extern PyTypeObject Scope_Type;

// 0 with an exception set.
int Scope_Init(void);
// New, closed.
PyObject* Scope_New(const ScopeName* name);
// New reference: the one of the name that lives as long as the process, whoever asks. For where nothing is recorded: one that
// is made and dropped for each `with` takes more there (docs/python.md). NULL with an exception set.
PyObject* Scope_Lasting(ScopeName* name);
// Its name's; 0 = it was refused.
stepwell_scope_id Scope_Id(PyObject* scope);
// is_innermost(scope): whether the innermost one that is open on this thread has its name.
PyObject* Scope_IsInnermost(PyObject* module, PyObject* scope);
