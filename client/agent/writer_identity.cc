#include "client/agent/writer_identity.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/utf8.h"
#include "client/agent/ring_folder.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kTextBytesMax = 256;
constexpr std::size_t kLabelBytesMax = 1024;
// Names of pods have 253.
constexpr std::size_t kPlaceBytesMax = 256;

absl::Status Bad(absl::string_view field, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("writer.json: \"", field, "\" must be ", allowed));
}

constexpr std::size_t kServerBytesMax = 300;
constexpr std::size_t kPathBytesMax = 4096;
// More than there are groups, or metrics that are switched one by one.
constexpr std::size_t kSamplingWordsMax = 64;

std::vector<std::string> Words(const Json& sampling, const char* name) {
  std::vector<std::string> words;
  const auto found = sampling.find(name);
  if (found == sampling.end() || !found->is_array()) return words;
  for (const Json& word : *found) {
    if (words.size() == kSamplingWordsMax) break;
    if (word.is_string()) words.push_back(CleanText(word.get<std::string>(), 128));
  }
  return words;
}

// A wish, and no reason to refuse what was recorded: what is not understood is left out.
SamplingWish ParseSampling(const Json& document) {
  SamplingWish wish;
  const auto found = document.find("sampling");
  if (found == document.end() || !found->is_object()) return wish;
  if (const auto on = found->find("on"); on != found->end() && on->is_boolean()) {
    wish.on = on->get<bool>();
  }
  if (const auto us = found->find("interval_us"); us != found->end() && us->is_number_integer()) {
    wish.interval_us = std::clamp<std::int64_t>(us->get<std::int64_t>(), 0, 3'600'000'000);
  }
  wish.groups = Words(*found, "groups");
  wish.without = Words(*found, "without");
  wish.with = Words(*found, "with");
  return wish;
}

constexpr std::int64_t kCycleStepsMin = 10;

TracingWish ParseTracing(const Json& document) {
  TracingWish wish;
  const auto found = document.find("tracing");
  if (found == document.end() || !found->is_object()) return wish;
  if (const auto path = found->find("directory"); path != found->end() && path->is_string()) {
    wish.directory = path->get<std::string>();
    const bool is_path = !wish.directory.empty() && wish.directory.front() == '/' &&
                         wish.directory.size() <= kPathBytesMax &&
                         wish.directory.find('\0') == std::string::npos;
    if (!is_path) wish.directory.clear();
  }
  if (const auto kept = found->find("kept_max");
      kept != found->end() && kept->is_number_integer()) {
    wish.kept_max =
        static_cast<int>(std::clamp<std::int64_t>(kept->get<std::int64_t>(), 0, 10'000));
  }
  if (const auto steps = found->find("cycle_steps");
      steps != found->end() && steps->is_number_integer() && *steps > 0) {
    // A file has its price: not one for each few steps.
    wish.cycle_steps = static_cast<int>(
        std::clamp<std::int64_t>(steps->get<std::int64_t>(), kCycleStepsMin, 1'000'000'000));
  }
  if (const auto uploads = found->find("uploads");
      uploads != found->end() && uploads->is_boolean()) {
    wish.uploads = uploads->get<bool>();
  }
  return wish;
}

Json ToJson(const TracingWish& wish) {
  return {{"directory", wish.directory},
          {"kept_max", wish.kept_max},
          {"uploads", wish.uploads},
          {"cycle_steps", wish.cycle_steps}};
}

Json ToJson(const SamplingWish& wish) {
  return {{"on", wish.on},
          {"interval_us", wish.interval_us},
          {"groups", wish.groups},
          {"without", wish.without},
          {"with", wish.with}};
}

// What a project may be called: [A-Za-z0-9._-]; the rest becomes '_', rather than that nothing is
// stored.
std::string CleanProject(std::string_view text) {
  std::string project(text.substr(0, 128));
  std::replace_if(
      project.begin(), project.end(),
      [](unsigned char c) { return !absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-'; },
      '_');
  return project;
}

// No reason to refuse the writer: it only says where it runs.
void ReadPlacement(const Json& document, WriterIdentity& identity) {
  const auto placement = document.find("placement");
  if (placement == document.end() || !placement->is_object()) return;
  for (const char* name : {"pod", "slurm_job"}) {
    const auto found = placement->find(name);
    if (found == placement->end() || !found->is_string()) continue;
    const std::string text = CleanText(found->get<std::string>(), kPlaceBytesMax);
    if (!text.empty()) identity.placement[name] = text;
  }
}

}  // namespace

std::string CleanText(std::string_view text, std::size_t bytes_max) {
  std::string clean;
  clean.reserve(text.size());
  std::size_t cut = 0;  // longest whole-character prefix that leaves room for the mark
  constexpr std::size_t kMarkBytes = 9;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = CharacterBytes(rest);
    const bool is_taken = length > 0 && !BeginsWithControl(rest);
    clean.append(is_taken ? rest.substr(0, length) : std::string_view("?"));
    rest.remove_prefix(std::max<std::size_t>(length, 1));
    if (clean.size() + kMarkBytes <= bytes_max) cut = clean.size();
    if (clean.size() > bytes_max) break;
  }
  if (clean.size() <= bytes_max) return clean;
  return absl::StrCat(clean.substr(0, cut), "~", absl::StrFormat("%08x", Crc32c(text)));
}

absl::StatusOr<WriterIdentity> ParseWriterJson(std::string_view json) {
  const Json document = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return absl::InvalidArgumentError("writer.json: no JSON object");
  const auto text = [&](const char* name) {
    const auto found = document.find(name);
    return found != document.end() && found->is_string() ? found->get<std::string>()
                                                         : std::string();
  };
  const auto number = [&](const char* name) -> std::int64_t {
    const auto found = document.find(name);
    return found != document.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  WriterIdentity identity;
  const std::optional<Uuid> writer = Uuid::FromText(text("writer"));
  if (!writer) return Bad("writer", "a UUID");
  identity.writer = *writer;
  if (number("format") != 1) return Bad("format", "1");
  identity.server = CleanText(text("server"), kServerBytesMax);
  identity.project = CleanProject(text("project"));
  identity.trial = CleanText(text("trial"), kTextBytesMax);
  if (identity.trial.empty()) return Bad("trial", "a name or id:NUMBER");
  identity.attempt_key = CleanText(text("attempt_key"), kTextBytesMax);
  const auto is = [&](const char* name) {
    const auto found = document.find(name);
    return found != document.end() && found->is_boolean() && found->get<bool>();
  };
  identity.is_sampler = is("is_sampler");
  identity.renews_token = is("renews_token");
  const std::int64_t rank = number("rank");
  const std::int64_t world_size = number("world_size");
  if (rank < 0 || rank > INT32_MAX) return Bad("rank", "0 ... 2147483647");
  if (world_size < 0 || world_size > INT32_MAX) return Bad("world_size", "0 ... 2147483647");
  identity.rank = static_cast<std::int32_t>(rank);
  identity.world_size = world_size > rank ? static_cast<std::int32_t>(world_size) : 0;
  identity.token = text("token");
  identity.boot_id = CleanText(text("boot_id"), 64);
  identity.rings = text("rings");
  if (!identity.rings.empty() && !IsRingPath(identity.rings, identity.writer)) {
    return Bad("rings", "an absolute path that ends in the writer's uuid, or empty");
  }
  // No reason to refuse the writer: it only tells a copy.
  if (IsRingPath(text("path"), identity.writer)) identity.path = text("path");
  identity.recorder_version = CleanText(text("recorder_version"), 128);
  identity.sampling = ParseSampling(document);
  identity.tracing = ParseTracing(document);
  identity.opened_time_us = number("opened_time_us");
  identity.opened_monotonic_ns = static_cast<std::uint64_t>(number("opened_monotonic_ns"));
  if (const auto labels = document.find("labels"); labels != document.end()) {
    if (!labels->is_object()) return Bad("labels", "an object of texts");
    for (const auto& [name, value] : labels->items()) {
      if (!value.is_string()) return Bad("labels", "an object of texts");
      // The master would refuse the whole writer for one of these.
      if (name.empty() || name == "rank" || name == "agent") continue;
      if (identity.labels.size() == spool::kWriterLabelCountMax) break;
      identity.labels[CleanText(name, 128)] = CleanText(value.get<std::string>(), kLabelBytesMax);
    }
  }
  ReadPlacement(document, identity);
  return identity;
}

std::string ToWriterJson(const WriterIdentity& identity) {
  Json document;
  document["format"] = 1;
  document["writer"] = identity.writer.ToText();
  document["server"] = identity.server;
  document["project"] = identity.project;
  document["trial"] = identity.trial;
  document["attempt_key"] = identity.attempt_key;
  document["is_sampler"] = identity.is_sampler;
  document["rank"] = identity.rank;
  document["world_size"] = identity.world_size;
  document["token"] = identity.token;
  document["renews_token"] = identity.renews_token;
  document["boot_id"] = identity.boot_id;
  document["labels"] = identity.labels;
  document["placement"] = identity.placement;
  document["rings"] = identity.rings;
  document["path"] = identity.path;
  document["recorder_version"] = identity.recorder_version;
  document["sampling"] = ToJson(identity.sampling);
  document["tracing"] = ToJson(identity.tracing);
  document["opened_time_us"] = identity.opened_time_us;
  document["opened_monotonic_ns"] = identity.opened_monotonic_ns;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stepwell::agent
