// QueryWire: stored nouns in the words of the wire contract, and back. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/writer_liveness.h"
#include "stepwell/v1/model.pb.h"
#include "stepwell/v1/query.pb.h"
#include "storage/read_store.h"

namespace stepwell {

v1::Gap ToWire(const Gap& gap);
v1::SeriesKey ToWire(const SeriesKey& key);
v1::Series ToWire(const Series& series);
v1::Trial ToWire(const TrialRecord& trial);
v1::TrialProfiling ToWire(const TrialProfiling& profiling);
// All but its state, which completeness.h tells. seen_time_us from `seen`, 0 where it was not heard of.
v1::Writer ToWire(const WriterRecord& writer, const WriterSeen& seen);

// kInvalidArgument naming the field.
[[nodiscard]] absl::StatusOr<TrialSelector> CheckTrialRef(const v1::TrialRef& ref_untrusted,
                                                          const std::string& field = "trial");
[[nodiscard]] absl::StatusOr<SeriesSelection> CheckSelector(
    const std::string& field, const v1::SeriesSelector& selector_untrusted);
// Of a request's `selectors`: at most 1000.
[[nodiscard]] absl::StatusOr<std::vector<SeriesSelection>> CheckSelectors(
    const google::protobuf::RepeatedPtrField<v1::SeriesSelector>& selectors_untrusted);
// Of a request's `group_by`: at most 32.
[[nodiscard]] absl::Status CheckGroupBy(
    const google::protobuf::RepeatedPtrField<std::string>& group_by_untrusted);
// Lowered to `most`; `fallback` for 0; kInvalidArgument below 0.
[[nodiscard]] absl::StatusOr<std::int32_t> CheckSize(const std::string& field,
                                                     std::int32_t size_untrusted,
                                                     std::int32_t fallback, std::int32_t most);

}  // namespace stepwell
