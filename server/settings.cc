#include "server/settings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/number_units.h"
#include "server/agent_version.h"
#include "server/http/page_settings.h"
#include "server/memory_shares.h"
#include "server/peer_address.h"

namespace stepwell {
namespace {

using O = ServeOptions;
constexpr std::int64_t kMiB = 1 << 20;

Setting Text(const char* name, std::string O::*place, const char* initial, const char* help) {
  return {name, place, initial, 0, 0, {}, help};
}
Setting Word(const char* name, std::string O::*place, const char* initial,
             std::vector<std::string> words, const char* help) {
  return {name, place, initial, 0, 0, std::move(words), help};
}
Setting Flag(const char* name, bool O::*place, const char* help) {
  return {name, place, "false", 0, 0, {}, help};
}
Setting Time(const char* name, absl::Duration O::*place, const char* initial, std::int64_t min_ms,
             std::int64_t max_ms, const char* help) {
  return {name, place, initial, min_ms, max_ms, {}, help};
}
Setting Number(const char* name, std::int64_t O::*place, const char* initial, std::int64_t min,
               std::int64_t max, const char* help) {
  return {name, place, initial, min, max, {}, help};
}

Problem CheckVersion(const std::string& text) {
  if (ParseVersion(text)) return {};
  return absl::StrCat("is '", text, "', allowed are versions as ", VersionText(kAgentVersionMin));
}

Setting Version(const char* name, std::string O::*place, const char* initial, const char* help) {
  return {name, place, initial, 0, 0, {}, help, CheckVersion};
}

Problem CheckViewer(const std::string& text) {
  if (text.empty() || IsViewerAddress(text)) return {};
  return absl::StrCat("is '", text,
                      "', allowed are addresses as https://ui.perfetto.dev or "
                      "http://localhost:10000/path, and nothing: no button that opens one");
}

Setting Viewer(const char* name, std::string O::*place, const char* initial, const char* help) {
  return {name, place, initial, 0, 0, {}, help, CheckViewer};
}

Problem CheckAddresses(const std::string& text) {
  const auto addresses = ParseAddresses(text);
  if (addresses.ok()) return {};
  return absl::StrCat("is '", text, "': ", addresses.status().message(),
                      "; allowed are addresses as 10.0.0.7,2001:db8::1");
}

Setting Addresses(const char* name, std::string O::*place, const char* initial, const char* help) {
  return {name, place, initial, 0, 0, {}, help, CheckAddresses};
}

// Names have the unit in them.
bool IsOfBytes(const Setting& setting) { return absl::StrContains(setting.name, "bytes"); }

// Where the initial one is 0 that is allowed, whatever the range.
Problem SetBytes(const Setting& setting, const std::string& text, std::int64_t& place) {
  const bool has_none = std::string(setting.initial) == "0";
  const std::optional<std::int64_t> bytes = ParseByteCount(text);
  const bool is_in_range = bytes && *bytes >= setting.min && *bytes <= setting.max;
  if (is_in_range || (has_none && bytes == 0)) {
    place = *bytes;
    return {};
  }
  return absl::StrCat("is '", text, "', allowed are ", has_none && setting.min > 0 ? "0, and " : "",
                      "bytes from ", ByteCountText(setting.min), " to ", ByteCountText(setting.max),
                      ", written as 64MiB, 1.5GB or 67108864");
}

Problem SetNumber(const Setting& setting, const std::string& text, std::int64_t& place) {
  if (IsOfBytes(setting)) return SetBytes(setting, text, place);
  if (absl::SimpleAtoi(text, &place) && place >= setting.min && place <= setting.max) return {};
  return absl::StrCat("is '", text, "', allowed are ", setting.min, " to ", setting.max);
}

Problem SetDuration(const Setting& setting, const std::string& text, absl::Duration& place) {
  if (absl::ParseDuration(text, &place) && place >= absl::Milliseconds(setting.min) &&
      place <= absl::Milliseconds(setting.max)) {
    return {};
  }
  return absl::StrCat("is '", text, "', allowed are durations from ",
                      absl::FormatDuration(absl::Milliseconds(setting.min)), " to ",
                      absl::FormatDuration(absl::Milliseconds(setting.max)),
                      ", written as 500ms, 10s or 5m");
}

Problem SetText(const Setting& setting, const std::string& text, std::string& place) {
  if (!setting.words.empty() &&
      std::find(setting.words.begin(), setting.words.end(), text) == setting.words.end()) {
    return absl::StrCat("is '", text, "', allowed are ", absl::StrJoin(setting.words, ", "));
  }
  if (setting.check != nullptr) {
    if (Problem problem = setting.check(text)) return problem;
  }
  place = text;
  return {};
}

Problem SetFlag(const std::string& text, bool& place) {
  if (text != "true" && text != "false") {
    return absl::StrCat("is '", text, "', allowed are true, false");
  }
  place = text == "true";
  return {};
}

}  // namespace

const std::vector<Setting>& Settings() {
  static const auto* settings = new std::vector<Setting>{
      Text("config", &O::config, "", "file with settings, one key = value per line"),
      Text("data-dir", &O::data_dir, "",
           "directory of the private PostgreSQL; empty = /var/lib/stepwell for root, else"
           " $XDG_DATA_HOME/stepwell"),
      Text("database-url", &O::database_url, "",
           "use this PostgreSQL instead of a private one: postgresql://user@host/database; with a"
           " password, by STEPWELL_DATABASE_URL or in the file of --config: ps shows that of a flag"
           " to everybody for some milliseconds, until the master overwrites it"),
      Text("grpc-listen", &O::grpc_listen, "127.0.0.1:7817",
           "HOST:PORT for gRPC, port 0 = any free one"),
      Text("http-listen", &O::http_listen, "127.0.0.1:7818",
           "HOST:PORT for HTTP, port 0 = any free one"),
      Text("http-host", &O::http_host, "",
           "names that clients may call the HTTP port by beside localhost and its address, with "
           "commas between them"),
      Flag("http-get", &O::http_get,
           "queries over HTTP by GET, too: what is asked stands in the address, and in the logs of "
           "proxies"),
      Text("ui-dir", &O::ui_dir, "",
           "serve the page from this folder instead of the one built in, for those who work on it"),
      Viewer(
          "trace-viewer", &O::trace_viewer, "https://ui.perfetto.dev",
          "the Perfetto that the page opens traces in, when asked to, in a window of the browser; "
          "empty = none"),
      Text("ready-file", &O::ready_file, "",
           "JSON with grpc, http, database_url and pid, written once ready; one in the data "
           "directory"
           " is written anyway"),
      Text("master-id", &O::master_id, "",
           "who this master is; the same id takes its database over at once; empty = kept in the "
           "data"
           " directory, or machine id and grpc-listen"),
      Text("pg-bindir", &O::pg_bindir, "",
           "where initdb and postgres of the private PostgreSQL are; empty = the newest installed"),
      Text("pg-user", &O::pg_user, "",
           "system user of the private PostgreSQL when started by root; empty = postgres"),
      Text(
          "tls-cert", &O::tls_cert, "",
          "PEM file with the certificate of both ports, which speak TLS then, and those between it "
          "and its CA; renewed files count from the next connection on"),
      Text("tls-key", &O::tls_key, "", "PEM file with its key, without a password"),
      Text("tls-client-ca", &O::tls_client_ca, "",
           "PEM file with the CAs of clients, each of which needs a certificate then, on both "
           "ports"),
      Text("token-file", &O::token_file, "",
           "each call of both ports needs the token in this file, which is made where there is "
           "none; with --tls-cert. empty = with --tls-cert and without --tls-client-ca the file "
           "token in the data directory; none = nobody is asked"),
      Time("fetched-token-max", &O::fetched_token_max, "24h", 1000, 86'400'000,
           "how long a token for one trial lives at most that an agent or a launcher fetches"),
      Flag("insecure-allow-remote", &O::insecure_allow_remote,
           "listen on addresses that other machines reach, without authentication"),
      Time("group-linger", &O::group_linger, "2ms", 0, 1000,
           "how long a commit group waits for company while the database is idle"),
      Time("fold-interval", &O::fold_interval, "10s", 10, 600'000,
           "how often committed samples become rows that SQL sees; up to 6 times as long beyond "
           "1000 series"),
      Time("sweep-interval", &O::sweep_interval, "1m", 100, 3'600'000,
           "how often what the caps say is removed"),
      Number(
          "memory-bytes", &O::memory_bytes, "1GiB", kMemoryBytesMin, kMemoryBytesMax,
          "memory of the master in all, its PostgreSQL beside it; each part has a share, the next "
          "four that of 0 unless they are named"),
      Number("queue-bytes", &O::queue_bytes, "0", kMiB, 4096 * kMiB,
             "memory for chunks that wait for their commit; of 1GiB 64MiB"),
      Number("fold-bytes", &O::fold_bytes, "0", kMiB, 256 * kMiB,
             "unfolded memory that makes a fold start before its time; of 1GiB 32MiB"),
      Number("latest-bytes", &O::latest_bytes, "0", 1 << 16, 4096 * kMiB,
             "memory for newest values of trials whose samples are all folded; of 1GiB 32MiB"),
      Number("follow-bytes", &O::follow_bytes, "0", 1 << 16, 4096 * kMiB,
             "memory for folded samples of the last minute, for those who follow; of 1GiB 64MiB"),
      Number(
          "disk-low-bytes", &O::disk_low_bytes, "0", 0, 1'000'000 * kMiB,
          "free disk of the private PostgreSQL below which nothing more is taken; 0 = 2 % of the "
          "disk, from 512 MiB to 16 GiB, at most a quarter of it"),
      Number("follows-max", &O::follows_max, "64", 1, 256, "calls of FollowSamples at one time"),
      Number("streams-max", &O::streams_max, "256", 1, 4096,
             "streams of agents at one time; half of them for a token that may ingest nothing"),
      Number("connections-per-address-max", &O::connections_per_address_max, "256", 1, 65536,
             "connections from one address at one time, of gRPC and of HTTP each"),
      Number("http-connections-max", &O::http_connections_max, "512", 1, 65536,
             "connections of HTTP at one time"),
      Number("ingest-bytes-per-second", &O::ingest_bytes_per_second, "268435456", 1 << 16,
             1'000'000 * kMiB,
             "bytes that one token, and one address, may write; agents beyond it are slowed"),
      Number("ingest-samples-per-second", &O::ingest_samples_per_second, "50000000", 1000,
             1'000'000'000'000, "samples, likewise"),
      Number("series-per-second", &O::series_per_second, "10000", 1, 1'000'000'000,
             "new series, likewise"),
      Number("opens-per-second", &O::opens_per_second, "1000", 1, 1'000'000'000,
             "writers that open, likewise"),
      Number("calls-per-second", &O::calls_per_second, "2000", 1, 1'000'000'000,
             "calls that one token, and one address, may make"),
      // As much as may be written: more than one export makes lines of, and a chart takes a thousandth of it.
      Number("read-bytes-per-second", &O::read_bytes_per_second, "268435456", 1 << 16,
             1'000'000 * kMiB,
             "bytes of answers that one token, and one address, may read; streams beyond it are "
             "slowed"),
      Number("wrong-tokens-per-minute", &O::wrong_tokens_per_minute, "60", 1, 1'000'000'000,
             "tokens that one address may show in vain"),
      Addresses("shared-addresses", &O::shared_addresses, "",
                "addresses that many share, of proxies for example, with commas between them: what "
                "comes from there is held by its tokens alone"),
      Version(
          "minimum-agent-version", &O::minimum_agent_version, "0.1.0",
          "older agents are refused and keep what they have in their spools; at first the oldest "
          "that works with this master"),
      Word("log-format", &O::log_format, "text", {"text", "json"}, "form of the log lines"),
      Word("log-level", &O::log_level, "info", {"debug", "info", "warning", "error"},
           "the least that is logged")};
  return *settings;
}

const Setting* FindSetting(absl::string_view name) {
  for (const Setting& setting : Settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string VariableOf(absl::string_view name) {
  return absl::StrCat("STEPWELL_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

Problem Set(const Setting& setting, const std::string& text, ServeOptions& options) {
  if (const auto* number = std::get_if<std::int64_t ServeOptions::*>(&setting.place)) {
    return SetNumber(setting, text, options.**number);
  }
  if (const auto* duration = std::get_if<absl::Duration ServeOptions::*>(&setting.place)) {
    return SetDuration(setting, text, options.**duration);
  }
  if (const auto* flag = std::get_if<bool ServeOptions::*>(&setting.place)) {
    return SetFlag(text, options.**flag);
  }
  return SetText(setting, text, options.*std::get<std::string ServeOptions::*>(setting.place));
}

std::string ValueText(const Setting& setting, const ServeOptions& options) {
  if (const auto* number = std::get_if<std::int64_t ServeOptions::*>(&setting.place)) {
    return absl::StrCat(options.**number);
  }
  if (const auto* duration = std::get_if<absl::Duration ServeOptions::*>(&setting.place)) {
    return absl::StrCat("\"", absl::FormatDuration(options.**duration), "\"");
  }
  if (const auto* flag = std::get_if<bool ServeOptions::*>(&setting.place)) {
    return options.**flag ? "true" : "false";
  }
  const std::string& text = options.*std::get<std::string ServeOptions::*>(setting.place);
  return absl::StrContains(text, '"') ? text : absl::StrCat("\"", text, "\"");
}

}  // namespace stepwell
