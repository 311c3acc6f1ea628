// Steps: an iterable around a loader, whose items are training batches: it ends a step and begins
// the next where the loader is asked for the next batch, and times that as `dataloader_next`.
#pragma once

#include <Python.h>
#include <stdint.h>

extern PyTypeObject Steps_Type;

// 0 with an exception set.
int Steps_Init(void);
// New. start < 0 = the batches go on counting where the last loop ended. NULL with an exception
// set: `loader` is nothing to iterate over.
PyObject* Steps_New(PyObject* loader, int32_t start);

// For hooks. hooked_loop(of): the loop over a loader that `of` tells from others, None = nothing does.
// next_by(loop, original, iterator): what original(iterator) gives, as the loop's next batch.
PyObject* Steps_OfHook(PyObject* module, PyObject* of);
PyObject* Steps_AskNextBy(PyObject* module, PyObject* args);
// The two halves of next_by, for who switches recording between them. begin_step(loop, is_anew=False): the step that is
// open ends, or with is_anew is dropped, and the next opens: the number that its batch will have, None = it lies in another
// loop's step. fetch_step(loop, original, iterator): its batch. leave_loop(loop): what comes after lies in no step.
PyObject* Steps_BeginStep(PyObject* module, PyObject* args);
PyObject* Steps_FetchStep(PyObject* module, PyObject* args);
PyObject* Steps_LeaveLoop(PyObject* module, PyObject* loop);
// New. NULL with an exception set: StopIteration at the end.
PyObject* Steps_NextBy(PyObject* loop, PyObject* original, PyObject* iterator);
