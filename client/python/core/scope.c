#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/scope.h"

#include <stddef.h>
#include <string.h>

#include "client/python/core/mirror.h"
#include "client/python/core/tally.h"

// A with statement makes a scope and drops it: these few are made of it.
#define FREE_COUNT_MAX 32

// A generator that is left within its block is closed by another task, which ends none of the first one's. Of those that were
// entered while nothing was recorded so many of a scope are remembered: it may live as long as the process.
#define IDLE_COUNT_MAX 1024

// One entering that was not left yet.
typedef struct Opening {
  stepwell_scope timing;
  unsigned long thread;
  const void* task;    // that entered by `async with`, to be compared alone
  PyObject* mirrored;  // as Mirror_Begin gave it; NULL = nothing
  struct Opening* older;
} Opening;

// The __exit__ of a scope, which it lies in. It has a count of references of its own, and holds the
// scope as long as that is not 0.
typedef struct {
  PyObject base;
  vectorcallfunc call;
} Leaving;

typedef struct {
  PyObject base;
  vectorcallfunc call;
  Leaving leaving;
  PyObject* name;
  stepwell_scope_id id;
  PyObject* exit;  // its __exit__ where it lives for ever; NULL = `leaving`
  int is_apart;    // its calls take turns with others on their thread
  int is_open;     // `first` is
  Opening first;   // the usual one, of a scope that is entered once at a time
  Opening* newer;  // entered while it was open, the newest first
  Opening* tasks;  // entered by `async with`, the newest first
  int idle_count;  // of these, entered while nothing was recorded
} Scope;

static PyObject* asyncio_name;
static PyTypeObject Ready_Type;
static Scope* free_scopes[FREE_COUNT_MAX];
static int free_count;

// A with statement asks for __enter__ and __exit__, and a method bound for each is half of what an
// empty one costs. Here __enter__ is the scope itself, which knows by the number of arguments what
// it is called as (none enters, one is decorated), and __exit__ lies in it.
typedef struct {
  PyObject base;
  PyObject* unbound;  // as the type has it: it takes the scope, too
  int is_exit;
} Special;

static PyObject* Special_Get(PyObject* self, PyObject* scope, PyObject* Py_UNUSED(type)) {
  PyObject* found = scope == NULL || scope == Py_None ? ((Special*)self)->unbound : scope;
  if (found == scope && ((Special*)self)->is_exit) {
    if (((Scope*)scope)->exit != NULL) {
      Py_INCREF(((Scope*)scope)->exit);
      return ((Scope*)scope)->exit;
    }
    PyObject* leaving = (PyObject*)&((Scope*)scope)->leaving;
    if (Py_REFCNT(leaving) > 0) {
      Py_INCREF(leaving);
      return leaving;
    }
    Py_SET_REFCNT(leaving, 1);
    Py_INCREF(scope);
    return leaving;
  }
  Py_INCREF(found);
  return found;
}

static inline Scope* ScopeOf(PyObject* leaving) {
  return (Scope*)((char*)leaving - offsetof(Scope, leaving));
}

static void Leaving_Dealloc(PyObject* self) { Py_DECREF((PyObject*)ScopeOf(self)); }

static PyTypeObject Leaving_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core._Leaving",
    .tp_basicsize = sizeof(Leaving),
    .tp_dealloc = Leaving_Dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Leaving, call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
};

static PyTypeObject Special_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core._Special",
    .tp_basicsize = sizeof(Special),
    .tp_flags =
        Py_TPFLAGS_DEFAULT,  // never freed: the type that has it lives as long as the process
    .tp_descr_get = Special_Get,
};

static PyObject* Scope_Enter(PyObject* self, PyObject* ignored);
static PyObject* Scope_Exit(PyObject* self, PyObject* const* args, Py_ssize_t count);
static PyObject* Scope_Vectorcall(PyObject* self, PyObject* const* args, size_t flagged_count,
                                  PyObject* keywords);

static PyObject* Leaving_Vectorcall(PyObject* self, PyObject* const* args, size_t flagged_count,
                                    PyObject* Py_UNUSED(keywords)) {
  return Scope_Exit((PyObject*)ScopeOf(self), args, PyVectorcall_NARGS(flagged_count));
}

static PyMethodDef special_methods[] = {
    {"__enter__", Scope_Enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))Scope_Exit, METH_FASTCALL, NULL},
};

static int AddSpecial(PyMethodDef* method, int is_exit) {
  Special* special = PyObject_New(Special, &Special_Type);
  if (special == NULL) return 0;
  special->is_exit = is_exit;
  special->unbound = PyDescr_NewMethod(&Scope_Type, method);
  const int is_added =
      special->unbound != NULL &&
      PyDict_SetItemString(Scope_Type.tp_dict, method->ml_name, (PyObject*)special) == 0;
  Py_DECREF(special);
  return is_added;
}

