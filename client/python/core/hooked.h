// Hooked: a function of a framework's, and a function of ours that is called in its place, with it as the first
// argument. Within itself, on any thread but the main one, in a fetch, in a worker of a DataLoader's, and while
// nothing is recorded, it is the framework's alone: the inner modules of a model cost a comparison. That an
// optimizer stepped is told to the loop there, too, where nothing is recorded. Those
// that share a function of ours are one in this. It is equal to what it stands for,
// with its name, its documentation and its hash. What pickle makes of one is what reduce(hooked) says, where that
// is given. Needs the GIL.
#pragma once

#include <Python.h>

extern PyTypeObject Hooked_Type;

// await_hooks(is_waiting): whether hooks are called though nothing is recorded, to open a run.
PyObject* Hooked_Await(PyObject* module, PyObject* is_waiting);
// follow_schedule(is_following): whether that of a DataLoader's ask, and those made with is_followed, are called though
// nothing is recorded, for a schedule to switch it on.
PyObject* Hooked_Follow(PyObject* module, PyObject* is_following);
// call_within(watched, function, args, keywords): watched.is_within is True for that long.
PyObject* Hooked_CallWithin(PyObject* module, PyObject* args);
// ask_for_worker(question): whether this process is a worker of a DataLoader's, whose calls are parts of a
// fetch. True, and None (it is none), hold until it forks; False = not yet.
PyObject* Hooked_AskForWorker(PyObject* module, PyObject* question);
// This process is a child, and this thread its main one.
void Hooked_AfterFork(void);
