#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/transfer_call.h"

#include <stddef.h>
#include <string.h>

#include "client/python/core/handler.h"
#include "client/python/core/hot.h"
#include "client/python/core/step_loop.h"

typedef enum { kFrom, kTo, kByArgument, kAny } Which;

typedef struct {
  Handler base;
  PyObject* tensors;
  PyObject* host;
  PyObject* dtype;
  Which which;
} TransferCall;

static PyObject* is_cpu_name;
static PyObject* type_name;

int TransferCall_Init(void) {
  is_cpu_name = PyUnicode_InternFromString("is_cpu");
  type_name = PyUnicode_InternFromString("type");
  return is_cpu_name != NULL && type_name != NULL && PyType_Ready(&TransferCall_Type) == 0;
}

// What is raised meanwhile its handler meets, too, and says so; what is no Exception passes.
static int IsUnknown(void) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  return 1;
}

static HOT int IsLookedAt(const TransferCall* self, PyObject* tensor) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->tensors); ++i) {
    if ((PyObject*)Py_TYPE(tensor) == PyTuple_GET_ITEM(self->tensors, i)) return 1;
  }
  return 0;
}

static int NamesHost(PyObject* text) {
  return PyUnicode_GET_LENGTH(text) >= 3 && PyUnicode_READ_CHAR(text, 0) == 'c' &&
         PyUnicode_READ_CHAR(text, 1) == 'p' && PyUnicode_READ_CHAR(text, 2) == 'u';
}

// Whether the handler is to be called for to(wanted, ...) of a tensor of the host's, or of a device's; -1 with an
// exception set.
static HOT int Moves(const TransferCall* self, PyObject* wanted, int is_on_host,
                     PyObject* keywords) {
  if (PyUnicode_Check(wanted)) return NamesHost(wanted) != is_on_host;
  if ((PyObject*)Py_TYPE(wanted) == self->dtype) {
    return keywords != NULL && PyTuple_GET_SIZE(keywords) > 0;
  }
  if (Py_TYPE(wanted) != Py_TYPE(self->host)) return 1;
  // Its `type` is asked for half a microsecond.
  const int is_host = PyObject_RichCompareBool(wanted, self->host, Py_EQ);
  if (is_host < 0) return IsUnknown();
  if (is_host || is_on_host) return is_host != is_on_host;
  PyObject* type = PyObject_GetAttr(wanted, type_name);
  if (type == NULL) return IsUnknown();
  const int moves = !PyUnicode_Check(type) || NamesHost(type) != is_on_host;
  Py_DECREF(type);
  return moves;
}

// As Moves(), of all kinds of calls.
static HOT int IsHandlers(const TransferCall* self, PyObject* const* args, Py_ssize_t count,
                          PyObject* keywords) {
  // Parameters on their way at the start are no training's.
  if (!StepLoop_IsInBatch() || !IsLookedAt(self, args[0])) return 0;
  if (self->which == kAny) return 1;
  PyObject* is_cpu = PyObject_GetAttr(args[0], is_cpu_name);
  if (is_cpu == NULL) return IsUnknown();
  const int is_on_host = is_cpu == Py_True;
  Py_DECREF(is_cpu);
  if (self->which == kFrom) return !is_on_host;
  if (self->which == kTo) return is_on_host;
  return count < 2 ? 1 : Moves(self, args[1], is_on_host, keywords);
}

static HOT PyObject* TransferCall_Call(PyObject* handler, PyObject* original, PyObject* const* args,
                                       size_t flagged_count, PyObject* keywords) {
  const TransferCall* self = (TransferCall*)handler;
  const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  const int is_handlers = count < 1 ? 0 : IsHandlers(self, args, count, keywords);
  if (is_handlers < 0) return NULL;
  if (is_handlers) {
    return Handler_Ask(self->base.handler, original, args, flagged_count, keywords);
  }
  return PyObject_Vectorcall(original, args, flagged_count, keywords);
}

static int WhichOf(const char* text, Which* which) {
  static const char* const kTexts[] = {"from", "to", "by argument", "any"};
  for (size_t i = 0; i < sizeof(kTexts) / sizeof(kTexts[0]); ++i) {
    if (strcmp(text, kTexts[i]) != 0) continue;
    *which = (Which)i;
    return 1;
  }
  PyErr_Format(PyExc_ValueError, "stepwell: a transfer is %s; allowed: from, to, by argument, any",
               text);
  return 0;
}

static PyObject* TransferCall_Make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static char* kWanted[] = {"", "", "", "", "", NULL};
  PyObject *handler = NULL, *tensors = NULL, *host = NULL, *dtype = NULL;
  const char* text = NULL;
  Which which = kAny;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OsO!OO:TransferCall", kWanted, &handler, &text,
                                   &PyTuple_Type, &tensors, &host, &dtype) ||
      !WhichOf(text, &which)) {
    return NULL;
  }
  TransferCall* self = (TransferCall*)Handler_New(type, handler, TransferCall_Call);
  if (self == NULL) return NULL;
  Py_INCREF(tensors);
  Py_INCREF(host);
  Py_INCREF(dtype);
  self->tensors = tensors;
  self->host = host;
  self->dtype = dtype;
  self->which = which;
  return (PyObject*)self;
}

static int TransferCall_Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((Handler*)self)->handler);
  Py_VISIT(((TransferCall*)self)->tensors);
  Py_VISIT(((TransferCall*)self)->host);
  Py_VISIT(((TransferCall*)self)->dtype);
  return 0;
}

static void TransferCall_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(((Handler*)self)->handler);
  Py_CLEAR(((TransferCall*)self)->tensors);
  Py_CLEAR(((TransferCall*)self)->host);
  Py_CLEAR(((TransferCall*)self)->dtype);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject TransferCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.TransferCall",
    .tp_basicsize = sizeof(TransferCall),
    .tp_dealloc = TransferCall_Dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Handler, call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_traverse = TransferCall_Traverse,
    .tp_new = TransferCall_Make,
};
