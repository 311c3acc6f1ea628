// ServerAddress: how a master is named: in options and in a writer's `writer.json`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {

// Instead of an address: what is recorded stays in the spool, nothing is sent.
inline constexpr const char* kOffline = spool::kServerOffline;

// HOST:PORT with a port of 1-65535; an IPv6 host stands in [ ].
bool IsServerAddress(std::string_view text);
inline constexpr char kServerAllowed[] = "HOST:PORT, or offline";

}  // namespace stepwell::agent
