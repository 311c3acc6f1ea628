#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/steps.h"

#include <limits.h>
#include <time.h>

#include "client/python/core/names.h"
#include "client/python/core/tally.h"

typedef struct {
  PyObject base;
  PyObject* loader;
  int32_t start;  // -1 = go on
  int is_hooked;
} Steps;

// Whether a loop still goes on. It outlives the loop, which another thread may drop.
typedef struct {
  int holder_count;  // the loop, and the thread that began it
  int is_over;
  int is_hooked;
  int32_t batch;        // of the step that is open, -1 while its batch is fetched
  stepwell_scope work;  // `train_batch` of a hook's; path 0 = not open
} LoopLife;

typedef struct {
  PyObject base;
  PyObject* items;  // NULL = at its end
  int32_t batch;    // of the item that was given last
  int is_begun;
  int is_hooked;
  LoopLife* life;           // NULL = inside another loop's step: its batches, from 0, are no steps
  uint32_t tallied_thread;  // whose steps are counted, of this loop; 0 = not of this loop
  uint64_t step_start_ns;
} StepIterator;

static PyTypeObject StepIterator_Type;
static ScopeName* fetch_scope;
static ScopeName* work_scope;
static int32_t next_batch;
// Of the loop whose steps the calling thread is in, or was in. A thread that ends leaves its last one.
static _Thread_local LoopLife* loop_of_thread;
static _Thread_local int fetch_depth;

static ScopeName* FindScope(const char* text) {
  PyObject* name = PyUnicode_InternFromString(text);
  ScopeName* found = name == NULL ? NULL : Names_FindScope(name);
  Py_XDECREF(name);
  return found;
}

int Steps_Init(void) {
  fetch_scope = FindScope("dataloader_next");
  work_scope = FindScope("train_batch");
  return fetch_scope != NULL && work_scope != NULL && PyType_Ready(&Steps_Type) == 0 &&
         PyType_Ready(&StepIterator_Type) == 0 && PyType_Ready(&Loop_Type) == 0;
}

static uint64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void LetGo(LoopLife* life) {
  if (life != NULL && --life->holder_count == 0) PyMem_Free(life);
}

void Steps_Reset(void) {
  next_batch = 0;
  LetGo(loop_of_thread);
  loop_of_thread = NULL;
}

static void BeginSteps(StepIterator* loop) {
  loop->is_begun = 1;
  loop->tallied_thread = 0;
  const int is_nested = loop_of_thread != NULL && !loop_of_thread->is_over;
  loop->life = is_nested ? NULL : PyMem_Calloc(1, sizeof(LoopLife));
  if (loop->life == NULL) return;
  loop->life->holder_count = 2;
  loop->life->is_hooked = loop->is_hooked;
  loop->life->batch = -1;
  LetGo(loop_of_thread);
  loop_of_thread = loop->life;
  stepwell_step_begin();
  loop->step_start_ns = NowNs();
}

// The loop of the step that the calling thread is in, between two fetches; NULL = none.
static LoopLife* OpenLoop(void) {
  LoopLife* life = loop_of_thread;
  return life != NULL && !life->is_over && fetch_depth == 0 ? life : NULL;
}

static void EndWork(LoopLife* life) {
  const uint32_t path = life->work.path;
  if (path != 0) Tally_Add(&life->work, path, work_scope->id, stepwell_scope_end(&life->work));
}

static void NextStep(StepIterator* loop) {
  if (loop->life == NULL) return;
  EndWork(loop->life);
  loop->life->batch = -1;
  stepwell_step_end(loop->batch);
  const uint64_t now_ns = NowNs();
  if (loop->tallied_thread != 0 && loop->tallied_thread == tally_thread && stepwell_enabled()) {
    Tally_EndStep(now_ns - loop->step_start_ns);
  }
  loop->step_start_ns = now_ns;
}

// What comes after lies in no step. Its last fetch brought nothing, or its batch was left midway.
static void LeaveSteps(StepIterator* loop) {
  if (loop->life == NULL) return;
  loop->life->is_over = 1;
  loop->life->work.path = 0;
  // Another thread may drop it: there it is no step that is left.
  if (loop->life == loop_of_thread && stepwell_enabled()) stepwell_step_leave();
  LetGo(loop->life);
  loop->life = NULL;
  if (loop->tallied_thread == 0 || loop->tallied_thread != tally_thread) return;
  Tally_DropStep();
  tally_thread = 0;
}

