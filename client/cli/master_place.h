// MasterPlace: where a master is and how it is reached: in plain, or within TLS.
#pragma once

#include <string>

#include "base/tls/tls_files.h"

namespace stepwell::cli {

struct MasterPlace {
  std::string address;  // HOST:PORT
  TlsFiles tls = {};
  // Of `tls`; without a CA: plain.
  TlsMaterial own = {};
};

}  // namespace stepwell::cli
