// TlsTrouble: why no connection comes about where TLS is used, or should be, in a person's words. gRPC says
// of every such failure that a handshake failed, or that a socket was closed. This tries one connection
// of its own and looks closer.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/tls/tls_files.h"

namespace stepwell {

// `address` is HOST:PORT of a master; `own` what this client has, nothing where it speaks no TLS. Empty: nothing that has to do with TLS (nobody listens there, or
// all is well by now). Blocks for about `patience` at most, without what a name's look-up takes.
std::string TlsTrouble(const std::string& address, const TlsMaterial& own,
                       absl::Duration patience = absl::Seconds(3));

}  // namespace stepwell
