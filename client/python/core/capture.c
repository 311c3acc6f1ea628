#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/capture.h"

uint32_t capture_settled;

static PyObject* asked;  // owned; NULL = nobody looks
static int is_asking;
// What ended the function and is the training's: raised where the main thread goes on.
static PyObject *interrupt_type, *interrupt_value, *interrupt_trace;

static int RaiseInterrupt(void* Py_UNUSED(ignored)) {
  PyObject *type = interrupt_type, *value = interrupt_value, *trace = interrupt_trace;
  interrupt_type = interrupt_value = interrupt_trace = NULL;
  if (type == NULL) return 0;
  PyErr_Restore(type, value, trace);
  return -1;
}

static void TakeError(void) {
  if (interrupt_type != NULL || PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();
    return;
  }
  PyErr_Fetch(&interrupt_type, &interrupt_value, &interrupt_trace);
  Py_AddPendingCall(RaiseInterrupt, NULL);
}

void Capture_Ask(int32_t upcoming, int moment) {
  const uint32_t request = __atomic_load_n(&stepwell_capture_request, __ATOMIC_RELAXED);
  if (asked == NULL) capture_settled = request;
  // The function's own loops, if a profiler has any.
  if (asked == NULL || is_asking) return;
  // A loop may be left because of an exception, which goes on.
  PyObject *type = NULL, *value = NULL, *trace = NULL;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* function = asked;
  Py_INCREF(function);
  is_asking = 1;
  PyObject* answer = PyObject_CallFunction(function, "ii", (int)upcoming, moment);
  is_asking = 0;
  Py_DECREF(function);
  if (answer == NULL) TakeError();
  // While it wants more, what is settled is something else than what is wanted.
  capture_settled = answer == Py_True ? ~request : request;
  Py_XDECREF(answer);
  PyErr_Restore(type, value, trace);
}

PyObject* Capture_By(PyObject* Py_UNUSED(module), PyObject* function) {
  PyObject* before = asked;
  asked = function == Py_None ? NULL : function;
  Py_XINCREF(asked);
  Py_XDECREF(before);
  stepwell_offer_capture(asked != NULL);
  Py_RETURN_NONE;
}

PyObject* Capture_Wanted(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  int32_t first_batch = 0;
  int32_t step_count = 0;
  const uint32_t request = stepwell_capture_wanted(&first_batch, &step_count);
  return Py_BuildValue("Iii", (unsigned int)request, (int)first_batch, (int)step_count);
}

PyObject* Capture_Answer(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned int request = 0, outcome = 0, step_count = 0;
  if (!PyArg_ParseTuple(args, "III:capture_answer", &request, &outcome, &step_count)) return NULL;
  stepwell_capture_answer(request, outcome, step_count);
  Py_RETURN_NONE;
}

void Capture_AfterFork(void) {
  Py_CLEAR(asked);
  is_asking = 0;
}
