#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/steps.h"

#include "client/python/core/hot.h"
#include "client/python/core/step_loop.h"

typedef struct {
  PyObject base;
  PyObject* loader;
  PyObject* of;   // what tells it from other loaders; NULL = not known
  int32_t start;  // -1 = go on
} Steps;

typedef struct {
  PyObject base;
  PyObject* items;  // NULL = at its end
  PyObject*
      steps;  // which has the first batch until one of its loops is asked; NULL = asked, or a hook's
  StepLoop loop;  // whose `of` it owns
} StepIterator;

static PyTypeObject StepIterator_Type;

int Steps_Init(void) {
  return StepLoop_Init() && PyType_Ready(&Steps_Type) == 0 && PyType_Ready(&StepIterator_Type) == 0;
}

static HOT void BeginStep(StepLoop* loop) {
  if (loop->is_begun) {
    StepLoop_Next(loop);
  } else {
    StepLoop_Begin(loop);
  }
}

static RARE void EndFetches(StepLoop* loop) {
  StepLoop_Leave(loop);
  // A loader that fails at one batch may have others.
  loop->is_begun = 0;
}

// The item of the step that was begun: of `items`, or by a function. New; NULL at the end, or with an exception set.
static HOT PyObject* FetchItem(StepLoop* loop, PyObject* items, PyObject* original) {
  PyObject* item = StepLoop_Fetch(loop, items, original);
  if (item == NULL) {
    EndFetches(loop);
    return NULL;
  }
  StepLoop_Count(loop);
  return item;
}

// NULL with an exception set: it is something else.
static StepLoop* LoopOfHook(PyObject* loop) {
  if (Py_TYPE(loop) == &StepIterator_Type) return &((StepIterator*)loop)->loop;
  PyErr_SetString(PyExc_TypeError, "stepwell: that is no loop of hooked_loop()");
  return NULL;
}

HOT PyObject* Steps_NextBy(PyObject* loop, PyObject* original, PyObject* iterator) {
  StepLoop* hooked = LoopOfHook(loop);
  if (hooked == NULL) return NULL;
  BeginStep(hooked);
  return FetchItem(hooked, iterator, original);
}

PyObject* Steps_BeginStep(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject* loop = NULL;
  int is_anew = 0;
  if (!PyArg_ParseTuple(args, "O|p:begin_step", &loop, &is_anew)) return NULL;
  StepLoop* hooked = LoopOfHook(loop);
  if (hooked == NULL) return NULL;
  if (is_anew) {
    StepLoop_Leave(hooked);
    hooked->is_begun = 0;
  }
  BeginStep(hooked);
  if (hooked->life == NULL) Py_RETURN_NONE;
  return PyLong_FromLong((long)StepLoop_Upcoming(hooked));
}

PyObject* Steps_FetchStep(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *loop = NULL, *original = NULL, *iterator = NULL;
  if (!PyArg_ParseTuple(args, "OOO:fetch_step", &loop, &original, &iterator)) return NULL;
  StepLoop* hooked = LoopOfHook(loop);
  PyObject* item = hooked == NULL ? NULL : FetchItem(hooked, iterator, original);
  if (item == NULL && PyErr_Occurred() == NULL) PyErr_SetNone(PyExc_StopIteration);
  return item;
}

PyObject* Steps_LeaveLoop(PyObject* Py_UNUSED(module), PyObject* loop) {
  StepLoop* hooked = LoopOfHook(loop);
  if (hooked == NULL) return NULL;
  StepLoop_Leave(hooked);
  hooked->is_begun = 0;
  Py_RETURN_NONE;
}

PyObject* Steps_AskNextBy(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *loop = NULL, *original = NULL, *iterator = NULL;
  if (!PyArg_ParseTuple(args, "OOO:next_by", &loop, &original, &iterator)) return NULL;
  return Steps_NextBy(loop, original, iterator);
}

// The first that is asked has it; those that were made and never asked take none. A second loop, an epoch, goes on.
static RARE void TakeStart(StepIterator* iterator) {
  Steps* steps = (Steps*)iterator->steps;
  iterator->loop.start = steps->start;
  steps->start = -1;
  Py_CLEAR(iterator->steps);
}

static PyObject* StepIterator_Next(PyObject* self) {
  PyObject* items = ((StepIterator*)self)->items;
  StepLoop* loop = &((StepIterator*)self)->loop;
  if (items == NULL) return NULL;
  if (((StepIterator*)self)->steps != NULL) TakeStart((StepIterator*)self);
  BeginStep(loop);
  PyObject* item = FetchItem(loop, items, NULL);
  if (item == NULL) {
    if (PyErr_Occurred() == NULL) Py_CLEAR(((StepIterator*)self)->items);
    return NULL;
  }
  PyObject* batch = PyLong_FromLong(loop->batch);
  PyObject* pair = batch == NULL ? NULL : PyTuple_Pack(2, batch, item);
  Py_XDECREF(batch);
  Py_DECREF(item);
  return pair;
}

