// DefinitionCheck: which refs of a Definitions message are new, well-formed and allowed. Each
// definition stands for itself: a bad one does not take others with it. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "server/complaint.h"
#include "server/ref_table.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"
#include "storage/model.h"

namespace stepwell {

struct CheckedDefinition {
  std::uint32_t number = 0;  // the ref
  Ref ref;                   // without series_no
  SeriesDefinition definition;
};

struct RefusedDefinition {
  std::uint32_t number = 0;  // 0 = it had none
  Complaint complaint;
  Ref ref;
};

struct DefinitionResult {
  std::vector<CheckedDefinition> fresh;
  std::vector<RefusedDefinition> refused;
};

// `labels` are those that all series of the writer carry. Repeats of what `refs` knows are left
// out.
DefinitionResult CheckDefinitions(const pb::Definitions& definitions_untrusted,
                                  const Labels& labels, const RefTable& refs);

}  // namespace stepwell
