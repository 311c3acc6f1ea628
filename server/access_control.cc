#include "server/access_control.h"

#include <google/protobuf/message.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "server/limits.h"
#include "server/query_wire.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

constexpr std::size_t kPlacesMax = 10'000;
// Each may cost a question to the database.
constexpr std::size_t kTrialsMax = 64;
constexpr absl::Duration kLookupPatience = absl::Seconds(2);

absl::Status Reasoned(absl::Status status, absl::string_view reason) {
  status.SetPayload("stepwell/reason", absl::Cord(reason));
  return status;
}

absl::Status Missing(const TokenHolder& holder, const std::string& grant,
                     absl::string_view for_what) {
  absl::Status status = Reasoned(absl::PermissionDeniedError(absl::StrCat(
                                     "the token ", holder.id, " (", holder.name, ") has no grant ",
                                     grant, ", which ", for_what, " wants")),
                                 "GRANT_MISSING");
  status.SetPayload("stepwell/metadata/grant", absl::Cord(grant));
  return status;
}

absl::string_view NameOf(const AccessRule& rule) {
  const auto dot = rule.method.rfind('.');
  const std::string_view name = rule.method.substr(dot + 1);
  return {name.data(), name.size()};
}

bool Allows(const Grants& grants, Right right, const TrialPlace& place) {
  switch (right) {
    case Right::kIngest:
      return grants.Ingests(place);
    case Right::kRead:
      return grants.Reads(place.project);
    case Right::kWrite:
      return grants.Writes(place.project);
    case Right::kAdmin:
      return grants.admin();
  }
  return false;
}

std::string GrantFor(Right right, const TrialPlace& place, const TrialSelector& trial) {
  switch (right) {
    case Right::kIngest:
      return IngestGrant(trial);
    case Right::kRead:
      return absl::StrCat("read:", place.project);
    case Right::kWrite:
      return absl::StrCat("write:", place.project);
    case Right::kAdmin:
      return "admin";
  }
  return "";
}

}  // namespace

absl::Status TokenEnded() {
  return absl::UnauthenticatedError(
      "the token of this call has been revoked, or has expired, or its client's certificate has");
}

absl::StatusOr<Caller> AccessControl::Identify(std::string_view authorization) const {
  if (guard_ == nullptr) return Caller();
  return guard_->Identify(authorization);
}

absl::StatusOr<Caller> AccessControl::IdentifyToken(const std::string& token) const {
  if (guard_ == nullptr) return Caller();
  return guard_->IdentifyToken(token);
}

absl::StatusOr<Caller> AccessControl::IdentifyCertificate(
    const std::vector<std::string>& names) const {
  if (guard_ == nullptr) return Caller();
  return guard_->IdentifyCertificate(names);
}

absl::StatusOr<Caller> AccessControl::Until(const Caller& caller,
                                            std::int64_t certificate_end_us) const {
  if (guard_ == nullptr) return caller;
  return guard_->Until(caller, certificate_end_us);
}

absl::Status AccessControl::Check(const Caller& caller,
                                  const google::protobuf::Message& request) const {
  if (guard_ == nullptr) return absl::OkStatus();
  return CheckAs(FindRule(*request.GetDescriptor()), caller, request);
}

absl::Status AccessControl::CheckAs(const AccessRule* rule, const Caller& caller,
                                    const google::protobuf::Message& request) const {
  if (guard_ == nullptr) return absl::OkStatus();
  if (caller == nullptr) return absl::UnauthenticatedError(kNoToken);
  if (rule == nullptr) {
    return Reasoned(absl::PermissionDeniedError("nobody may call this method: it has no rule"),
                    "NO_RULE");
  }
  const Grants& grants = caller->grants;
  if (grants.admin()) return absl::OkStatus();
  switch (rule->subject) {
    case Subject::kList:
    case Subject::kEachWriter:
      return absl::OkStatus();
    case Subject::kIngest:
      return CheckIngests(caller);
    case Subject::kMaster:
      if (rule->right != Right::kRead) return Missing(*caller, "admin", NameOf(*rule));
      if (grants.ReadsAll()) return absl::OkStatus();
      return Missing(*caller, "read:*", NameOf(*rule));
    case Subject::kPlace:
      return CheckCapsPlace(*rule, *caller, request);
    case Subject::kTrialId: {
      const std::int64_t trial_id = TrialIdOf(request);
      if (trial_id <= 0) return Missing(*caller, "admin", NameOf(*rule));
      return CheckTrial(*rule, *caller, {.trial_id = trial_id});
    }
    case Subject::kTrials:
      break;
  }
  const std::vector<v1::TrialRef> trials = TrialsOf(request);
  // So that no rule opens a method whose request has another form than the rule thinks.
  if (trials.empty()) return absl::InvalidArgumentError("the request names no trial");
  if (trials.size() > kTrialsMax) {
    return absl::InvalidArgumentError(absl::StrCat("the request names ", trials.size(),
                                                   " trials, allowed are at most ", kTrialsMax));
  }
  for (const v1::TrialRef& ref : trials) {
    STEPWELL_ASSIGN_OR_RETURN(const TrialSelector trial, CheckTrialRef(ref));
    STEPWELL_RETURN_IF_ERROR(CheckTrial(*rule, *caller, trial));
  }
  return absl::OkStatus();
}

