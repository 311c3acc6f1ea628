// Settings: what may be set of `stepwell serve`, in one table: flag, environment variable, key of the
// configuration file, kind, range, meaning. A core: reads texts, opens nothing.
//
//   const Setting* setting = FindSetting("fold-interval");
//   if (const Problem problem = Set(*setting, "7s", options)) return *problem;
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace stepwell {

struct ServeOptions {
  std::string config;
  std::string data_dir;
  std::string database_url;
  std::string grpc_listen;
  std::string http_listen;
  std::string http_host;
  bool http_get = false;
  std::string ui_dir;
  std::string trace_viewer;
  std::string ready_file;
  std::string master_id;
  std::string pg_bindir;
  std::string pg_user;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string token_file;
  absl::Duration fetched_token_max;
  bool insecure_allow_remote = false;
  absl::Duration group_linger;
  absl::Duration fold_interval;
  absl::Duration sweep_interval;
  std::int64_t memory_bytes = 0;
  // 0 = its share of memory_bytes (memory_shares.h); so the next three.
  std::int64_t queue_bytes = 0;
  std::int64_t fold_bytes = 0;
  std::int64_t latest_bytes = 0;
  std::int64_t follow_bytes = 0;
  std::int64_t disk_low_bytes = 0;
  std::int64_t follows_max = 0;
  std::int64_t streams_max = 0;
  std::int64_t connections_per_address_max = 0;
  std::int64_t http_connections_max = 0;
  std::int64_t ingest_bytes_per_second = 0;
  std::int64_t ingest_samples_per_second = 0;
  std::int64_t series_per_second = 0;
  std::int64_t opens_per_second = 0;
  std::int64_t calls_per_second = 0;
  std::int64_t read_bytes_per_second = 0;
  std::int64_t wrong_tokens_per_minute = 0;
  std::string shared_addresses;
  std::string minimum_agent_version;
  std::string log_format;
  std::string log_level;
};

// What is wrong with a value, and what is allowed: "is 'x', allowed are 1 to 10". Nothing = it was set.
using Problem = std::optional<std::string>;

struct Setting {
  const char* name;  // "group-linger": flag --group-linger, variable STEPWELL_GROUP_LINGER
  std::variant<std::string ServeOptions::*, bool ServeOptions::*, absl::Duration ServeOptions::*,
               std::int64_t ServeOptions::*>
      place;
  const char* initial;
  // Inclusive range of numbers; of durations in milliseconds. Allowed words of text, empty = any.
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::vector<std::string> words;
  const char* help;
  // Of text that has a form of its own.
  Problem (*check)(const std::string&) = nullptr;
};
const std::vector<Setting>& Settings();

// nullptr when there is none of that name.
const Setting* FindSetting(absl::string_view name);
// "fold-interval" gives "STEPWELL_FOLD_INTERVAL".
std::string VariableOf(absl::string_view name);

Problem Set(const Setting& setting, const std::string& text, ServeOptions& options);
// As it stands in a file.
std::string ValueText(const Setting& setting, const ServeOptions& options);

}  // namespace stepwell