int Scope_Init(void) {
  asyncio_name = PyUnicode_InternFromString("asyncio");
  if (asyncio_name == NULL || PyType_Ready(&Ready_Type) < 0) return 0;
  if (PyType_Ready(&Special_Type) < 0 || PyType_Ready(&Leaving_Type) < 0 ||
      PyType_Ready(&Scope_Type) < 0 || !AddSpecial(&special_methods[0], 0) ||
      !AddSpecial(&special_methods[1], 1)) {
    return 0;
  }
  PyType_Modified(&Scope_Type);
  return 1;
}

// Of the calling thread, in one instruction where the compiler can.
static inline unsigned long ThisThread(void) {
#if defined(__GNUC__) && __GNUC__ >= 11
  return (unsigned long)__builtin_thread_pointer();
#else
  return PyThread_get_thread_ident();
#endif
}

static Scope* Allocate(void) {
  Scope* scope = PyObject_New(Scope, &Scope_Type);
  if (scope == NULL) return NULL;
  scope->exit = NULL;
  scope->is_open = 0;
  scope->newer = scope->tasks = NULL;
  scope->idle_count = 0;
  scope->call = Scope_Vectorcall;
  // Of memory that was something else's before: since CPython 3.12 Py_SET_REFCNT changes no count that looks immortal.
  memset(&scope->leaving, 0, sizeof(scope->leaving));
  scope->leaving.call = Leaving_Vectorcall;
  Py_SET_TYPE((PyObject*)&scope->leaving, &Leaving_Type);
  Py_SET_REFCNT((PyObject*)&scope->leaving, 0);
  return scope;
}

static inline PyObject* Named(Scope* scope, const ScopeName* name) {
  Py_INCREF(name->name);
  scope->name = name->name;
  scope->id = name->id;
  scope->is_apart = 0;
  return (PyObject*)scope;
}

PyObject* Scope_New(const ScopeName* name) {
  Scope* scope = NULL;
  if (free_count > 0) {
    scope = free_scopes[--free_count];
    Py_SET_REFCNT((PyObject*)scope, 1);
  } else {
    scope = Allocate();
    if (scope == NULL) return NULL;
  }
  return Named(scope, name);
}

// Both hold the other: neither ends. What is entered by it once recording is on again is as of any scope that is kept.
PyObject* Scope_Lasting(ScopeName* name) {
  if (name->lasting == NULL) {
    Scope* scope = Allocate();
    if (scope == NULL) return NULL;
    Named(scope, name);
    scope->exit = PyCFunction_New(&special_methods[1], (PyObject*)scope);
    if (scope->exit == NULL) {
      Py_DECREF((PyObject*)scope);
      return NULL;
    }
    name->lasting = (PyObject*)scope;
  }
  Py_INCREF(name->lasting);
  return name->lasting;
}

static inline void Begin(Opening* opening, const Scope* scope, int is_apart) {
  opening->thread = ThisThread();
  opening->mirrored = NULL;
  if (mirror_begin != NULL && !is_apart) opening->mirrored = Mirror_Begin(scope->name);
  if (stepwell_enabled()) {
    (is_apart ? stepwell_scope_begin_apart : stepwell_scope_begin)(&opening->timing, scope->id);
  } else {
    opening->timing.path = 0;
  }
}

static inline void End(Opening* opening, stepwell_scope_id id) {
  const uint32_t path = opening->timing.path;
  if (path != 0) Tally_Add(&opening->timing, path, id, stepwell_scope_end(&opening->timing));
  if (opening->mirrored != NULL) {
    PyObject* mirrored = opening->mirrored;
    opening->mirrored = NULL;
    Mirror_End(mirrored);
  }
}

static void Leave(Scope* scope);

// Entered, but where it was interrupted: then it is left again. Takes the reference.
static PyObject* Entered(PyObject* scope) {
  if (!mirror_was_interrupted || !Mirror_RaisesInterrupt()) return scope;
  PyObject *type = NULL, *value = NULL, *trace = NULL;
  PyErr_Fetch(&type, &value, &trace);
  Leave((Scope*)scope);
  Py_DECREF(scope);
  PyErr_Restore(type, value, trace);
  return NULL;
}

