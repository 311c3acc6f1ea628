// FrameSealer: the way of one writer's samples into its spool: catalog, builder, and the frames
// made of them. Rank writers and the machine's sampler each have one. Confined to the agent's loop.
//
//   sealer.builder().AddTick(...);
//   STEPWELL_RETURN_IF_ERROR(sealer.Seal(checkpoint));   // written, or kept for the next call
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "client/agent/chunk_builder.h"
#include "client/agent/series_catalog.h"
#include "client/agent/spool.h"

namespace stepwell::agent {

class FrameSealer {
 public:
  // Takes over the spool's definitions. `clock` outlives the sealer; the spool is shared with the
  // sender.
  FrameSealer(std::shared_ptr<Spool> spool, const Clock& clock);

  SeriesCatalog& catalog() { return catalog_; }
  ChunkBuilder& builder() { return builder_; }
  Spool& spool() { return *spool_; }

  // Writes what the builder holds, with `checkpoint`, as one group of frames; only the checkpoint
  // where it holds nothing. On an error all of it is kept, and pending() until Retry() succeeds.
  absl::Status Seal(const Checkpoint& checkpoint);
  bool pending() const { return pending_ != nullptr; }
  absl::Status Retry();
  // What the last successful Seal or Retry wrote.
  const Checkpoint& written() const { return written_; }

  // The writer goes on in another spool, which holds all definitions of this one.
  void SwitchSpool(std::shared_ptr<Spool> spool) { spool_ = std::move(spool); }

 private:
  struct Pending {
    std::vector<std::string> definitions;
    std::vector<Spool::Sealed> frames;
    Checkpoint checkpoint;
  };

  std::shared_ptr<Spool> spool_;
  const Clock& clock_;
  SeriesCatalog catalog_;
  ChunkBuilder builder_{catalog_};
  std::unique_ptr<Pending> pending_;
  Checkpoint written_;
};

}  // namespace stepwell::agent