static int StepIterator_Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((StepIterator*)self)->items);
  Py_VISIT(((StepIterator*)self)->steps);
  Py_VISIT(((StepIterator*)self)->loop.of);
  return 0;
}

static int StepIterator_Clear(PyObject* self) {
  Py_CLEAR(((StepIterator*)self)->items);
  Py_CLEAR(((StepIterator*)self)->steps);
  return 0;
}

static void StepIterator_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, StepIterator_Dealloc);
  StepLoop_Leave(&((StepIterator*)self)->loop);
  Py_CLEAR(((StepIterator*)self)->items);
  Py_CLEAR(((StepIterator*)self)->steps);
  Py_CLEAR(((StepIterator*)self)->loop.of);
  PyObject_GC_Del(self);
  Py_TRASHCAN_END;
}

static PyTypeObject StepIterator_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.StepIterator",
    .tp_basicsize = sizeof(StepIterator),
    .tp_dealloc = StepIterator_Dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = StepIterator_Traverse,
    .tp_clear = StepIterator_Clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = StepIterator_Next,
};

PyObject* Steps_New(PyObject* loader, int32_t start) {
  if (Py_TYPE(loader)->tp_iter == NULL && !PySequence_Check(loader)) {
    PyErr_Format(PyExc_TypeError,
                 "stepwell: steps: loader is of type %s; allowed: what a for loop takes",
                 Py_TYPE(loader)->tp_name);
    return NULL;
  }
  Steps* steps = PyObject_GC_New(Steps, &Steps_Type);
  if (steps == NULL) return NULL;
  Py_INCREF(loader);
  Py_INCREF(loader);
  steps->loader = steps->of = loader;
  steps->start = start;
  PyObject_GC_Track(steps);
  return (PyObject*)steps;
}

// `items` becomes its own. New; NULL with an exception set.
static PyObject* NewIterator(PyObject* items, PyObject* of, PyObject* steps, int is_hooked) {
  StepIterator* iterator = PyObject_GC_New(StepIterator, &StepIterator_Type);
  if (iterator == NULL) {
    Py_XDECREF(items);
    return NULL;
  }
  iterator->items = items;
  Py_XINCREF(of);
  Py_XINCREF(steps);
  iterator->steps = steps;
  iterator->loop = (StepLoop){.batch = -1, .start = -1, .is_hooked = is_hooked, .of = of};
  PyObject_GC_Track(iterator);
  return (PyObject*)iterator;
}

PyObject* Steps_OfHook(PyObject* Py_UNUSED(module), PyObject* of) {
  return NewIterator(NULL, of == Py_None ? NULL : of, NULL, 1);
}

static PyObject* Steps_Iterate(PyObject* self) {
  Steps* steps = (Steps*)self;
  // The loader's own errors are the training's to see.
  if (Py_EnterRecursiveCall(" in a loader") != 0) return NULL;
  PyObject* items = PyObject_GetIter(steps->loader);
  Py_LeaveRecursiveCall();
  if (items == NULL) return NULL;
  return NewIterator(items, steps->of, self, 0);
}

static Py_ssize_t Steps_Length(PyObject* self) {
  if (Py_EnterRecursiveCall(" in a loader") != 0) return -1;
  const Py_ssize_t length = PyObject_Size(((Steps*)self)->loader);
  Py_LeaveRecursiveCall();
  return length;
}

// As an iterable without a length is: loops are begun with `if`, too.
static int Steps_Bool(PyObject* Py_UNUSED(self)) { return 1; }

static int Steps_Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((Steps*)self)->loader);
  Py_VISIT(((Steps*)self)->of);
  return 0;
}

static int Steps_Clear(PyObject* self) {
  PyObject* loader = ((Steps*)self)->loader;
  Py_INCREF(Py_None);
  ((Steps*)self)->loader = Py_None;
  Py_XDECREF(loader);
  Py_CLEAR(((Steps*)self)->of);
  return 0;
}

static void Steps_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, Steps_Dealloc);
  Py_CLEAR(((Steps*)self)->loader);
  Py_CLEAR(((Steps*)self)->of);
  PyObject_GC_Del(self);
  Py_TRASHCAN_END;
}

static PyNumberMethods steps_number = {.nb_bool = Steps_Bool};
static PySequenceMethods steps_sequence = {.sq_length = Steps_Length};

PyTypeObject Steps_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell.Steps",
    .tp_basicsize = sizeof(Steps),
    .tp_dealloc = Steps_Dealloc,
    .tp_as_number = &steps_number,
    .tp_as_sequence = &steps_sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Pairs of a batch's index and the batch, a step each; made by Run.steps().",
    .tp_traverse = Steps_Traverse,
    .tp_clear = Steps_Clear,
    .tp_iter = Steps_Iterate,
};
