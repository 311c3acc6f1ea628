// Refusal: what a hot call does with what cannot be recorded: it warns once, and the training goes
// on. Needs the GIL.
#pragma once

typedef enum { kRefusedScope, kRefusedSeries, kRefusedValue, kRefusedCall, kRefusalCount } Refusal;

// `format` is that of PyErr_Format. Whatever warnings are made into, nothing is raised; a pending
// error is dropped, if it is an Exception.
// -1 where the pending error is none of those (KeyboardInterrupt): the caller raises it.
int Refuse(Refusal kind, const char* format, ...);
