// MasterPlace: where a master is and how it is reached: in plain, or within TLS.
#pragma once

#include <string>

#include "base/tls/tls_files.h"

namespace stepwell::cli {

// What STEPWELL_SERVER says to recorders that are to ask no master (docs/environment.md).
inline constexpr char kOfflineServer[] = "offline";

struct MasterPlace {
  std::string address;  // HOST:PORT, or kOfflineServer
  TlsFiles tls = {};
  // Of `tls`; without a CA: plain.
  TlsMaterial own = {};
};

}  // namespace stepwell::cli
