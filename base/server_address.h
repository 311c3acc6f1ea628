// ServerAddress: how a master is named: in options, in variables and in a writer's `writer.json`. Pure.
#pragma once

#include <string_view>

namespace stepwell {

// HOST:PORT with a port of 1-65535; an IPv6 host stands in [ ].
bool IsServerAddress(std::string_view text);

}  // namespace stepwell
