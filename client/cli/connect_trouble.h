// ConnectTrouble: why nothing comes about between a command and its master, in a person's words. gRPC says of a
// name that nobody knows, a port where nobody listens and one where something else does that a connection failed.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace stepwell::cli {

// `address` is HOST:PORT. Tries one connection, and blocks for about `patience` at most, without what a name's look-up
// takes. Of who speaks TLS it is not found out what else listens there (TlsTrouble says what is wrong with that).
std::string ConnectTrouble(const std::string& address, bool has_tls,
                           absl::Duration patience = absl::Seconds(2));

}  // namespace stepwell::cli
