#define PY_SSIZE_T_CLEAN
#include "client/python/core/environment.h"

#include <Python.h>
#include <string.h>

extern char** environ;

char** Environment_Copy(void) {
  size_t count = 0;
  size_t bytes = 0;
  for (char** one = environ; one != NULL && *one != NULL; ++one) {
    bytes += strlen(*one) + 1;
    ++count;
  }
  const size_t pointer_bytes = (count + 1) * sizeof(char*);
  char** copy = PyMem_Malloc(pointer_bytes + bytes);
  if (copy == NULL) return NULL;
  char* text = (char*)copy + pointer_bytes;
  for (size_t i = 0; i < count; ++i) {
    copy[i] = strcpy(text, environ[i]);
    text += strlen(text) + 1;
  }
  copy[count] = NULL;
  return copy;
}
