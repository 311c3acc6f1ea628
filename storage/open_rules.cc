#include "storage/open_rules.h"

#include <limits>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

absl::Status Refusal(const char* reason, const std::string& text) {
  absl::Status status = absl::FailedPreconditionError(text);
  status.SetPayload("stepwell/reason", absl::Cord(reason));
  return status;
}

}  // namespace

absl::Status CheckOpen(const OpenWriterRequest& request) {
  const TrialSelector& trial = request.trial;
  if (trial.trial_id < 0) {
    return absl::InvalidArgumentError(absl::StrCat("trial id ", trial.trial_id,
                                                   ": allowed are 1 to ", kMasterTrialIdMin - 1,
                                                   ", or an id that the master gave"));
  }
  if (trial.trial_id == 0 && (trial.external_id.empty() || trial.project.empty())) {
    return absl::InvalidArgumentError("trial: give an id, or a project and an external id");
  }
  if (trial.trial_id != 0 && !trial.external_id.empty()) {
    return absl::InvalidArgumentError("trial: give an id or an external id, not both");
  }
  constexpr auto kGenerationMax =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 2;
  if (request.last_generation > kGenerationMax) {
    return absl::InvalidArgumentError(absl::StrCat("last generation ", request.last_generation,
                                                   ": allowed is at most ", kGenerationMax));
  }
  return absl::OkStatus();
}

absl::Status CheckOpenTrial(const TrialSelector& asked, TrialId trial_id, TrialShelf shelf) {
  if (!shelf.archived && !shelf.deleted) return absl::OkStatus();
  const std::string name = asked.trial_id != 0
                               ? absl::StrCat("trial ", asked.trial_id)
                               : absl::StrCat("trial ", Value(trial_id), " ('", asked.external_id,
                                              "' of project '", asked.project, "')");
  if (shelf.deleted) {
    return Refusal(
        "TRIAL_DELETED",
        absl::StrCat(name, " was deleted, and neither its number nor its name is used again; ",
                     "record under another one"));
  }
  return Refusal(
      "TRIAL_ARCHIVED",
      absl::StrCat(name, " is archived, so that nothing is added to it; record under another ",
                   "name, or take it out of the archive first"));
}

absl::Status NotLetThrough(const TrialSelector& asked) {
  const std::string name = asked.trial_id != 0 ? absl::StrCat("trial ", asked.trial_id)
                                               : absl::StrCat("trial '", asked.external_id,
                                                              "' of project '", asked.project, "'");
  return absl::PermissionDeniedError(
      absl::StrCat(name, " is none of those to which the token may add"));
}

absl::Status CheckRoomForWriter(const OpenWriterRequest& request, TrialId trial_id,
                                std::int32_t writer_count) {
  if (writer_count < request.writers_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("trial ", Value(trial_id), " has had ", writer_count, " writers; allowed are ",
                   request.writers_max, ": open one of them again, or record under another trial"));
}

bool JoinsNewestAttempt(const OpenWriterRequest& request) {
  return request.attempt_key.empty() && request.is_sampler;
}

std::string AttemptKeyOf(const OpenWriterRequest& request) {
  if (!request.attempt_key.empty()) return request.attempt_key;
  return request.is_sampler ? std::string() : request.writer.ToText();
}

}  // namespace stepwell
