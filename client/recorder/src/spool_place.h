// SpoolPlace is where a process that opens puts its spool: the first of the roots (spool_roots.h)
// that will do, or memory where none does.
//
//   SpoolPlace place = SpoolPlace::Find(identity, options.spool_dir, environment);
//   if (place.writer == nullptr) ...  // no memory
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/recorder/src/identity.h"
#include "client/recorder/src/spool_roots.h"
#include "client/recorder/src/spool_writer.h"

namespace stepwell::recorder {

struct SpoolPlace {
  std::unique_ptr<SpoolWriter> writer;
  SpoolRoot root;  // of a writer that is not in memory only
  // Which roots were refused, and why; what was taken instead.
  std::vector<std::string> remarks;

  // Blocks on the file system. `given` is options.spool_dir, empty = not given.
  static SpoolPlace Find(const Identity& identity, const std::string& given,
                         const Environment& environment);
};

}  // namespace stepwell::recorder
