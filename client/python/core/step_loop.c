#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/step_loop.h"

#include <limits.h>
#include <time.h>

#include "client/python/core/capture.h"
#include "client/python/core/hot.h"
#include "client/python/core/names.h"
#include "client/python/core/tally.h"

// An iterator that is kept and asked no more would make all later loops parts of its step. It passes
// for forgotten where another loop begins over the same loader, or where loops in its step trained this
// often without an ask of it.
#define INNER_UPDATE_COUNT_MAX 8

// Whether a loop still goes on. It outlives the loop, which another thread may drop.
struct StepLife {
  int holder_count;  // the loop, and the thread that began it
  int is_over;
  int is_of_closed;  // over with its run, within its step: the loop may go on in the next one
  int is_hooked;
  int is_ahead;
  int32_t batch;            // of the step that is open, -1 while its batch is fetched
  stepwell_scope work;      // `train_batch` of a hook's; path 0 = not open
  uint32_t tallied_thread;  // whose steps are counted, of this loop; 0 = not of this loop
  const PyObject* of;       // the loop's, while it is not over
  // An optimizer stepped since a loop in this one's step was asked; and how often one was after that.
  int is_updated;
  int inner_update_count;
  int is_trained;  // an optimizer stepped in this step
};

static HOT_DATA ScopeName* fetch_scope;        // of a loop in another one's step
static HOT_DATA ScopeName* train_fetch_scope;  // with the label loader=train
static HOT_DATA ScopeName* work_scope;
static HOT_DATA int32_t next_batch;
static HOT_DATA int32_t next_trained;  // behind the last one that was trained
// Of the loop whose steps the calling thread is in, or was in. A thread that ends leaves its last one.
static _Thread_local StepLife* life_of_thread;
static _Thread_local int fetch_depth;
// Those that Fetching told. One that stands open while optimizers step is over: an exception left what told it. What told
// it in the round before ends nothing then.
static _Thread_local int told_depth;
static _Thread_local uint32_t told_round;
static _Thread_local int told_update_count;
// One that passed for forgotten was asked again: loops ask in turns here, and none passes for it any more.
static HOT_DATA int is_none_forgotten;
// Optimizers' steps are seen, of this run: a step without one is not known to be whole.
static HOT_DATA int are_updates_seen;

static ScopeName* FindScope(const char* text) {
  PyObject* name = PyUnicode_InternFromString(text);
  ScopeName* found = name == NULL ? NULL : Names_FindScope(name);
  Py_XDECREF(name);
  return found;
}

int StepLoop_Init(void) {
  fetch_scope = FindScope("dataloader_next");
  train_fetch_scope = Names_NewLabelledScope("dataloader_next", "loader", "train");
  work_scope = FindScope("train_batch");
  return fetch_scope != NULL && train_fetch_scope != NULL && work_scope != NULL;
}

static HOT uint64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void LetGo(StepLife* life) {
  if (life != NULL && --life->holder_count == 0) PyMem_Free(life);
}

static RARE void ForgetTold(void) {
  told_depth = told_update_count = 0;
  ++told_round;
}

void StepLoop_AfterFork(void) {
  next_batch = next_trained = 0;
  is_none_forgotten = are_updates_seen = 0;
  ForgetTold();
  fetch_depth = 0;
  LetGo(life_of_thread);
  life_of_thread = NULL;
}

// The loop whose step the calling thread is in, or in whose fetch; NULL = none.
static HOT StepLife* OuterLife(void) {
  return life_of_thread != NULL && !life_of_thread->is_over ? life_of_thread : NULL;
}

// That of the step that the calling thread is in, between two fetches; NULL = none.
static HOT StepLife* OpenLife(void) { return StepLoop_IsInFetch() ? NULL : OuterLife(); }

static void End(StepLife* life) {
  life->is_over = 1;
  life->work.path = 0;
  if (life->tallied_thread == 0 || life->tallied_thread != tally_thread) return;
  Tally_DropStep();
  tally_thread = 0;
}

// The step that is open is none, and its batch is the next one's.
static RARE void Forget(StepLife* life) {
  if (life->batch >= 0 && life->batch == next_batch - 1) next_batch = life->batch;
  if (next_trained > next_batch) next_trained = next_batch;
  End(life);
}

// Of one that has no steps of its own it is its own count.
static void TakeStart(StepLoop* loop) {
  if (loop->start < 0) return;
  if (loop->life != NULL) {
    next_batch = loop->start;
  } else {
    loop->batch = loop->start - 1;
  }
  loop->start = -1;
}

// A loop may have been left for good, as an exception leaves one that its traceback holds. It would make all others of the
// next run parts of its step: it is over until it is asked again.
void StepLoop_BeginRun(void) {
  if (OuterLife() != NULL) {
    End(life_of_thread);
    life_of_thread->is_of_closed = 1;
  }
  StepLoop_AfterFork();
}

