// Follow: what `stepwell read --follow` does: prints samples as they are pushed, goes on where it was when
// the master comes again, and ends with the trial, a signal, the limit, or when nobody reads its output.
#pragma once

#include "client/cli/command.h"
#include "client/cli/options.h"
#include "client/cli/samples_view.h"

namespace stepwell::cli {

// `options` were parsed, with those of AddSelectorOptions, "lookback" and "limit". An exit code. Blocks.
int Follow(const CommandOptions& options, Streams streams);

}  // namespace stepwell::cli
