// OpenWishes is what stepwell_open was asked for, before the environment fills what it leaves open.
#pragma once

#include <string>

#include "client/recorder/src/identity.h"

namespace stepwell::recorder {

struct OpenWishes {
  Identity identity;
  std::string spool_dir = {};  // empty = the first that will do
  std::string agent = {};      // program; empty = searched; "off" = none is started
  bool starts_agent = true;
  // As `environ` has them, while the recorder opens; null = this process's own.
  const char* const* variables = nullptr;
};

}  // namespace stepwell::recorder
