// PageToken: the place after a page, as opaque text that is tied to its query: given with another
// one it is refused. A core; pure functions.
//
//   const std::string token = MakePageToken(QueryFingerprint(request), {last.series_no});
//   STEPWELL_ASSIGN_OR_RETURN(auto place, ReadPageToken("page_token", token, fingerprint, 1));
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell {

// Of what the query asks, without its token and its page size: callers build it from every field
// that chooses what is answered, each with its length.
std::uint32_t QueryFingerprint(std::initializer_list<std::string> fields);

// `place` are the numbers that the next page starts after.
std::string MakePageToken(std::uint32_t fingerprint, std::initializer_list<std::int64_t> place);

// kInvalidArgument, naming `field`, when the text is not ours or belongs to another query.
[[nodiscard]] absl::StatusOr<std::vector<std::int64_t>> ReadPageToken(const std::string& field,
                                                                      const std::string& token,
                                                                      std::uint32_t fingerprint,
                                                                      std::size_t number_count);

}  // namespace stepwell
