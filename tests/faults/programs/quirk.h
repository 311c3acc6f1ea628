// Quirk: what a writer does that others do not, again and again, though it loses nothing by it: what a program of
// others may do by mistake, or what it may record.
#pragma once

#include <cstdint>
#include <string>

#include "stepwell/v1/ingest.pb.h"

namespace stepwell::faults {

enum class Quirk {
  kNone,
  kRepeats,         // a chunk is sent twice, and the one before it once more
  kSwaps,           // a chunk is sent before the one that it follows
  kSkips,           // a chunk is left out until the master asks for it
  kOpensAgain,      // its Open is sent twice on a stream that has it open
  kOpensElsewhere,  // it opens on another stream, and goes on with the one of before, too
  kJumblesTimes,    // times of a chunk are out of order, and many are equal
  kExtremeValues,   // NaN, infinities, -0, denormals
  kTalksWrong,      // messages that cannot be taken, between its chunks
  kSpoils,          // a chunk cannot be stored, and its ack is lost
};

// "" = none, "repeats", "swaps", ... Ends the program with 64 where there is none of that name.
Quirk QuirkNamed(const std::string& name);

double ExtremeValue(std::int64_t number);

// Of several kinds, by `number`: the master refuses it, and the writer stays open.
v1::StreamChunksRequest WrongMessage(const std::string& writer, int number);

}  // namespace stepwell::faults
