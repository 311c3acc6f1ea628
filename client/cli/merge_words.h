// MergeWords: what a master says of a merge beside its bytes, for people: what ends too early or is left out. Functions.
#pragma once

#include <ostream>

#include "stepwell/v1/trace.pb.h"

namespace stepwell::cli {

// Of the inputs, and of those that are none.
void TellInputs(const v1::TracePlacement& placement, std::ostream& err);
void TellLeftOut(const v1::MergeTotals& totals, std::ostream& err);

}  // namespace stepwell::cli