// Timed. NULL at the end, or with an exception set.
static PyObject* Fetch(StepIterator* loop) {
  stepwell_scope timing;
  stepwell_scope_begin(&timing, fetch_scope->id);
  const uint32_t path = timing.path;
  if (path != 0 && loop->life != NULL && tally_thread == 0) {
    tally_thread = loop->tallied_thread = timing.thread;
  }
  // Theirs may ask this loop for its next batch, too, or another thread: it then comes to its end meanwhile.
  PyObject* items = loop->items;
  PyObject* item = NULL;
  Py_INCREF(items);
  if (Py_EnterRecursiveCall(" in a loader") == 0) {
    ++fetch_depth;
    item = PyIter_Next(items);
    --fetch_depth;
    Py_LeaveRecursiveCall();
  }
  Py_DECREF(items);
  // Code of the loader's may have begun and left other scopes meanwhile.
  if (path != 0) Tally_Add(&timing, path, fetch_scope->id, stepwell_scope_end(&timing));
  return item;
}

static void CountBatch(StepIterator* loop) {
  if (loop->life == NULL) {
    ++loop->batch;
    return;
  }
  loop->life->batch = loop->batch = next_batch;
  if (next_batch < INT32_MAX) ++next_batch;
}

static PyObject* StepIterator_Next(PyObject* self) {
  StepIterator* loop = (StepIterator*)self;
  if (loop->items == NULL) return NULL;
  if (loop->is_begun) {
    NextStep(loop);
  } else {
    BeginSteps(loop);
  }
  PyObject* item = Fetch(loop);
  if (item == NULL) {
    LeaveSteps(loop);
    // A loader that fails at one batch may have others.
    loop->is_begun = 0;
    if (PyErr_Occurred() == NULL) Py_CLEAR(loop->items);
    return NULL;
  }
  CountBatch(loop);
  PyObject* batch = PyLong_FromLong(loop->batch);
  PyObject* pair = batch == NULL ? NULL : PyTuple_Pack(2, batch, item);
  Py_XDECREF(batch);
  Py_DECREF(item);
  return pair;
}

static int StepIterator_Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((StepIterator*)self)->items);
  return 0;
}

static int StepIterator_Clear(PyObject* self) {
  Py_CLEAR(((StepIterator*)self)->items);
  return 0;
}

static void StepIterator_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, StepIterator_Dealloc);
  LeaveSteps((StepIterator*)self);
  Py_CLEAR(((StepIterator*)self)->items);
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

// A loop of a framework's, which tells of its batches by calls. Its `items` stay NULL.
static PyObject* Loop_New(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  if (PyTuple_GET_SIZE(args) != 0 || (keywords != NULL && PyDict_GET_SIZE(keywords) != 0)) {
    PyErr_SetString(PyExc_TypeError, "stepwell: Loop() takes no arguments");
    return NULL;
  }
  StepIterator* loop = (StepIterator*)type->tp_alloc(type, 0);
  if (loop != NULL) loop->batch = -1;
  return (PyObject*)loop;
}

static PyObject* Loop_Begin(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  StepIterator* loop = (StepIterator*)self;
  LeaveSteps(loop);
  // A scope knows its thread's number. The step that opens forgets that it was begun: it is no event.
  stepwell_scope known = {.path = 0};
  if (loop_of_thread == NULL || loop_of_thread->is_over) {
    stepwell_scope_begin(&known, fetch_scope->id);
  }
  BeginSteps(loop);
  if (loop->life == NULL) Py_RETURN_FALSE;
  if (known.path != 0 && tally_thread == 0) tally_thread = loop->tallied_thread = known.thread;
  Py_RETURN_TRUE;
}

static PyObject* Loop_Count(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  StepIterator* loop = (StepIterator*)self;
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
      next_batch = (int32_t)batch;
    } else {
      loop->batch = (int32_t)batch - 1;
    }
  }
  CountBatch(loop);
  return PyLong_FromLong(loop->batch);
}

static PyObject* Loop_Upcoming(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  const int is_in_step = loop_of_thread != NULL && !loop_of_thread->is_over;
  StepIterator* loop = (StepIterator*)self;
  return PyLong_FromLong(loop->life == NULL && is_in_step ? loop->batch + 1L : (long)next_batch);
}

static PyObject* Loop_Next(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  NextStep((StepIterator*)self);
  Py_RETURN_NONE;
}