static PyObject* Scope_Enter(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  Scope* scope = (Scope*)self;
  Py_INCREF(self);
  if (!scope->is_open && scope->newer == NULL) {
    scope->is_open = 1;
    Begin(&scope->first, scope, scope->is_apart);
    return Entered(self);
  }
  // Without memory this one is not timed; its leaving then ends an older one.
  Opening* opening = PyMem_Malloc(sizeof(Opening));
  if (opening != NULL) {
    opening->older = scope->newer;
    scope->newer = opening;
    Begin(opening, scope, scope->is_apart);
  }
  return Entered(self);
}

// The newest of this thread, else the newest of all: entered on another thread, or by a task that
// another one resumed.
static void EndNewest(Scope* scope) {
  const unsigned long thread = ThisThread();
  Opening** chosen = &scope->newer;
  while (*chosen != NULL && (*chosen)->thread != thread) chosen = &(*chosen)->older;
  if (*chosen == NULL && scope->is_open && scope->first.thread == thread) {
    scope->is_open = 0;
    End(&scope->first, scope->id);
    return;
  }
  if (*chosen == NULL) chosen = &scope->newer;
  Opening* ended = *chosen;
  *chosen = ended->older;
  End(ended, scope->id);
  PyMem_Free(ended);
}

static void Leave(Scope* scope) {
  if (scope->newer != NULL) {
    EndNewest(scope);
  } else if (scope->is_open) {
    scope->is_open = 0;
    End(&scope->first, scope->id);
  }
}

// Exceptions pass.
static PyObject* Scope_Exit(PyObject* self, PyObject* const* Py_UNUSED(args),
                            Py_ssize_t Py_UNUSED(count)) {
  Leave((Scope*)self);
  if (mirror_was_interrupted && Mirror_RaisesInterrupt()) return NULL;
  Py_RETURN_FALSE;
}

// What is there at once, as `async with` awaits it.
typedef struct {
  PyObject base;
  PyObject* value;  // NULL = None
} Ready;

static PyObject* Ready_Next(PyObject* self) {
  PyObject* value = ((Ready*)self)->value;
  if (value != NULL) PyErr_SetObject(PyExc_StopIteration, value);
  return NULL;
}

static void Ready_Dealloc(PyObject* self) {
  Py_CLEAR(((Ready*)self)->value);
  PyObject_Free(self);
}

static PyAsyncMethods ready_async = {.am_await = PyObject_SelfIter};
static PyTypeObject Ready_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell._core._Ready",
    .tp_basicsize = sizeof(Ready),
    .tp_dealloc = Ready_Dealloc,
    .tp_as_async = &ready_async,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = Ready_Next,
};

static PyObject* NewReady(PyObject* value) {
  Ready* ready = PyObject_New(Ready, &Ready_Type);
  if (ready == NULL) return NULL;
  Py_XINCREF(value);
  ready->value = value;
  return (PyObject*)ready;
}

// Where asyncio runs one, which lives as long as it is in the block; else the thread. NULL with an
// exception set, which is no Exception.
static const void* ThisTask(void) {
  PyObject* asyncio = PyImport_GetModule(asyncio_name);
  PyObject* task = asyncio == NULL ? NULL : PyObject_CallMethod(asyncio, "current_task", NULL);
  Py_XDECREF(asyncio);
  if (task == NULL && PyErr_Occurred() != NULL && !PyErr_ExceptionMatches(PyExc_Exception)) {
    return NULL;
  }
  PyErr_Clear();
  const void* known = task;
  Py_XDECREF(task);
  return known == NULL || known == Py_None ? (const void*)ThisThread() : known;
}

static void EndTask(Scope* scope, Opening** chosen) {
  Opening* ended = *chosen;
  *chosen = ended->older;
  if (ended->timing.path == 0) --scope->idle_count;
  End(ended, scope->id);
  PyMem_Free(ended);
}

static void BeginTask(Scope* scope, Opening* opening, const void* task) {
  opening->task = task;
  opening->older = scope->tasks;
  scope->tasks = opening;
  Begin(opening, scope, 1);
  if (opening->timing.path != 0 || ++scope->idle_count <= IDLE_COUNT_MAX) return;
  Opening** oldest = &scope->tasks;
  for (Opening** each = oldest; *each != NULL; each = &(*each)->older) {
    if ((*each)->timing.path == 0) oldest = each;
  }
  EndTask(scope, oldest);
}

static PyObject* Scope_AsyncEnter(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  Scope* scope = (Scope*)self;
  const void* task = ThisTask();
  if (task == NULL) return NULL;
  PyObject* ready = NewReady(self);
  // Without memory it is not timed.
  Opening* opening = ready == NULL ? NULL : PyMem_Malloc(sizeof(Opening));
  if (opening == NULL) return ready;
  BeginTask(scope, opening, task);
  return ready;
}

