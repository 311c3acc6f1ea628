// ServerAddress: what stands where a master is named: in options and in a writer's `writer.json`.
#pragma once

#include "base/server_address.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {

// Instead of an address: what is recorded stays in the spool, nothing is sent.
inline constexpr const char* kOffline = spool::kServerOffline;

inline constexpr char kServerAllowed[] = "HOST:PORT, or offline";

}  // namespace stepwell::agent