absl::Status AccessControl::CheckCapsPlace(const AccessRule& rule, const TokenHolder& holder,
                                           const google::protobuf::Message& request) const {
  const v1::CapsPlace* place = CapsPlaceOf(request);
  if (place == nullptr) return absl::InvalidArgumentError("the request names no place");
  if (place->has_trial()) {
    STEPWELL_ASSIGN_OR_RETURN(const TrialSelector trial, CheckTrialRef(place->trial()));
    return CheckTrial(rule, holder, trial);
  }
  // Denied in the same words whether there is such a project or not.
  if (place->owner_case() == v1::CapsPlace::kProject) {
    if (Allows(holder.grants, rule.right, {0, place->project(), ""})) return absl::OkStatus();
    return Missing(holder, GrantFor(rule.right, {0, place->project(), ""}, {}), NameOf(rule));
  }
  const auto readable = holder.grants.ReadableProjects();
  if (readable.is_all() || !readable.named().empty()) return absl::OkStatus();
  return Missing(holder, "read:PROJECT", NameOf(rule));
}

absl::Status AccessControl::CheckTrial(const AccessRule& rule, const TokenHolder& holder,
                                       const TrialSelector& trial) const {
  const Grants& grants = holder.grants;
  TrialPlace place{trial.trial_id, trial.trial_id == 0 ? trial.project : "", trial.external_id};
  const bool may = Allows(grants, rule.right, place);
  if (may) return absl::OkStatus();
  const bool asks_number = rule.right == Right::kIngest && grants.has_trial_ids();
  if (trial.trial_id != 0 || asks_number) {
    absl::StatusOr<TrialPlace> found = PlaceOf(holder, trial);
    if (found.ok()) {
      place = *std::move(found);
      if (Allows(grants, rule.right, place)) return absl::OkStatus();
    } else if (!absl::IsNotFound(found.status()) || rule.right != Right::kIngest) {
      return found.status();
    }
  }
  // As with a writer that opens, whether there is such a trial or not.
  if (rule.right == Right::kIngest) return Missing(holder, IngestGrant(trial), NameOf(rule));
  // Whether it is there or not: this caller has nothing to do with the project.
  if (!grants.Reads(place.project)) return NoSuchTrial(trial);
  return Missing(holder, GrantFor(rule.right, place, trial), NameOf(rule));
}

absl::Status AccessControl::CheckIngests(const Caller& caller) const {
  if (guard_ == nullptr) return absl::OkStatus();
  if (caller == nullptr) return absl::UnauthenticatedError(kNoToken);
  if (caller->grants.IngestsAny()) return absl::OkStatus();
  return Missing(*caller, "ingest:PROJECT/TRIAL", "this call");
}

absl::Status AccessControl::CheckOpen(const Caller& caller, const TrialSelector& trial) const {
  if (guard_ == nullptr) return absl::OkStatus();
  if (caller == nullptr) return absl::UnauthenticatedError(kNoToken);
  const Grants& grants = caller->grants;
  TrialPlace place{trial.trial_id, trial.trial_id == 0 ? trial.project : "", trial.external_id};
  if (grants.Ingests(place)) return absl::OkStatus();
  if (trial.trial_id != 0 || grants.has_trial_ids()) {
    absl::StatusOr<TrialPlace> found = PlaceOf(*caller, trial);
    if (found.ok()) {
      place = *std::move(found);
    } else if (!absl::IsNotFound(found.status())) {
      return found.status();
    } else if (trial.trial_id != 0 && trial.trial_id < kMasterTrialIdMin) {
      place.project = TrialSelector().project;  // where it would be made
    }
    if (grants.Ingests(place)) return absl::OkStatus();
  }
  return Missing(*caller, IngestGrant(trial), "this writer");
}

absl::StatusOr<TrialPlace> AccessControl::PlaceOf(const TokenHolder& holder,
                                                  const TrialSelector& trial) const {
  if (trial.trial_id != 0) {
    const absl::MutexLock lock(&mu_);
    const auto known = places_.find(trial.trial_id);
    if (known != places_.end() && holder.grants.Reads(known->second.project)) return known->second;
  }
  const absl::StatusOr<ReadAdmission::Ticket> turn =
      lookups_.Enter(kLookupPatience, PayerOf(holder));
  if (!turn.ok()) {
    // Not a limit of what somebody may do: who follows, and agents, wait for what is unavailable.
    return ComeAgain(absl::UnavailableError(
                         absl::StrCat("too many ask at once where trials lie, limit ", kLookupsMax,
                                      ", of one token ", kLookupsMax / 2, "; come again")),
                     kLookupsReason, absl::Seconds(1));
  }
  STEPWELL_ASSIGN_OR_RETURN(const TrialPlace place, store_.FindPlace(trial));
  const absl::MutexLock lock(&mu_);
  if (places_.size() >= kPlacesMax) places_.clear();
  places_[place.trial_id] = place;
  return place;
}

}  // namespace stepwell
