// What the calls of a training step read lies side by side. Between two of them a model's memory goes through the
// caches: each line, and each page, is fetched from memory again, some 50 to 100 ns, where the instructions of a
// whole timed call take 300. HOT functions are in one part of the text, HOT_DATA variables in one part of the data.
#pragma once

#define HOT __attribute__((hot))
// Of a process that never runs this code it costs a page, as any data does.
#define HOT_DATA __attribute__((section("stepwell_hot")))
// Not inlined, and out of the way of what is hot.
#define RARE __attribute__((cold, noinline))
