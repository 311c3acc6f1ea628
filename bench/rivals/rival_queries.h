// The five questions of a chart, put to both sides in turns through their own doors, answers included.
#pragma once

#include "bench/load/loaded_master.h"
#include "bench/rivals/victoria.h"

namespace stepwell::bench {

// Of the load `day`, whose newest sample is at end_us and which goes back 24 hours at least. Answers of
// ours are read and parsed, theirs are only read.
void CompareQueries(LoadedMaster& ours, Victoria& theirs, std::int64_t end_us, int questions);

}  // namespace stepwell::bench
