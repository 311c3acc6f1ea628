// stepwell._core: the recorder's C ABI as Python calls it. Its public face is the package
// `stepwell`, which checks what it hands over.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdlib.h>

#include "client/python/core/around.h"
#include "client/python/core/capture.h"
#include "client/python/core/environment.h"
#include "client/python/core/hooked.h"
#include "client/python/core/loop.h"
#include "client/python/core/mirror.h"
#include "client/python/core/names.h"
#include "client/python/core/recording.h"
#include "client/python/core/scope.h"
#include "client/python/core/series.h"
#include "client/python/core/step_loop.h"
#include "client/python/core/steps.h"
#include "client/python/core/tally.h"
#include "client/python/core/timed_call.h"
#include "client/python/core/transfer_call.h"

// The recorder's words are valid until its next open, which another thread may call.
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;

// open(spool_dir, server, project, trial, attempt_key, token, rank, world_size, labels, agent,
//      start_agent, system_metrics, interval_us, groups, without, with_): the state.
static PyObject* Open(PyObject* Py_UNUSED(self), PyObject* args) {
  stepwell_options options;
  stepwell_options_init(&options);
  PyObject* labels = NULL;
  Py_ssize_t spool_bytes = 0, agent_bytes = 0;  // both are bytes: a path need not be UTF-8
  int rank = -1, world_size = -1, start_agent = 1, system_metrics = 1;
  long long interval_us = 0;
  if (!PyArg_ParseTuple(args, "z#zzzzziiO!z#ppLzzz:open", &options.spool_dir, &spool_bytes,
                        &options.server, &options.project, &options.trial, &options.attempt_key,
                        &options.token, &rank, &world_size, &PyDict_Type, &labels, &options.agent,
                        &agent_bytes, &start_agent, &system_metrics, &interval_us, &options.groups,
                        &options.without, &options.with)) {
    return NULL;
  }
  options.rank = rank;
  options.world_size = world_size;
  options.start_agent = start_agent;
  options.system_metrics = system_metrics;
  options.interval_us = interval_us;
  stepwell_label* views = Series_Labels(labels, &options.label_count);
  if (views == NULL) return NULL;
  options.labels = views;
  // Before the lock is given back: another thread that sets a variable moves what is read of it.
  char** variables = Environment_Copy();
  if (variables == NULL) {
    PyMem_Free(views);
    return PyErr_NoMemory();
  }
  options.environment = (const char* const*)variables;
  stepwell_state state = STEPWELL_CLOSED;
  Py_BEGIN_ALLOW_THREADS;
  pthread_mutex_lock(&words_lock);
  state = stepwell_open(&options);
  pthread_mutex_unlock(&words_lock);
  Py_END_ALLOW_THREADS;
  PyMem_Free(variables);
  PyMem_Free(views);
  return PyLong_FromLong((long)state);
}

static const char* const kClosing = "stepwell._core.closing";

static void EndClosing(PyObject* held) {
  stepwell_closing* closing = (stepwell_closing*)PyCapsule_GetPointer(held, kClosing);
  // Unmaps megabytes of rings, and closes files.
  Py_BEGIN_ALLOW_THREADS;
  stepwell_close_end(closing);
  Py_END_ALLOW_THREADS;
}

static PyObject* Leave(PyObject* list, stepwell_closing* (*begin)(void)) {
  if (!PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "close_begin: not a list");
    return NULL;
  }
  stepwell_closing* closing = NULL;
  Py_BEGIN_ALLOW_THREADS;
  closing = begin();
  Py_END_ALLOW_THREADS;
  if (closing == NULL) Py_RETURN_FALSE;
  PyObject* held = PyCapsule_New(closing, kClosing, EndClosing);
  if (held == NULL) {
    stepwell_close_end(closing);
    return NULL;
  }
  const int failed = PyList_Append(list, held);
  Py_DECREF(held);
  if (failed != 0) return NULL;
  Py_RETURN_TRUE;
}

