// LatestAnswer: the newest values of series as they travel, with the names that SeriesNames has made
// already. A value; pure.
//
//   LatestAnswer answer;
//   answer.Add(wire->Of(series_no), latest);
//   std::move(answer).MoveTo(*response);            // to be serialized
//   STEPWELL_ASSIGN_OR_RETURN(auto message, answer.ToMessage());   // to be looked at
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/latest_value.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

class LatestAnswer {
 public:
  // `series` in the form of the wire; in the order of their numbers.
  void Add(std::string_view series, const LatestValue& latest);
  void Reserve(std::size_t count) { values_.reserve(count); }
  v1::Completeness& completeness() { return completeness_; }

  // The message serializes to the whole answer; looked at, it has no values: they are already bytes, which
  // messages write as they are where they do not know a field, and that is all that this makes use of.
  void MoveTo(v1::LatestValuesResponse& response) &&;
  // kInternal: what was added is no message.
  absl::StatusOr<v1::LatestValuesResponse> ToMessage() const;

 private:
  std::vector<std::string> values_;  // v1::LatestValuesResponse.Value each
  v1::Completeness completeness_;
};

}  // namespace stepwell
