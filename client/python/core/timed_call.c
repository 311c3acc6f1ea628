#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/timed_call.h"

#include <stddef.h>
#include <structmember.h>

#include "client/python/core/handler.h"
#include "client/python/core/hot.h"
#include "client/python/core/mirror.h"
#include "client/python/core/scope.h"
#include "client/python/core/step_loop.h"
#include "client/python/core/steps.h"
#include "client/python/core/tally.h"
#include "stepwell/recorder.h"

// What comes once in a training (a GPU's first use) is seen by this many asks later.
#define HANDLED_EVERY 16

typedef struct {
  Handler base;
  PyObject* is_grad_enabled;  // NULL = nobody asks
  // Its own, where it is a function of C's without arguments, as torch's is; else NULL.
  PyCFunction is_grad_enabled_call;
  char is_plain;
  char ends_work;
  stepwell_scope_id scope;
  unsigned ask_count;
} TimedCall;

static PyObject* loop_name;
static PyObject* yielded_name;

int TimedCall_Init(void) {
  loop_name = PyUnicode_InternFromString("_stepwell_loop");
  yielded_name = PyUnicode_InternFromString("_num_yielded");
  return loop_name != NULL && yielded_name != NULL && PyType_Ready(&TimedCall_Type) == 0 &&
         PyType_Ready(&FetchCall_Type) == 0;
}

int TimedCall_EndsWork(const PyObject* handler) {
  return Py_TYPE(handler) == &TimedCall_Type && ((const TimedCall*)handler)->ends_work;
}

static RARE int HasFailed(TimedCall* self) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  self->is_plain = 0;
  return 0;
}

// 1 or 0. What it raises its handler meets, too: -1 with an exception set is no Exception.
static HOT int IsGradEnabled(TimedCall* self) {
  PyObject* answer =
      self->is_grad_enabled_call != NULL
          ? self->is_grad_enabled_call(PyCFunction_GET_SELF(self->is_grad_enabled), NULL)
          : PyObject_CallObject(self->is_grad_enabled, NULL);
  if (answer == NULL) return HasFailed(self);
  const int is_enabled = answer == Py_True;
  Py_DECREF(answer);
  return is_enabled;
}

static HOT PyObject* TimedCall_Call(PyObject* handler, PyObject* original, PyObject* const* args,
                                    size_t flagged_count, PyObject* keywords) {
  TimedCall* self = (TimedCall*)handler;
  // Another profiler is told by the handler.
  if (!self->is_plain || mirror_begin != NULL) {
    return Handler_Ask(self->base.handler, original, args, flagged_count, keywords);
  }
  // Once in a step, where the first forward pass begins: torch's answer is dearer than the scope.
  if (self->is_grad_enabled != NULL && StepLoop_WouldOpenWork()) {
    const int is_enabled = IsGradEnabled(self);
    if (is_enabled < 0) return NULL;
    if (is_enabled) StepLoop_OpenWork();
  }
  stepwell_scope timing = {.path = 0};
  // The program's, or an integration's, which says the same.
  if (stepwell_enabled() && stepwell_innermost_scope() != self->scope) {
    stepwell_scope_begin(&timing, self->scope);
  }
  const uint32_t path = timing.path;
  PyObject* result = PyObject_Vectorcall(original, args, flagged_count, keywords);
  if (path != 0) Tally_Add(&timing, path, self->scope, stepwell_scope_end(&timing));
  if (self->ends_work) StepLoop_CloseWork();
  return result;
}

// New, or NULL without an exception.
static HOT PyObject* AttributeOrNone(PyObject* object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object, name);
  if (value == NULL) PyErr_Clear();
  return value;
}

// Whether this iterator has begun an epoch anew, as it does where workers persist.
static HOT int IsAtItsBeginning(PyObject* iterator) {
  PyObject* yielded = AttributeOrNone(iterator, yielded_name);
  if (yielded == NULL) return 0;
  const int is_none = PyLong_Check(yielded) && PyLong_AsLong(yielded) == 0;
  Py_DECREF(yielded);
  PyErr_Clear();
  return is_none;
}

