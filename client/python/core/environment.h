// The process's environment as it is now, for calls that run without the interpreter's lock: what sets a variable
// in Python holds that lock, and may move all of them.
#pragma once

// Texts NAME=VALUE, NULL at the end, in one piece that PyMem_Free frees. Under the interpreter's lock. NULL = no
// memory.
char** Environment_Copy(void);