static HOT int IsFetchTold(const StepLoop* loop) {
  return loop->fetches_on == &fetch_depth && loop->fetch_round == told_round;
}

void StepLoop_Begin(StepLoop* loop) {
  loop->is_begun = 1;
  // It is a training's, and no part of a fetch that another one told and that no loader is asked in.
  if (told_depth > 0 && fetch_depth == 0 && !IsFetchTold(loop)) ForgetTold();
  StepLife* outer = OuterLife();
  if (outer != NULL && loop->of != NULL && outer->of == loop->of && !is_none_forgotten) {
    Forget(outer);
    outer = NULL;
  }
  loop->life = outer != NULL ? NULL : PyMem_Calloc(1, sizeof(StepLife));
  TakeStart(loop);
  if (loop->life == NULL) return;
  loop->life->holder_count = 2;
  loop->life->is_hooked = loop->is_hooked;
  loop->life->batch = -1;
  loop->life->of = loop->of;
  LetGo(life_of_thread);
  life_of_thread = loop->life;
  Capture_Tend(next_batch, kCaptureStepEnds);
  stepwell_step_begin();
  loop->step_start_ns = NowNs();
  Capture_Tend(next_batch, kCaptureStepBegan);
}

void StepLoop_BeginTallied(StepLoop* loop) {
  // A scope knows its thread's number. The step that opens forgets that it was begun: it is no event.
  stepwell_scope known = {.path = 0};
  if (OuterLife() == NULL) stepwell_scope_begin(&known, fetch_scope->id);
  StepLoop_Begin(loop);
  if (loop->life != NULL && known.path != 0 && tally_thread == 0) {
    tally_thread = loop->life->tallied_thread = known.thread;
  }
}

static HOT void EndWork(StepLife* life) {
  const uint32_t path = life->work.path;
  if (path != 0) Tally_Add(&life->work, path, work_scope->id, stepwell_scope_end(&life->work));
}

void StepLoop_LooksAhead(StepLoop* loop) {
  if (loop->life != NULL) loop->life->is_ahead = 1;
}

static RARE void NextOfInner(StepLoop* loop) {
  StepLife* outer = OuterLife();
  if (outer == NULL || !outer->is_updated) return;
  outer->is_updated = 0;
  if (++outer->inner_update_count < INNER_UPDATE_COUNT_MAX || is_none_forgotten) return;
  Forget(outer);
  StepLoop_Begin(loop);
}

// It passed for forgotten, and was not: the loop that took its place lies in its steps.
static RARE void NextOfRemembered(StepLoop* loop) {
  const int is_of_closed = loop->life->is_of_closed;
  const int is_ahead = loop->life->is_ahead;
  LetGo(loop->life);
  loop->life = NULL;
  if (is_of_closed) {  // its step began in a run before: it goes on in this one
    StepLoop_BeginTallied(loop);
    if (is_ahead) StepLoop_LooksAhead(loop);
    return;
  }
  if (is_none_forgotten) return;  // it is that other one
  is_none_forgotten = 1;
  StepLife* other = OuterLife();
  if (other != NULL) Forget(other);
  StepLoop_Begin(loop);
}

HOT void StepLoop_Next(StepLoop* loop) {
  StepLife* life = loop->life;
  if (life == NULL) return NextOfInner(loop);
  if (life->is_over) return NextOfRemembered(loop);
  EndWork(life);
  life->batch = -1;
  life->is_updated = life->inner_update_count = life->is_trained = 0;
  ++life->holder_count;  // another thread may leave the loop while a capture begins
  Capture_Tend(next_batch, kCaptureStepEnds);
  stepwell_step_end(loop->batch);
  const uint64_t now_ns = NowNs();
  if (life->tallied_thread != 0 && life->tallied_thread == tally_thread && stepwell_enabled()) {
    Tally_EndStep(now_ns - loop->step_start_ns);
  }
  loop->step_start_ns = now_ns;
  LetGo(life);
  Capture_Tend(next_batch, kCaptureStepBegan);
}

void StepLoop_EndLast(StepLoop* loop) {
  // Another thread may drop it: there it is no step that ends.
  if (loop->life != NULL && !loop->life->is_over && loop->life == life_of_thread &&
      (loop->life->is_trained || !are_updates_seen)) {
    StepLoop_Next(loop);
  }
}

void StepLoop_Leave(StepLoop* loop) {
  StepLoop_Fetching(loop, 0);
  StepLife* life = loop->life;
  if (life == NULL) return;
  // Another thread may drop it: there it is no step that is left.
  const int is_left = !life->is_over && life == life_of_thread;
  if (!life->is_over) End(life);
  if (is_left && stepwell_enabled()) stepwell_step_leave();
  loop->life = NULL;
  LetGo(life);
  if (is_left) Capture_Tend(next_batch, kCaptureLoopIsLeft);
}