// Of a training's iterator, in whose epoch a batch was given already; new. NULL without an exception set: the handler
// is asked. *is_fatal = an exception is set that is none of Exception's.
static HOT PyObject* LoopOf(TimedCall* self, PyObject* iterator, int* is_fatal) {
  const int is_training = IsGradEnabled(self);
  *is_fatal = is_training < 0;
  return is_training == 1 && !IsAtItsBeginning(iterator) ? AttributeOrNone(iterator, loop_name)
                                                         : NULL;
}

static HOT PyObject* FetchCall_Call(PyObject* handler, PyObject* original, PyObject* const* args,
                                    size_t flagged_count, PyObject* keywords) {
  TimedCall* self = (TimedCall*)handler;
  PyObject* loop = NULL;
  int is_fatal = 0;
  if (self->is_plain && PyVectorcall_NARGS(flagged_count) == 1 &&
      (keywords == NULL || PyTuple_GET_SIZE(keywords) == 0) &&
      ++self->ask_count % HANDLED_EVERY != 0 && !StepLoop_IsInFetch()) {
    loop = LoopOf(self, args[0], &is_fatal);
    if (is_fatal) return NULL;
  }
  if (loop == NULL) {
    return Handler_Ask(self->base.handler, original, args, flagged_count, keywords);
  }
  PyObject* items = Steps_NextBy(loop, original, args[0]);
  Py_DECREF(loop);
  return items;
}

static PyObject* Make(PyTypeObject* type, DirectCall direct, PyObject* handler,
                      PyObject* is_grad_enabled) {
  TimedCall* self = (TimedCall*)Handler_New(type, handler, direct);
  if (self == NULL || is_grad_enabled == Py_None) return (PyObject*)self;
  Py_INCREF(is_grad_enabled);
  self->is_grad_enabled = is_grad_enabled;
  if (PyCFunction_CheckExact(is_grad_enabled) &&
      PyCFunction_GET_FLAGS(is_grad_enabled) == METH_NOARGS) {
    self->is_grad_enabled_call = PyCFunction_GET_FUNCTION(is_grad_enabled);
  }
  return (PyObject*)self;
}

static PyObject* TimedCall_Make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static char* kWanted[] = {"handler", "scope", "is_grad_enabled", "ends_work", NULL};
  PyObject *handler = NULL, *scope = NULL, *is_grad_enabled = NULL;
  int ends_work = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!Op", kWanted, &handler, &Scope_Type, &scope,
                                   &is_grad_enabled, &ends_work)) {
    return NULL;
  }
  TimedCall* self = (TimedCall*)Make(type, TimedCall_Call, handler, is_grad_enabled);
  if (self == NULL) return NULL;
  self->scope = Scope_Id(scope);
  self->ends_work = (char)ends_work;
  return (PyObject*)self;
}

static PyObject* FetchCall_Make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static char* kWanted[] = {"handler", "is_grad_enabled", NULL};
  PyObject *handler = NULL, *is_grad_enabled = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO", kWanted, &handler, &is_grad_enabled)) {
    return NULL;
  }
  return Make(type, FetchCall_Call, handler, is_grad_enabled);
}

static int TimedCall_Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((Handler*)self)->handler);
  Py_VISIT(((TimedCall*)self)->is_grad_enabled);
  return 0;
}

static void TimedCall_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(((Handler*)self)->handler);
  Py_CLEAR(((TimedCall*)self)->is_grad_enabled);
  Py_TYPE(self)->tp_free(self);
}

static PyMemberDef members[] = {
    {"is_plain", T_BOOL, offsetof(TimedCall, is_plain), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject TimedCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.TimedCall",
    .tp_basicsize = sizeof(TimedCall),
    .tp_dealloc = TimedCall_Dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Handler, call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_traverse = TimedCall_Traverse,
    .tp_members = members,
    .tp_new = TimedCall_Make,
};

PyTypeObject FetchCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.FetchCall",
    .tp_basicsize = sizeof(TimedCall),
    .tp_dealloc = TimedCall_Dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Handler, call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_traverse = TimedCall_Traverse,
    .tp_members = members,
    .tp_new = FetchCall_Make,
};
