// The five questions of a chart, put to both sides in turns through their own doors, answers included: again and
// again, and for the first time.
#pragma once

#include "bench/load/loaded_master.h"
#include "bench/rivals/victoria.h"

namespace stepwell::bench {

// Of the load `day`, whose newest sample is at end_us and which goes back 24 hours at least. Answers of
// ours are read and parsed, theirs are only read.
void CompareQueries(LoadedMaster& ours, Victoria& theirs, std::int64_t end_us, int questions);

// Of both sides after a restart, each question once:
//   rivals.series_day_first  24 h of each of the 64 GPUs to 1000 buckets, from samples
//   rivals.gpus_hour_first   64 GPUs to 500 buckets, from samples, of every second of the newest hours, 24 at most
// `hours` have samples of the load, 24 at least. REQUIRES: ours is closed.
void CompareFirstQueries(LoadedMaster& ours, Victoria& theirs, std::int64_t end_us, int hours);

}  // namespace stepwell::bench
