#include "server/open_check.h"

#include "absl/strings/str_cat.h"
#include "server/label_check.h"
#include "server/limits.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

MaybeComplaint CheckTrial(const pb::Open& open, TrialSelector& out) {
  if ((open.trial_id() != 0) == !open.external_id().empty()) {
    return Invalid("TRIAL_SELECTOR", "open must have exactly one of trial_id and external_id");
  }
  if (open.trial_id() != 0) {
    if (open.trial_id() < 0) {
      return Invalid("TRIAL_ID", absl::StrCat("open.trial_id is ", open.trial_id(),
                                              ", allowed is a number from 1"));
    }
    out.trial_id = open.trial_id();
    return std::nullopt;
  }
  if (!open.project().empty()) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckProjectName("open.project", open.project()));
    out.project = open.project();
  }
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckText("open.external_id", open.external_id(), {1, 256}, "EXTERNAL_ID"));
  out.external_id = open.external_id();
  return std::nullopt;
}

MaybeComplaint CheckRank(const pb::Open& open, OpenWriterRequest& out) {
  out.is_sampler = open.is_sampler();
  if (open.world_size() < 0) {
    return Invalid("WORLD_SIZE", absl::StrCat("open.world_size is ", open.world_size(),
                                              ", allowed is 0 (unknown) and above"));
  }
  out.world_size = open.world_size();
  if (open.is_sampler()) return std::nullopt;
  if (open.rank() < 0 || (open.world_size() > 0 && open.rank() >= open.world_size())) {
    return Invalid("RANK", absl::StrCat("open.rank is ", open.rank(),
                                        ", allowed is 0 and above, below world_size where that is"
                                        " given (",
                                        open.world_size(), ")"));
  }
  out.rank = open.rank();
  return std::nullopt;
}

}  // namespace

MaybeComplaint CheckOpen(const pb::Open& open, OpenWriterRequest& out) {
  const auto writer = Uuid::FromBytes(open.writer());
  if (!writer || *writer == Uuid{}) {
    return Invalid("WRITER_UUID", absl::StrCat("open.writer has ", open.writer().size(),
                                               " bytes, allowed are 16, not all of them zero"));
  }
  out.writer = *writer;
  STEPWELL_RETURN_IF_COMPLAINT(CheckTrial(open, out.trial));
  STEPWELL_RETURN_IF_COMPLAINT(CheckRank(open, out));
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckText("open.attempt_key", open.attempt_key(), {0, 256}, "ATTEMPT_KEY"));
  STEPWELL_RETURN_IF_COMPLAINT(CheckText("open.agent_id", open.agent_id(), {0, 128}, "AGENT_ID"));
  STEPWELL_RETURN_IF_COMPLAINT(CheckText("open.machine", open.machine(), {0, 64}, "MACHINE"));
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckText("open.recorder_version", open.recorder_version(), {0, 128}, "RECORDER_VERSION"));
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckText("open.agent_version", open.agent_version(), {0, 128}, "AGENT_VERSION"));
  STEPWELL_RETURN_IF_COMPLAINT(CheckLabels("open.labels", open.labels(), out.labels));
  // Each Open gives out one above: a store has room for as many more of them.
  constexpr std::uint64_t kGivenGenerations = std::uint64_t{1} << 62;
  if (open.last_generation() >= kGivenGenerations) {
    return Invalid("GENERATION_RANGE",
                   absl::StrCat("open.last_generation is ", open.last_generation(),
                                ", allowed is below 2^62"));
  }
  out.attempt_key = open.attempt_key();
  out.agent_id = open.agent_id();
  out.machine = open.machine();
  out.recorder_version = open.recorder_version();
  out.agent_version = open.agent_version();
  out.last_generation = open.last_generation();
  return std::nullopt;
}

Labels WriterLabels(const OpenWriterRequest& open) {
  Labels known;
  if (!open.agent_id.empty()) known.emplace_back("agent", open.agent_id);
  if (!open.is_sampler) known.emplace_back("rank", absl::StrCat(open.rank));
  return MergeLabels(open.labels, known);
}

}  // namespace stepwell
