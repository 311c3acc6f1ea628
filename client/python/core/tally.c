#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client/python/core/tally.h"

#include "client/python/core/hot.h"
#include "client/python/core/names.h"

// More paths than a run has; those past it are in no line at the end.
#define PATH_COUNT_MAX 65536u

typedef struct {
  uint32_t parent;
  stepwell_scope_id name;  // 0 = not seen yet
  uint64_t ns, count;
  uint64_t step_ns, step_count;  // of the step that is open
} Path;

HOT_DATA uint32_t tally_thread;
static HOT_DATA Path* paths;
static HOT_DATA uint32_t path_capacity;
static HOT_DATA uint32_t* touched;  // in the step that is open
static HOT_DATA uint32_t touched_count;
static HOT_DATA uint64_t steps_ns, step_count;

static RARE int Reserve(uint32_t path) {
  if (path >= PATH_COUNT_MAX) return 0;
  uint32_t capacity = path_capacity == 0 ? 256 : path_capacity;
  while (capacity <= path) capacity *= 2;
  Path* more_paths = PyMem_Realloc(paths, capacity * sizeof(Path));
  if (more_paths == NULL) return 0;
  paths = more_paths;
  uint32_t* more_touched = PyMem_Realloc(touched, capacity * sizeof(uint32_t));
  if (more_touched == NULL) return 0;
  touched = more_touched;
  memset(paths + path_capacity, 0, (capacity - path_capacity) * sizeof(Path));
  path_capacity = capacity;
  return 1;
}

HOT void Tally_AddPath(const stepwell_scope* scope, uint32_t path, stepwell_scope_id name,
                       uint64_t took_ns) {
  if (path >= path_capacity && !Reserve(path)) return;
  Path* of = &paths[path];
  if (of->step_count == 0) {
    of->parent = scope->parent;
    of->name = name;
    touched[touched_count++] = path;
  }
  of->step_ns += took_ns;
  ++of->step_count;
}

static HOT void LeaveStep(int is_whole) {
  for (uint32_t i = 0; i < touched_count; ++i) {
    Path* of = &paths[touched[i]];
    if (is_whole) {
      of->ns += of->step_ns;
      of->count += of->step_count;
    }
    of->step_ns = of->step_count = 0;
  }
  touched_count = 0;
}

HOT void Tally_EndStep(uint64_t step_ns) {
  LeaveStep(1);
  steps_ns += step_ns;
  ++step_count;
}

void Tally_DropStep(void) { LeaveStep(0); }

// Names with '/' between; "?" for a scope that never ended in a step.
static PyObject* PathText(uint32_t path, int depth) {
  const Path* of = path < path_capacity ? &paths[path] : NULL;
  if (of == NULL || of->name == 0) return PyUnicode_FromString("?");
  PyObject* name = Names_OfScope(of->name);
  if (name == NULL) return NULL;
  // The recorder nests no deeper than 32.
  if (of->parent == 0 || depth == 0) {
    Py_INCREF(name);
    return name;
  }
  PyObject* parent = PathText(of->parent, depth - 1);
  if (parent == NULL) return NULL;
  PyObject* text = PyUnicode_FromFormat("%U/%U", parent, name);
  Py_DECREF(parent);
  return text;
}

static int AppendPath(PyObject* list, uint32_t path) {
  PyObject* text = PathText(path, 32);
  if (text == NULL) return 0;
  PyObject* entry = Py_BuildValue("(NKK)", text, (unsigned long long)paths[path].ns,
                                  (unsigned long long)paths[path].count);
  const int is_appended = entry != NULL && PyList_Append(list, entry) == 0;
  Py_XDECREF(entry);
  return is_appended;
}

void Tally_Reset(void) {
  if (path_capacity > 0) memset(paths, 0, path_capacity * sizeof(Path));
  touched_count = 0;
  steps_ns = step_count = 0;
  tally_thread = 0;
}

PyObject* Tally_Take(void) {
  LeaveStep(0);
  PyObject* list = PyList_New(0);
  for (uint32_t path = 0; list != NULL && path < path_capacity; ++path) {
    if (paths[path].count > 0 && !AppendPath(list, path)) Py_CLEAR(list);
  }
  if (list == NULL) return NULL;
  PyObject* taken =
      Py_BuildValue("(KKN)", (unsigned long long)step_count, (unsigned long long)steps_ns, list);
  Tally_Reset();
  return taken;
}