static PyObject* Scope_AsyncExit(PyObject* self, PyObject* const* Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count)) {
  Scope* scope = (Scope*)self;
  const void* task = ThisTask();
  if (task == NULL) return NULL;
  Opening** chosen = &scope->tasks;
  while (*chosen != NULL && (*chosen)->task != task) chosen = &(*chosen)->older;
  if (*chosen != NULL) EndTask(scope, chosen);
  return NewReady(NULL);
}

// As a decorator: the function's calls are timed, each by itself.
static PyObject* Decorate(PyObject* self, PyObject* function) {
  PyObject* module = PyImport_ImportModule("stepwell._decorator");
  if (module == NULL) return NULL;
  PyObject* decorated = PyObject_CallMethod(module, "timed", "OO", self, function);
  Py_DECREF(module);
  return decorated;
}

static PyObject* Scope_Vectorcall(PyObject* self, PyObject* const* args, size_t flagged_count,
                                  PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  if (keywords == NULL || PyTuple_GET_SIZE(keywords) == 0) {
    if (count == 0) return Scope_Enter(self, NULL);
    if (count == 1) return Decorate(self, args[0]);
  }
  PyErr_SetString(PyExc_TypeError, "stepwell: a scope takes one function to decorate");
  return NULL;
}

static void Scope_Dealloc(PyObject* self) {
  Scope* scope = (Scope*)self;
  // Entered by hand and forgotten: what comes later is not inside of it.
  while (scope->newer != NULL) {
    Opening* ended = scope->newer;
    scope->newer = ended->older;
    End(ended, scope->id);
    PyMem_Free(ended);
  }
  while (scope->tasks != NULL) EndTask(scope, &scope->tasks);
  if (scope->is_open) End(&scope->first, scope->id);
  scope->is_open = 0;
  Py_CLEAR(scope->name);
  if (free_count < FREE_COUNT_MAX) {
    free_scopes[free_count++] = scope;
  } else {
    PyObject_Free(self);
  }
}

static PyObject* Scope_Repr(PyObject* self) {
  return PyUnicode_FromFormat("<stepwell.Scope %R>", ((Scope*)self)->name);
}

static PyObject* Scope_Name(PyObject* self, void* Py_UNUSED(closure)) {
  if (((Scope*)self)->id == 0) return PyUnicode_FromString("");
  Py_INCREF(((Scope*)self)->name);
  return ((Scope*)self)->name;
}

// Of the same name, closed: a generator's and a task's calls each have one of their own, which lies in
// none and holds none.
static PyObject* Scope_Apart(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  ScopeName name = {.name = ((Scope*)self)->name, .id = ((Scope*)self)->id};
  PyObject* apart = Scope_New(&name);
  if (apart != NULL) ((Scope*)apart)->is_apart = 1;
  return apart;
}

stepwell_scope_id Scope_Id(PyObject* scope) { return ((Scope*)scope)->id; }

PyObject* Scope_IsInnermost(PyObject* Py_UNUSED(module), PyObject* scope) {
  if (Py_TYPE(scope) != &Scope_Type) {
    PyErr_SetString(PyExc_TypeError, "stepwell: is_innermost() takes a scope");
    return NULL;
  }
  const stepwell_scope_id id = ((Scope*)scope)->id;
  return PyBool_FromLong(id != 0 && stepwell_enabled() && stepwell_innermost_scope() == id);
}

static PyObject* Scope_Reduce(PyObject* self, PyObject* Py_UNUSED(ignored)) {
  PyObject* arguments = Py_BuildValue("(O)", ((Scope*)self)->name);
  PyObject* pickled = arguments == NULL ? NULL : Names_Pickled("scope", arguments);
  Py_XDECREF(arguments);
  return pickled;
}

static PyMethodDef scope_methods[] = {
    {"__reduce__", Scope_Reduce, METH_NOARGS, NULL},
    {"_apart", Scope_Apart, METH_NOARGS, NULL},
    {"__aenter__", Scope_AsyncEnter, METH_NOARGS, NULL},
    {"__aexit__", (PyCFunction)(void (*)(void))Scope_AsyncExit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef scope_fields[] = {
    {"name", Scope_Name, NULL, "Its name; empty where that was refused.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Scope_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell.Scope",
    .tp_basicsize = sizeof(Scope),
    .tp_dealloc = Scope_Dealloc,
    .tp_repr = Scope_Repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Scope, call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A named, timed region: a context manager and a decorator; made by Run.scope().",
    .tp_methods = scope_methods,
    .tp_getset = scope_fields,
};