HOT PyObject* StepLoop_Fetch(StepLoop* loop, PyObject* items, PyObject* original) {
  const stepwell_scope_id scope = (loop->life != NULL ? train_fetch_scope : fetch_scope)->id;
  stepwell_scope timing;
  stepwell_scope_begin(&timing, scope);
  const uint32_t path = timing.path;
  if (path != 0 && loop->life != NULL && tally_thread == 0) {
    tally_thread = loop->life->tallied_thread = timing.thread;
  }
  // Theirs may ask this loop for its next batch, too, or another thread: it then comes to its end meanwhile.
  PyObject* item = NULL;
  Py_INCREF(items);
  if (Py_EnterRecursiveCall(" in a loader") == 0) {
    const int depth = fetch_depth;
    fetch_depth = depth + 1;
    item = original == NULL ? PyIter_Next(items) : PyObject_CallOneArg(original, items);
    fetch_depth = depth;
    Py_LeaveRecursiveCall();
  }
  Py_DECREF(items);
  // Code of the loader's may have begun and left other scopes meanwhile.
  if (path != 0) Tally_Add(&timing, path, scope, stepwell_scope_end(&timing));
  return item;
}

HOT void StepLoop_Count(StepLoop* loop) {
  if (loop->life == NULL) {
    ++loop->batch;
    return;
  }
  loop->life->batch = loop->batch = next_batch;
  if (next_batch < INT32_MAX) ++next_batch;
  if (!loop->is_hooked) next_trained = next_batch;
}

int32_t StepLoop_Upcoming(const StepLoop* loop) {
  if (loop->life != NULL || OuterLife() == NULL) return next_batch;
  return loop->batch < INT32_MAX ? loop->batch + 1 : loop->batch;
}

int32_t StepLoop_BehindTrained(void) { return next_trained; }

void StepLoop_GoOnAt(int32_t batch) { next_batch = batch; }

void StepLoop_Fetching(StepLoop* loop, int is_begun) {
  told_update_count = 0;
  if (is_begun == IsFetchTold(loop)) return;
  if (is_begun) {
    ++told_depth;
  } else if (told_depth > 0) {
    --told_depth;
  }
  loop->fetches_on = is_begun ? &fetch_depth : NULL;
  loop->fetch_round = told_round;
}

RARE void StepLoop_UpdateInFetch(void) {
  if (told_depth == 0 || fetch_depth > 0 || ++told_update_count < INNER_UPDATE_COUNT_MAX) return;
  ForgetTold();
  StepLife* outer = OuterLife();
  if (outer == NULL) return;
  // Its step was left, too: the loop that trains has steps from its next batch on.
  outer->is_updated = 1;
  outer->inner_update_count = INNER_UPDATE_COUNT_MAX - 1;
}

HOT int StepLoop_IsInFetch(void) { return (fetch_depth | told_depth) != 0; }

PyObject* StepLoop_IsFetching(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  return PyBool_FromLong(StepLoop_IsInFetch());
}

PyObject* StepLoop_FetchBy(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *function = NULL, *items = NULL;
  if (!PyArg_ParseTuple(args, "OO:fetch_by", &function, &items)) return NULL;
  const int depth = fetch_depth;
  fetch_depth = depth + 1;
  PyObject* item = PyObject_CallFunctionObjArgs(function, items, NULL);
  fetch_depth = depth;
  return item;
}

HOT int StepLoop_IsInBatch(void) {
  const StepLife* life = OpenLife();
  return life != NULL && (life->batch >= 0 || life->is_ahead);
}

PyObject* StepLoop_Batch(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  const StepLife* life = OpenLife();
  return PyLong_FromLong(life == NULL ? -1 : (long)life->batch);
}

// In which OpenWork opens some; NULL = it does not.
static HOT StepLife* LifeToWork(void) {
  StepLife* life = OpenLife();
  return life != NULL && life->is_hooked && life->work.path == 0 && stepwell_enabled() &&
                 stepwell_scope_path() == 0
             ? life
             : NULL;
}

HOT int StepLoop_WouldOpenWork(void) { return LifeToWork() != NULL; }

HOT void StepLoop_OpenWork(void) {
  StepLife* life = LifeToWork();
  if (life != NULL) stepwell_scope_begin(&life->work, work_scope->id);
}

PyObject* StepLoop_BeginWork(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  StepLoop_OpenWork();
  Py_RETURN_NONE;
}

HOT void StepLoop_CloseWork(void) {
  StepLife* life = OpenLife();
  if (life != NULL) {
    life->is_updated = life->is_trained = are_updates_seen = 1;
    if (life->batch >= 0 && life->batch == next_batch - 1) next_trained = next_batch;
  }
  if (life != NULL && life->work.path != 0 && stepwell_enabled() &&
      stepwell_scope_path() == life->work.path) {
    EndWork(life);
  }
}

PyObject* StepLoop_EndWork(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(ignored)) {
  StepLoop_CloseWork();
  Py_RETURN_NONE;
}
