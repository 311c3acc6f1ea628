#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/handler.h"

#include "client/python/core/hot.h"
#include "client/python/core/timed_call.h"
#include "client/python/core/transfer_call.h"

// Arguments up to here need no memory.
#define FEW_COUNT 16

static PyObject* Handler_Vectorcall(PyObject* callable, PyObject* const* args, size_t flagged_count,
                                    PyObject* keywords) {
  Handler* self = (Handler*)callable;
  const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  // Without an original: its handler says what is wrong.
  if (count < 1) return PyObject_Vectorcall(self->handler, args, flagged_count, keywords);
  return self->direct(callable, args[0], args + 1, (size_t)count - 1, keywords);
}

Handler* Handler_New(PyTypeObject* type, PyObject* handler, DirectCall direct) {
  Handler* self = (Handler*)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  Py_INCREF(handler);
  self->handler = handler;
  self->call = Handler_Vectorcall;
  self->direct = direct;
  return self;
}

DirectCall Handler_DirectOf(PyObject* handler) {
  const PyTypeObject* type = Py_TYPE(handler);
  const int is_one =
      type == &TimedCall_Type || type == &FetchCall_Type || type == &TransferCall_Type;
  return is_one ? ((Handler*)handler)->direct : NULL;
}

RARE PyObject* Handler_Ask(PyObject* handler, PyObject* original, PyObject* const* args,
                           size_t flagged_count, PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  const Py_ssize_t all = count + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords));
  PyObject* few[FEW_COUNT + 2];
  PyObject** room = few;
  if (all > FEW_COUNT) {
    room = PyMem_Malloc(((size_t)all + 2) * sizeof(PyObject*));
    if (room == NULL) return PyErr_NoMemory();
  }
  // The first place is the callee's, as the flag says.
  room[1] = original;
  for (Py_ssize_t i = 0; i < all; ++i) room[i + 2] = args[i];
  PyObject* result = PyObject_Vectorcall(
      handler, room + 1, ((size_t)count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
  if (room != few) PyMem_Free(room);
  return result;
}
