// HostNames: the names of --http-host, and those of the master's certificate, as a Host header has them. A core; pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell {

// "a.example, b" → {"a.example", "b"}. kInvalidArgument: what no Host header can name, such as one with a
// scheme, a port, a path or a '*'.
// `certificate_pem`: the master's own; nobody else has a name that its CA put there, so no page of another site comes by one.
absl::StatusOr<std::vector<std::string>> ParseHostNames(std::string_view list_untrusted,
                                                        std::string_view certificate_pem = {});

}  // namespace stepwell
