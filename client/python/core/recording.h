// Recording: the calls of a Run that a training step makes. They raise nothing of ours.
#pragma once

#include <Python.h>

extern PyTypeObject Recording_Type;
