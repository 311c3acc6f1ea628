#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/hooked.h"

#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#include "client/python/core/handler.h"
#include "client/python/core/hot.h"
#include "client/python/core/step_loop.h"
#include "client/python/core/timed_call.h"
#include "stepwell/recorder.h"

// More are never made: what has one past it is not hooked.
#define HANDLER_COUNT_MAX 64

typedef struct {
  PyObject base;
  vectorcallfunc call;
  PyObject* original;
  PyObject* handler;
  DirectCall direct;  // the handler's; NULL = it is called as any function
  uint64_t bit;
  PyObject* reduce;  // NULL = by the original's name
  PyObject* weak_references;
  int is_followed;  // its handler is called where a schedule is followed, too
} Hooked;

// Of those whose handler the thread is in.
static _Thread_local uint64_t busy_bits;
static PyObject* handlers[HANDLER_COUNT_MAX];  // owned; their places are their bits
static int handler_count;
static HOT_DATA int is_waiting;
static HOT_DATA int is_following;
static PyObject* worker_question;
static HOT_DATA int is_worker_known;
static HOT_DATA int is_worker;
// Steps are those of the main thread. Others call the same functions: autograd's under activation
// checkpointing, those of replicas and of gradients' reductions.
static HOT_DATA unsigned long main_thread;

static int KnowMainThread(void) {
  if (main_thread != 0) return 1;
  PyObject* threading = PyImport_ImportModule("threading");
  if (threading == NULL) return 0;
  PyObject* thread = PyObject_CallMethod(threading, "main_thread", NULL);
  Py_DECREF(threading);
  if (thread == NULL) return 0;
  PyObject* ident = PyObject_GetAttrString(thread, "ident");
  Py_DECREF(thread);
  if (ident == NULL) return 0;
  main_thread = PyLong_AsUnsignedLong(ident);
  Py_DECREF(ident);
  return PyErr_Occurred() == NULL;
}

PyObject* Hooked_Await(PyObject* Py_UNUSED(module), PyObject* wanted) {
  const int is_true = PyObject_IsTrue(wanted);
  if (is_true < 0) return NULL;
  is_waiting = is_true;
  Py_RETURN_NONE;
}

PyObject* Hooked_Follow(PyObject* Py_UNUSED(module), PyObject* wanted) {
  const int is_true = PyObject_IsTrue(wanted);
  if (is_true < 0) return NULL;
  is_following = is_true;
  Py_RETURN_NONE;
}

PyObject* Hooked_CallWithin(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *watched = NULL, *function = NULL, *given = NULL, *keywords = NULL;
  if (!PyArg_ParseTuple(args, "OOO!O!:call_within", &watched, &function, &PyTuple_Type, &given,
                        &PyDict_Type, &keywords) ||
      PyObject_SetAttrString(watched, "is_within", Py_True) < 0) {
    return NULL;
  }
  PyObject* result = PyObject_Call(function, given, keywords);
  PyObject *type = NULL, *error = NULL, *trace = NULL;
  PyErr_Fetch(&type, &error, &trace);
  if (PyObject_SetAttrString(watched, "is_within", Py_False) < 0) PyErr_Clear();
  PyErr_Restore(type, error, trace);
  return result;
}

PyObject* Hooked_AskForWorker(PyObject* Py_UNUSED(module), PyObject* question) {
  PyObject* before = worker_question;
  Py_INCREF(question);
  worker_question = question;
  Py_XDECREF(before);
  is_worker_known = 0;
  Py_RETURN_NONE;
}

void Hooked_AfterFork(void) {
  is_worker_known = 0;
  busy_bits = 0;
  if (main_thread != 0) main_thread = PyThread_get_thread_ident();
}

// -1 with an exception set, which is no Exception.
static RARE int IsWorker(void) {
  if (is_worker_known || worker_question == NULL) return is_worker;
  PyObject* answer = PyObject_CallObject(worker_question, NULL);
  if (answer == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
  }
  is_worker = answer == Py_True;
  is_worker_known = answer != Py_False;
  Py_DECREF(answer);
  return is_worker;
}

// Of the handler; -1 with an exception set.
static int PlaceOf(PyObject* handler) {
  for (int i = 0; i < handler_count; ++i) {
    if (handlers[i] == handler) return i;
  }
  if (handler_count == HANDLER_COUNT_MAX) {
    PyErr_Format(PyExc_ValueError, "stepwell: there are %d hooks; no more are allowed",
                 HANDLER_COUNT_MAX);
    return -1;
  }
  Py_INCREF(handler);
  handlers[handler_count] = handler;
  return handler_count++;
}

// The framework's alone. Loops that are asked no more are told by it, also while nothing is recorded.
static RARE PyObject* CallUnrecorded(Hooked* self, PyObject* const* args, size_t flagged_count,
                                     PyObject* keywords) {
  PyObject* result = PyObject_Vectorcall(self->original, args, flagged_count, keywords);
  if (TimedCall_EndsWork(self->handler) && PyThread_get_thread_ident() == main_thread) {
    StepLoop_CloseWork();
  }
  return result;
}

// In a fetch, whose part it is.
static RARE PyObject* CallInFetch(Hooked* self, PyObject* const* args, size_t flagged_count,
                                  PyObject* keywords) {
  PyObject* result = PyObject_Vectorcall(self->original, args, flagged_count, keywords);
  if (TimedCall_EndsWork(self->handler)) StepLoop_UpdateInFetch();
  return result;
}

