// CompletenessText: what an answer holds of what was sent, in a sentence or two. Pure.
#pragma once

#include <string>

#include "stepwell/v1/model.pb.h"

namespace stepwell::cli {

// "Complete: all 123,456 samples that were sent are here."
// "Incomplete: 1,200 samples are missing (ring full 1,000, spool lost 200)."
// "Incomplete: 123,456 samples are here. Ranks 3, 5-7 never opened: ..."
std::string CompletenessText(const v1::Completeness& completeness);

}  // namespace stepwell::cli
