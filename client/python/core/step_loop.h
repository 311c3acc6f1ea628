// StepLoop: a training's loop over its batches. It says where one step ends and the next begins, and
// which loop it is that has steps: of those that are begun within another one's step none has. Needs
// the GIL; of the thread that asks.
#pragma once

#include <Python.h>
#include <stdint.h>

typedef struct StepLife StepLife;

// Of zeros, but for `batch` and `start`, which are -1.
typedef struct {
  int32_t batch;  // that was given last
  int32_t start;  // its first batch, told when it begins; -1 = it goes on
  int is_begun;
  int is_hooked;  // a hook's: the training in it is not seen as scopes of the program's
  PyObject*
      of;  // what it is over: owned by who has the loop, to be compared alone; NULL = not known
  StepLife* life;         // NULL = inside another loop's step: its batches, from 0, are no steps
  const int* fetches_on;  // the thread on which Fetching was begun, NULL = it was not
  uint32_t fetch_round;   // of that thread, in which it was
  uint64_t step_start_ns;
} StepLoop;

// 0 with an exception set.
int StepLoop_Init(void);
// A run begins: batches count from 0, and this thread is in no loop until one that goes on is asked again.
void StepLoop_BeginRun(void);
// A process was forked: likewise, but for the loops, which are its parent's.
void StepLoop_AfterFork(void);

// The first step opens.
void StepLoop_Begin(StepLoop* loop);
// The step that is open ends, the next one opens.
void StepLoop_Next(StepLoop* loop);
// The next item of `items`, timed as `dataloader_next`; NULL at the end, or with an exception set. With
// `original`, a function, what that gives for `items`.
PyObject* StepLoop_Fetch(StepLoop* loop, PyObject* items, PyObject* original);
// The step that is open has the next batch.
void StepLoop_Count(StepLoop* loop);
// The batch was fetched in the step before: what is done between fetches for it is in a step that has its batch.
void StepLoop_LooksAhead(StepLoop* loop);
// The step that is open ends, unless the loop is over or inside of another one's step, or no optimizer stepped in it as in
// others: an exception may have left it. Leave follows.
void StepLoop_EndLast(StepLoop* loop);
// What comes after lies in no step. Its last fetch brought nothing, or its batch was left midway.
void StepLoop_Leave(StepLoop* loop);

// The number that the next batch has, and from where it goes on.
int32_t StepLoop_Upcoming(const StepLoop* loop);
void StepLoop_GoOnAt(int32_t batch);
// The number behind the last batch that was trained: of a loop that is no hook's, or a step in which an optimizer stepped.
int32_t StepLoop_BehindTrained(void);
// As Fetch says for itself: hooks leave alone what is fetched meanwhile. Begun or ended again: changes
// nothing. Leave ends it, too, and so does another loop that begins outside of Fetch.
void StepLoop_Fetching(StepLoop* loop, int is_begun);
// An optimizer stepped on the calling thread, which is in a fetch. None that was told has many such steps: it is over then.
void StepLoop_UpdateInFetch(void);
// Whether the calling thread is in a fetch.
int StepLoop_IsInFetch(void);
// Whether it is in a step that has its batch.
int StepLoop_IsInBatch(void);
// Learns of the thread that counts steps at the end of a run, where none is known yet.
void StepLoop_BeginTallied(StepLoop* loop);

// For hooks, of the calling thread. is_fetching(), batch() (-1 = in no step), begin_work() and end_work():
// `train_batch` opens where no scope is open, and closes where it is the innermost; so does the step's
// end. An optimizer's step ends work.
PyObject* StepLoop_IsFetching(PyObject* module, PyObject* ignored);
// fetch_by(function, items): function(items), which is a fetch that no loop times.
PyObject* StepLoop_FetchBy(PyObject* module, PyObject* args);
PyObject* StepLoop_Batch(PyObject* module, PyObject* ignored);
PyObject* StepLoop_BeginWork(PyObject* module, PyObject* ignored);
void StepLoop_OpenWork(void);
// Whether that would open it.
int StepLoop_WouldOpenWork(void);
PyObject* StepLoop_EndWork(PyObject* module, PyObject* ignored);
void StepLoop_CloseWork(void);