static HOT PyObject* Hooked_Vectorcall(PyObject* callable, PyObject* const* args,
                                       size_t flagged_count, PyObject* keywords) {
  Hooked* self = (Hooked*)callable;
  if (!stepwell_enabled() && !is_waiting && !(is_following && self->is_followed)) {
    return CallUnrecorded(self, args, flagged_count, keywords);
  }
  uint64_t* busy = &busy_bits;
  if ((*busy & self->bit) != 0 || PyThread_get_thread_ident() != main_thread) {
    return PyObject_Vectorcall(self->original, args, flagged_count, keywords);
  }
  if (StepLoop_IsInFetch()) return CallInFetch(self, args, flagged_count, keywords);
  if (!is_worker_known || is_worker) {
    const int is_of_worker = IsWorker();
    if (is_of_worker < 0) return NULL;
    if (is_of_worker) return PyObject_Vectorcall(self->original, args, flagged_count, keywords);
  }
  *busy |= self->bit;
  PyObject* result =
      self->direct != NULL
          ? self->direct(self->handler, self->original, args, flagged_count, keywords)
          : Handler_Ask(self->handler, self->original, args, flagged_count, keywords);
  *busy &= ~self->bit;
  return result;
}

static PyObject* Hooked_Make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static char* kWanted[] = {"original", "handler", "reduce", "is_followed", NULL};
  PyObject *original = NULL, *handler = NULL, *reduce = NULL;
  int is_followed = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|Op", kWanted, &original, &handler, &reduce,
                                   &is_followed)) {
    return NULL;
  }
  if (!PyCallable_Check(original) || !PyCallable_Check(handler)) {
    PyErr_SetString(PyExc_TypeError, "stepwell: a hook is of two functions");
    return NULL;
  }
  if (!KnowMainThread()) return NULL;
  const int place = PlaceOf(handler);
  if (place < 0) return NULL;
  Hooked* self = (Hooked*)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  Py_INCREF(original);
  Py_INCREF(handler);
  Py_XINCREF(reduce);
  self->original = original;
  self->handler = handler;
  self->direct = Handler_DirectOf(handler);
  self->reduce = reduce;
  self->bit = (uint64_t)1 << place;
  self->is_followed = is_followed || Py_TYPE(handler) == &FetchCall_Type;
  self->call = Hooked_Vectorcall;
  return (PyObject*)self;
}

static PyObject* Hooked_Get(PyObject* self, PyObject* object, PyObject* Py_UNUSED(type)) {
  if (object == NULL || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

// What it has not itself it has as the original: __name__, __doc__, attributes that others gave that.
static PyObject* Hooked_GetAttribute(PyObject* self, PyObject* name) {
  static const char* const kOwn[] = {"__class__",     "__get__", "__call__", "__wrapped__",
                                     "__reduce_ex__", "__eq__",  "__hash__"};
  for (size_t i = 0; i < sizeof(kOwn) / sizeof(kOwn[0]); ++i) {
    if (PyUnicode_CompareWithASCIIString(name, kOwn[i]) == 0) {
      return PyObject_GenericGetAttr(self, name);
    }
  }
  return PyObject_GetAttr(((Hooked*)self)->original, name);
}

// Attributes that others give it are the original's.
static int Hooked_SetAttribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(((Hooked*)self)->original, name, value);
}

static PyObject* Unhooked(PyObject* object) {
  return Py_TYPE(object) == &Hooked_Type ? ((Hooked*)object)->original : object;
}

static PyObject* Hooked_Compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  return PyObject_RichCompare(Unhooked(self), Unhooked(other), operation);
}

static Py_hash_t Hooked_Hash(PyObject* self) { return PyObject_Hash(((Hooked*)self)->original); }

static PyObject* Hooked_Repr(PyObject* self) { return PyObject_Repr(((Hooked*)self)->original); }

// Functions of Python's are pickled by a name, which is looked up and compared; those of C have their own ways.
static PyObject* Hooked_Reduce(PyObject* self, PyObject* protocol) {
  const Hooked* hooked = (Hooked*)self;
  if (!PyFunction_Check(hooked->original)) {
    return PyObject_CallMethod(hooked->original, "__reduce_ex__", "O", protocol);
  }
  if (hooked->reduce != NULL) return PyObject_CallOneArg(hooked->reduce, self);
  return PyObject_GetAttrString(hooked->original, "__qualname__");
}

static int Hooked_Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((Hooked*)self)->original);
  Py_VISIT(((Hooked*)self)->handler);
  Py_VISIT(((Hooked*)self)->reduce);
  return 0;
}

static void Hooked_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (((Hooked*)self)->weak_references != NULL) PyObject_ClearWeakRefs(self);
  Py_CLEAR(((Hooked*)self)->original);
  Py_CLEAR(((Hooked*)self)->handler);
  Py_CLEAR(((Hooked*)self)->reduce);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef hooked_methods[] = {
    {"__reduce_ex__", Hooked_Reduce, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef hooked_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Hooked, original), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject Hooked_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.Hooked",
    .tp_basicsize = sizeof(Hooked),
    .tp_dealloc = Hooked_Dealloc,
    .tp_repr = Hooked_Repr,
    .tp_hash = Hooked_Hash,
    .tp_richcompare = Hooked_Compare,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Hooked, call),
    .tp_weaklistoffset = offsetof(Hooked, weak_references),
    .tp_getattro = Hooked_GetAttribute,
    .tp_setattro = Hooked_SetAttribute,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = Hooked_Traverse,
    .tp_descr_get = Hooked_Get,
    .tp_methods = hooked_methods,
    .tp_members = hooked_members,
    .tp_new = Hooked_Make,
};
