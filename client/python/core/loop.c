#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/loop.h"

#include "client/python/core/step_loop.h"

typedef struct {
  PyObject base;
  StepLoop loop;
  int ends_dropped;
} Loop;

static PyObject* Loop_New(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  if (PyTuple_GET_SIZE(args) != 0 || (keywords != NULL && PyDict_GET_SIZE(keywords) != 0)) {
    PyErr_SetString(PyExc_TypeError, "stepwell: Loop() takes no arguments");
    return NULL;
  }
  Loop* loop = (Loop*)type->tp_alloc(type, 0);
  if (loop != NULL) loop->loop.batch = loop->loop.start = -1;
  return (PyObject*)loop;
}

static PyObject* Loop_Begin(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  StepLoop* loop = &((Loop*)self)->loop;
  StepLoop_Leave(loop);
  loop->of = count > 0 && args[0] != Py_None ? args[0] : NULL;
  loop->is_hooked = count > 1 && args[1] == Py_True;
  StepLoop_BeginTallied(loop);
  if (loop->is_hooked) StepLoop_LooksAhead(loop);  // those of a loader that fetches ahead alone
  return PyBool_FromLong(loop->life != NULL);
}

static PyObject* Loop_Count(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  StepLoop* loop = &((Loop*)self)->loop;
  if (count > 1) {
    PyErr_SetString(PyExc_TypeError, "stepwell: count() takes one batch at most");
    return NULL;
  }
  if (count == 1 && args[0] != Py_None) {
    const long batch = PyLong_AsLong(args[0]);
    if (batch < 0 || batch > INT32_MAX) {
      if (PyErr_Occurred() == NULL || PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Format(PyExc_ValueError, "stepwell: batch is %R; allowed: 0 ... 2147483647", args[0]);
      }
      return NULL;
    }
    if (loop->life != NULL) {
      StepLoop_GoOnAt((int32_t)batch);
    } else {
      loop->batch = (int32_t)batch - 1;
    }
  }
  StepLoop_Count(loop);
  return PyLong_FromLong(loop->batch);
}

static PyObject* Loop_Upcoming(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  return PyLong_FromLong(StepLoop_Upcoming(&((Loop*)self)->loop));
}

static PyObject* Loop_BehindTrained(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return PyLong_FromLong(StepLoop_BehindTrained());
}

static PyObject* Loop_Next(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  StepLoop_Next(&((Loop*)self)->loop);
  return PyBool_FromLong(((Loop*)self)->loop.life != NULL);
}

// Hooks leave alone what is fetched meanwhile: it is timed by who says this.
static PyObject* Loop_Fetching(PyObject* self, PyObject* is_begun) {
  const int is_true = PyObject_IsTrue(is_begun);
  if (is_true < 0) return NULL;
  StepLoop_Fetching(&((Loop*)self)->loop, is_true);
  Py_RETURN_NONE;
}

static PyObject* Loop_Fetch(PyObject* self, PyObject* items) {
  if (!PyIter_Check(items)) {
    PyErr_SetString(PyExc_TypeError, "stepwell: fetch() takes an iterator");
    return NULL;
  }
  PyObject* item = StepLoop_Fetch(&((Loop*)self)->loop, items, NULL);
  if (item == NULL && PyErr_Occurred() == NULL) PyErr_SetNone(PyExc_StopIteration);
  return item;
}

static PyObject* Loop_EndsDropped(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  ((Loop*)self)->ends_dropped = 1;
  Py_RETURN_NONE;
}

static PyObject* Loop_Leave(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  StepLoop_Leave(&((Loop*)self)->loop);
  Py_RETURN_NONE;
}

static void Loop_Dealloc(PyObject* self) {
  // Not where an exception leaves the loop that held it: its batch is left midway. One that a name held is dropped when
  // that is handled: its step is whole where it trained.
  if (((Loop*)self)->ends_dropped && PyErr_Occurred() == NULL)
    StepLoop_EndLast(&((Loop*)self)->loop);
  StepLoop_Leave(&((Loop*)self)->loop);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef loop_methods[] = {
    {"begin", (PyCFunction)(void (*)(void))Loop_Begin, METH_FASTCALL,
     "begin($self, of=None, is_hooked=False, /)\n--\n\nThe first step opens. False: inside another "
     "loop's, whose part it is. `of` is the loader, which the caller holds until leave()."},
    {"count", (PyCFunction)(void (*)(void))Loop_Count, METH_FASTCALL,
     "count($self, batch=None, /)\n--\n\nThe batch of the step that is open, else the next one."},
    {"upcoming", Loop_Upcoming, METH_NOARGS,
     "upcoming($self)\n--\n\nWhat count() says next, where it is told nothing."},
    {"behind_trained", Loop_BehindTrained, METH_NOARGS,
     "behind_trained($self)\n--\n\nThe number behind that of the last batch that was trained, "
     "which what hooks take for a training may not be."},
    {"next", Loop_Next, METH_NOARGS,
     "next($self)\n--\n\nThe step ends, and the next one opens. As begin()."},
    {"fetching", Loop_Fetching, METH_O,
     "fetching($self, is_begun, /)\n--\n\nA fetch begins on this thread, or ends."},
    {"fetch", Loop_Fetch, METH_O,
     "fetch($self, items, /)\n--\n\nThe next of them, timed as dataloader_next."},
    {"ends_dropped", Loop_EndsDropped, METH_NOARGS,
     "ends_dropped($self)\n--\n\nThe step that is open has the last batch: dropped, it is whole."},
    {"leave", Loop_Leave, METH_NOARGS, "leave($self)\n--\n\nWhat comes after lies in no step."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Loop_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.Loop",
    .tp_basicsize = sizeof(Loop),
    .tp_dealloc = Loop_Dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The steps of a training whose loop is a framework's.",
    .tp_methods = loop_methods,
    .tp_new = Loop_New,
};
