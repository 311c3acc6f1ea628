// What SQL holds of a trial: every sample of stepwell.samples() for the series that a ledger names,
// and the declared gaps. Read over libpq, in binary, past everything that the master does.
#pragma once

#include <string>
#include <vector>

#include "tests/faults/checker/checker.h"

namespace stepwell::faults {

struct StoredTrial {
  std::vector<StoredSample> samples;
  std::vector<StoredGap> gaps;
  // For people: one line per gap, cause by name.
  std::vector<std::string> gap_texts;
};

// Empty = read, else the database's words. `series` are "group/name".
std::string ReadStoredTrial(const std::string& database_url, const std::string& trial_name,
                            const std::vector<std::string>& series, StoredTrial& stored);

}  // namespace stepwell::faults