// close_begin(list): appends what close_await() takes, which is ended where nobody has it any more. In one, for a
// handler of a signal that raises in between would lose it. False = nothing was open.
static PyObject* CloseBegin(PyObject* Py_UNUSED(self), PyObject* list) {
  return Leave(list, stepwell_close_begin);
}

// switch_off_begin(list): the same, and what calls would record from here on is no loss.
static PyObject* SwitchOffBegin(PyObject* Py_UNUSED(self), PyObject* list) {
  return Leave(list, stepwell_switch_off_begin);
}

// close_await(closing, milliseconds): 1 = stored, 0 = not yet, -1 = nobody will say.
static PyObject* CloseAwait(PyObject* Py_UNUSED(self), PyObject* args) {
  PyObject* held = NULL;
  long long wait_ms = 0;
  if (!PyArg_ParseTuple(args, "OL:close_await", &held, &wait_ms)) return NULL;
  stepwell_closing* closing = (stepwell_closing*)PyCapsule_GetPointer(held, kClosing);
  if (closing == NULL) return NULL;
  int told = 0;
  Py_BEGIN_ALLOW_THREADS;
  told = stepwell_close_await(closing, wait_ms);
  Py_END_ALLOW_THREADS;
  return PyLong_FromLong(told);
}

// close_ease(closing): it holds little from here on.
static PyObject* CloseEase(PyObject* Py_UNUSED(self), PyObject* held) {
  stepwell_closing* closing = (stepwell_closing*)PyCapsule_GetPointer(held, kClosing);
  if (closing == NULL) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  stepwell_close_ease(closing);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyObject* State(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return PyLong_FromLong((long)stepwell_current_state());
}

static PyObject* Message(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  char* words = NULL;
  Py_BEGIN_ALLOW_THREADS;
  pthread_mutex_lock(&words_lock);
  words = strdup(stepwell_message());
  pthread_mutex_unlock(&words_lock);
  Py_END_ALLOW_THREADS;
  if (words == NULL) return PyErr_NoMemory();
  PyObject* text = PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
  free(words);
  return text;
}

static PyObject* DroppedCount(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return PyLong_FromUnsignedLongLong(stepwell_dropped_count());
}

static PyObject* ExitWaitMs(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return PyLong_FromLongLong(stepwell_exit_wait_ms());
}

// Of the innermost scope that is open on this thread; 0 = none.
static PyObject* ScopePath(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return PyLong_FromUnsignedLong(stepwell_enabled() ? stepwell_scope_path() : 0);
}

// upload_trace(path, epoch, first_batch, last_batch, removes_file): whether an agent will find word of it.
static PyObject* UploadTrace(PyObject* Py_UNUSED(self), PyObject* args) {
  const char* path = NULL;
  int epoch = -1, first_batch = -1, last_batch = -1, removes_file = 0, is_left = 0;
  if (!PyArg_ParseTuple(args, "yiiip:upload_trace", &path, &epoch, &first_batch, &last_batch,
                        &removes_file)) {
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  is_left = stepwell_upload_trace(path, epoch, first_batch, last_batch, removes_file);
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(is_left);
}

static int IsMainInterpreter(void) { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

// What another interpreter imports is a copy, of which it is asked.
static PyObject* IsMain(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return PyBool_FromLong(IsMainInterpreter());
}

static PyObject* TakeTally(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  return Tally_Take();
}

static PyObject* Reset(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  StepLoop_BeginRun();
  Tally_Reset();
  Py_RETURN_NONE;
}

// In a child, before anything else of ours.
static PyObject* AfterFork(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(ignored)) {
  // Another thread may have held it.
  words_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  Hooked_AfterFork();
  Capture_AfterFork();
  StepLoop_AfterFork();
  Tally_Reset();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"open", Open, METH_VARARGS, NULL},
    {"close_begin", CloseBegin, METH_O, NULL},
    {"switch_off_begin", SwitchOffBegin, METH_O, NULL},
    {"close_ease", CloseEase, METH_O, NULL},
    {"close_await", CloseAwait, METH_VARARGS, NULL},
    {"state", State, METH_NOARGS, NULL},
    {"message", Message, METH_NOARGS, NULL},
    {"dropped_count", DroppedCount, METH_NOARGS, NULL},
    {"exit_wait_ms", ExitWaitMs, METH_NOARGS, NULL},
    {"define_series", Series_Define, METH_VARARGS, NULL},
    {"reset", Reset, METH_NOARGS, NULL},
    {"after_fork", AfterFork, METH_NOARGS, NULL},
    {"take_tally", TakeTally, METH_NOARGS, NULL},
    {"is_main_interpreter", IsMain, METH_NOARGS, NULL},
    {"record_at", Series_RecordAt, METH_VARARGS, NULL},
    {"await_hooks", Hooked_Await, METH_O, NULL},
    {"ask_for_worker", Hooked_AskForWorker, METH_O, NULL},
    {"hooked_loop", Steps_OfHook, METH_O, NULL},
    {"next_by", Steps_AskNextBy, METH_VARARGS, NULL},
    {"begin_step", Steps_BeginStep, METH_VARARGS, NULL},
    {"fetch_step", Steps_FetchStep, METH_VARARGS, NULL},
    {"leave_loop", Steps_LeaveLoop, METH_O, NULL},
    {"follow_schedule", Hooked_Follow, METH_O, NULL},
    {"scope_path", ScopePath, METH_NOARGS, NULL},
    {"fetch_by", StepLoop_FetchBy, METH_VARARGS, NULL},
    {"call_within", Hooked_CallWithin, METH_VARARGS, NULL},
    {"mirror_scopes", Mirror_Set, METH_VARARGS, NULL},
    {"upload_trace", UploadTrace, METH_VARARGS, NULL},
    {"capture_by", Capture_By, METH_O, NULL},
    {"capture_wanted", Capture_Wanted, METH_NOARGS, NULL},
    {"capture_answer", Capture_Answer, METH_VARARGS, NULL},
    {"own_calls", Recording_OwnCalls, METH_O, NULL},
    {"is_innermost", Scope_IsInnermost, METH_O, NULL},
    {"is_fetching", StepLoop_IsFetching, METH_NOARGS, NULL},
    {"batch", StepLoop_Batch, METH_NOARGS, NULL},
    {"begin_work", StepLoop_BeginWork, METH_NOARGS, NULL},
    {"end_work", StepLoop_EndWork, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stepwell._core",
    .m_doc = "The recorder's C ABI; private to the package stepwell.",
    .m_size = -1,
    .m_methods = functions,
};

static int Add(PyObject* module, const char* name, PyTypeObject* type) {
  Py_INCREF(type);
  return PyModule_AddObject(module, name, (PyObject*)type) == 0;
}

PyMODINIT_FUNC PyInit__core(void) {
  // The recorder, and the tables here, are one in a process.
  if (!IsMainInterpreter()) {
    PyErr_SetString(PyExc_ImportError, "this is a sub-interpreter; a process's main one records");
    return NULL;
  }
  if (PyType_Ready(&Recording_Type) < 0 || PyType_Ready(&Around_Type) < 0 ||
      PyType_Ready(&Loop_Type) < 0 || PyType_Ready(&Hooked_Type) < 0 || !Names_Init() ||
      !Scope_Init() || !Steps_Init() || !TimedCall_Init() || !TransferCall_Init()) {
    return NULL;
  }
  PyObject* module = PyModule_Create(&definition);
  if (module != NULL && Add(module, "Recording", &Recording_Type) &&
      Add(module, "Around", &Around_Type) && Add(module, "Scope", &Scope_Type) &&
      Add(module, "Series", &Series_Type) && Add(module, "Steps", &Steps_Type) &&
      Add(module, "Loop", &Loop_Type) && Add(module, "Hooked", &Hooked_Type) &&
      Add(module, "TimedCall", &TimedCall_Type) && Add(module, "FetchCall", &FetchCall_Type) &&
      Add(module, "TransferCall", &TransferCall_Type) &&
      PyModule_AddStringConstant(module, "version", STEPWELL_VERSION) == 0) {
    return module;
  }
  Py_XDECREF(module);
  return NULL;
}
