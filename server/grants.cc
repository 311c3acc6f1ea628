#include "server/grants.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr char kAll[] = "*";
constexpr std::size_t kShownBytesMax = 128;
constexpr TextBounds kExternalIdBounds{1, 256};

absl::Status NotAGrant(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "grants: '", Shortened(text, kShownBytesMax),
      "' is none; allowed: read:PROJECT, write:PROJECT (* for all of them), ingest:PROJECT/TRIAL, "
      "ingest:id:NUMBER, admin; a project has 1 to 128 bytes of [A-Za-z0-9._-], a trial 1 to 256 "
      "bytes"));
}

bool IsProject(const std::string& text) { return !CheckProjectName("", text).has_value(); }

}  // namespace

Grants Grants::Admin() {
  Grants grants;
  grants.admin_ = true;
  grants.texts_ = {"admin"};
  return grants;
}

absl::StatusOr<Grants> Grants::Parse(const std::vector<std::string>& texts_untrusted) {
  if (texts_untrusted.empty() || texts_untrusted.size() > kGrantsMax) {
    return absl::InvalidArgumentError(absl::StrCat("grants: there are ", texts_untrusted.size(),
                                                   ", allowed are 1 to ", kGrantsMax));
  }
  Grants grants;
  for (const std::string& text : texts_untrusted) STEPWELL_RETURN_IF_ERROR(grants.Add(text));
  const std::set<std::string> each(texts_untrusted.begin(), texts_untrusted.end());
  grants.texts_.assign(each.begin(), each.end());
  return grants;
}

absl::Status Grants::Add(const std::string& text) {
  absl::string_view rest = text;
  if (text == "admin") {
    admin_ = true;
    return absl::OkStatus();
  }
  const bool reads = absl::ConsumePrefix(&rest, "read:");
  if (reads || absl::ConsumePrefix(&rest, "write:")) {
    const std::string project(rest);
    if (project != kAll && !IsProject(project)) return NotAGrant(text);
    (reads ? reads_ : writes_).insert(project);
    return absl::OkStatus();
  }
  if (!absl::ConsumePrefix(&rest, "ingest:")) return NotAGrant(text);
  if (absl::ConsumePrefix(&rest, "id:")) {
    std::int64_t id = 0;
    if (!absl::SimpleAtoi(rest, &id) || id <= 0 || absl::StrCat(id) != rest) return NotAGrant(text);
    ingest_ids_.insert(id);
    return absl::OkStatus();
  }
  // No project has a slash; a trial may.
  const auto slash = rest.find('/');
  if (slash == absl::string_view::npos) return NotAGrant(text);
  const std::string project(rest.substr(0, slash));
  const std::string name(rest.substr(slash + 1));
  if (!IsProject(project) || CheckText("", name, kExternalIdBounds, "")) return NotAGrant(text);
  ingest_names_.emplace(project, name);
  return absl::OkStatus();
}

bool Grants::Writes(const std::string& project) const {
  return admin_ || writes_.count(kAll) != 0 || writes_.count(project) != 0;
}

bool Grants::Reads(const std::string& project) const {
  return Writes(project) || reads_.count(kAll) != 0 || reads_.count(project) != 0;
}

bool Grants::Ingests(const TrialPlace& place) const {
  if (Writes(place.project)) return true;
  if (place.trial_id != 0 && ingest_ids_.count(place.trial_id) != 0) return true;
  return !place.external_id.empty() && ingest_names_.count({place.project, place.external_id}) != 0;
}

bool Grants::IngestsAny() const {
  return admin_ || !writes_.empty() || !ingest_names_.empty() || !ingest_ids_.empty();
}

bool Grants::ReadsAll() const {
  return admin_ || reads_.count(kAll) != 0 || writes_.count(kAll) != 0;
}

ProjectFilter Grants::ReadableProjects() const {
  if (ReadsAll()) return kAllProjects;
  std::set<std::string> projects = reads_;
  projects.insert(writes_.begin(), writes_.end());
  return std::vector<std::string>(projects.begin(), projects.end());
}

TrialFilter Grants::IngestibleTrials() const {
  if (admin_ || writes_.count(kAll) != 0) return kAllProjects;
  return {std::vector<std::string>(writes_.begin(), writes_.end()),
          {ingest_names_.begin(), ingest_names_.end()},
          {ingest_ids_.begin(), ingest_ids_.end()}};
}

std::string IngestGrant(const TrialSelector& trial) {
  if (trial.trial_id != 0) return absl::StrCat("ingest:id:", trial.trial_id);
  return absl::StrCat("ingest:", trial.project, "/", trial.external_id);
}

}  // namespace stepwell
