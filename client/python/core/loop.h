// Loop: the steps of a training whose loop is a framework's, which tells of its batches by calls.
#pragma once

#include <Python.h>

extern PyTypeObject Loop_Type;
