// TransferCall: before a handler of Python's, which is called for what moves a tensor in a step, and for what C cannot
// tell. A call of any other tensor, outside of steps or to where it is already, is the original's alone: a tensor of a
// class of the program's own is asked for nothing, which it would see (__torch_function__). Needs the GIL.
#pragma once

#include <Python.h>

// TransferCall(handler, which, tensors, host, dtype): `which` is "from" (item, cpu, tolist: from a device),
// "to" (cuda), "by argument" (to) or "any"; `tensors` are the classes that are looked at, `host` is
// torch.device("cpu"), `dtype` the class torch.dtype, each of them None where there is none. Called as it is, with the original first.
extern PyTypeObject TransferCall_Type;

// 0 with an exception set.
int TransferCall_Init(void);
