// TimedCall and FetchCall: what hooks do at each call of a step, without a line of Python: between two
// big operators each of those is read from memory again. They stand before a handler of Python's, which
// is asked as long as `is_plain` is not set: it looks at the first calls, and at what is rare. Called as
// it is, with the original first. Need the GIL.
#pragma once

#include <Python.h>

// TimedCall(handler, scope, is_grad_enabled, ends_work): the call lies in the scope, but where that is the
// innermost one already. With is_grad_enabled, a function, it is work where that answers True.
extern PyTypeObject TimedCall_Type;
// FetchCall(handler, is_grad_enabled): of handler(original, iterator), the ask of a DataLoader's
// iterator which has the loop of its steps as `_stepwell_loop`. Every 16th is the handler's, too.
extern PyTypeObject FetchCall_Type;

// Whether what it times ends work, as an optimizer's step does.
int TimedCall_EndsWork(const PyObject* handler);

// 0 with an exception set.
int TimedCall_Init(void);