// Hooks leave alone what is fetched meanwhile: it is timed by who says this.
static PyObject* Loop_Fetching(PyObject* Py_UNUSED(self), PyObject* is_begun) {
  const int is_true = PyObject_IsTrue(is_begun);
  if (is_true < 0) return NULL;
  fetch_depth += is_true ? 1 : -1;
  Py_RETURN_NONE;
}

static PyObject* Loop_Leave(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  LeaveSteps((StepIterator*)self);
  Py_RETURN_NONE;
}

static void Loop_Dealloc(PyObject* self) {
  LeaveSteps((StepIterator*)self);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef loop_methods[] = {
    {"begin", Loop_Begin, METH_NOARGS,
     "begin($self)\n--\n\nThe first step opens. False: inside another loop's, whose part it is."},
    {"count", (PyCFunction)(void (*)(void))Loop_Count, METH_FASTCALL,
     "count($self, batch=None, /)\n--\n\nThe batch of the step that is open, else the next one."},
    {"upcoming", Loop_Upcoming, METH_NOARGS,
     "upcoming($self)\n--\n\nWhat count() says next, where it is told nothing."},
    {"next", Loop_Next, METH_NOARGS, "next($self)\n--\n\nThe step ends, and the next one opens."},
    {"fetching", Loop_Fetching, METH_O,
     "fetching($self, is_begun, /)\n--\n\nA fetch begins on this thread, or ends."},
    {"leave", Loop_Leave, METH_NOARGS, "leave($self)\n--\n\nWhat comes after lies in no step."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Loop_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core.Loop",
    .tp_basicsize = sizeof(StepIterator),
    .tp_dealloc = Loop_Dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The steps of a training whose loop is a framework's.",
    .tp_methods = loop_methods,
    .tp_new = Loop_New,
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
  steps->loader = loader;
  steps->start = start;
  steps->is_hooked = 0;
  PyObject_GC_Track(steps);
  return (PyObject*)steps;
}

PyObject* Steps_OfHook(PyObject* Py_UNUSED(module), PyObject* loader) {
  PyObject* steps = Steps_New(loader, -1);
  if (steps != NULL) ((Steps*)steps)->is_hooked = 1;
  return steps;
}

PyObject* Steps_BeginWork(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  LoopLife* life = OpenLoop();
  if (life != NULL && life->is_hooked && life->work.path == 0 && stepwell_enabled() &&
      stepwell_scope_path() == 0) {
    stepwell_scope_begin(&life->work, work_scope->id);
  }
  Py_RETURN_NONE;
}

PyObject* Steps_EndWork(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  LoopLife* life = OpenLoop();
  if (life != NULL && life->work.path != 0 && stepwell_enabled() &&
      stepwell_scope_path() == life->work.path) {
    EndWork(life);
  }
  Py_RETURN_NONE;
}

PyObject* Steps_IsFetching(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  return PyBool_FromLong(fetch_depth > 0);
}

PyObject* Steps_Batch(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  const LoopLife* life = OpenLoop();
  return PyLong_FromLong(life == NULL ? -1 : (long)life->batch);
}

static PyObject* Steps_Iterate(PyObject* self) {
  Steps* steps = (Steps*)self;
  // The loader's own errors are the training's to see.
  if (Py_EnterRecursiveCall(" in a loader") != 0) return NULL;
  PyObject* items = PyObject_GetIter(steps->loader);
  Py_LeaveRecursiveCall();
  if (items == NULL) return NULL;
  StepIterator* loop = PyObject_GC_New(StepIterator, &StepIterator_Type);
  if (loop == NULL) {
    Py_DECREF(items);
    return NULL;
  }
  loop->items = items;
  loop->batch = -1;
  loop->is_begun = 0;
  loop->is_hooked = steps->is_hooked;
  loop->life = NULL;
  loop->tallied_thread = 0;
  loop->step_start_ns = 0;
  // A second loop over it, an epoch, goes on.
  if (steps->start >= 0) next_batch = steps->start;
  steps->start = -1;
  PyObject_GC_Track(loop);
  return (PyObject*)loop;
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
  return 0;
}

static int Steps_Clear(PyObject* self) {
  PyObject* loader = ((Steps*)self)->loader;
  Py_INCREF(Py_None);
  ((Steps*)self)->loader = Py_None;
  Py_XDECREF(loader);
  return 0;
}

static void Steps_Dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, Steps_Dealloc);
  Py_CLEAR(((Steps*)self)->loader);
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
