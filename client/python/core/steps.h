// Steps: an iterable around a loader, whose items are training batches: it ends a step and begins
// the next where the loader is asked for the next batch, and times that as `dataloader_next`.
#pragma once

#include <Python.h>
#include <stdint.h>

extern PyTypeObject Steps_Type;
// The steps of a loop that is a framework's, by calls.
extern PyTypeObject Loop_Type;

// 0 with an exception set.
int Steps_Init(void);
// New. start < 0 = the batches go on counting where the last loop ended. NULL with an exception
// set: `loader` is nothing to iterate over.
PyObject* Steps_New(PyObject* loader, int32_t start);

// For hooks. hooked_steps(loader): steps whose training is not seen as scopes of the program's:
// begin_work() opens `train_batch` in them, where no scope is open, end_work() closes it, where it is
// the innermost one; so does the step's end.
PyObject* Steps_OfHook(PyObject* module, PyObject* loader);
PyObject* Steps_BeginWork(PyObject* module, PyObject* ignored);
PyObject* Steps_EndWork(PyObject* module, PyObject* ignored);
// is_fetching(): whether the calling thread is in the fetch of a loop's batch.
PyObject* Steps_IsFetching(PyObject* module, PyObject* ignored);
// batch(): of the loop whose step the calling thread is in, -1 = in none.
PyObject* Steps_Batch(PyObject* module, PyObject* ignored);

// A run begins, or a process that was forked: batches count from 0, and this thread is in no loop.
void Steps_Reset(void);
