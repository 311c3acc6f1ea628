// TraceMergeStored: the half of `stepwell trace merge` that asks a master: traces of a trial as one, merged where
// they lie, or an archive of them as they are.
#pragma once

#include "client/cli/options.h"

namespace stepwell::cli {

// `options` are those of `trace merge`, with --trial. Returns the exit code.
int MergeStored(const CommandOptions& options, Streams streams);
// Placed here, by two readings of each trace.
int ArchiveStored(const CommandOptions& options, Streams streams);

}  // namespace stepwell::cli
