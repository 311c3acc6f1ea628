// HostileWords: any text as the small languages that people and clients write: page tokens and
// cursors, the configuration file, settings, caps, addresses, an Authorization header, the query of
// a URL; as the details of a call that failed; and as the metrics of a screen. Each is read or
// refused in words that can be shown; what was read and is written again means the same. Header
// only; pure.
#pragma once

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/escaping.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/server_address.h"
#include "client/agent/sensors/sensor_selection.h"
#include "client/cli/cap_units.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/retry_delay.h"
#include "server/agent_version.h"
#include "server/config_file.h"
#include "server/follow_place.h"
#include "server/grants.h"
#include "server/host_port.h"
#include "server/http/accept_encoding.h"
#include "server/http/host_names.h"
#include "server/http/page_settings.h"
#include "server/http/url_text.h"
#include "server/options.h"
#include "server/page_token.h"
#include "server/sample_cursor.h"
#include "server/text_check.h"
#include "server/token_text.h"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/hostile_top.h"
#include "tests/fuzz/slow_text.h"

namespace stepwell::testing {

// The first byte of an input, in seeds a digit.
enum class HostileWordsKind : std::uint8_t {
  kText,
  kToken,
  kPlace,
  kCursor,
  kConfig,
  kSetting,
  kCaps,
  kNames,
  kAuthorization,
  kUrl,
  kRetry,  // a colon in seeds
  kTop,    // a semicolon
};
inline constexpr std::uint8_t kHostileWordsKinds = 12;

inline void CheckRefusal(const absl::Status& status) {
  STEPWELL_CHECK(absl::IsInvalidArgument(status));
  STEPWELL_CHECK(!status.message().empty());
}

inline void ReadHostileText(std::string_view text) {
  const absl::string_view view(text.data(), text.size());
  const SlowText slow = ReadSlowly(text);
  STEPWELL_CHECK(IsUtf8(view) == slow.is_utf8);
  const auto complaint = CheckText("field", view, {0, 1 << 20}, "TEXT");
  STEPWELL_CHECK(complaint.has_value() == (!slow.is_utf8 || slow.has_control));
  for (const std::size_t bytes_max : {std::size_t{0}, std::size_t{7}, text.size() + 1}) {
    const std::string shortened = Shortened(view, bytes_max);
    STEPWELL_CHECK(shortened.size() <= bytes_max && IsUtf8(shortened));
    if (slow.is_utf8) STEPWELL_CHECK(text.substr(0, shortened.size()) == shortened);
  }
  if (!CheckProjectName("project", view)) {
    STEPWELL_CHECK(!complaint.has_value() && !text.empty() && text.size() <= 128);
  }
}

inline void ReadHostileToken(std::string_view text) {
  const std::string token(text);
  const auto place = ReadPageToken("page_token", token, 7, 2);
  if (!place.ok()) {
    CheckRefusal(place.status());
  } else {
    STEPWELL_CHECK(place->size() == 2);
  }
  const auto cursor = SampleCursor::FromText(token, 7);
  if (!cursor.ok()) CheckRefusal(cursor.status());
  const auto follow = FollowPlace::FromCursor(token, Uuid(), TrialId{7});
  if (!follow.ok()) CheckRefusal(follow.status());
}

// Tokens are checksummed and no secret: whoever wants to makes them of any numbers.
inline void ReadHostilePlace(HostileBytes& input) {
  const auto fingerprint = input.Take<std::uint32_t>();
  const auto a = input.Take<std::int64_t>();
  const auto b = input.Take<std::int64_t>();
  const auto c = input.Take<std::int64_t>();
  const std::string token = MakePageToken(fingerprint, {a, b, c});
  const auto place = ReadPageToken("page_token", token, fingerprint, 3);
  STEPWELL_CHECK(place.ok() && *place == (std::vector<std::int64_t>{a, b, c}));
  STEPWELL_CHECK(!ReadPageToken("page_token", token, fingerprint + 1, 3).ok());
  STEPWELL_CHECK(!ReadPageToken("page_token", token, fingerprint, 2).ok());
  auto cursor = SampleCursor::FromText(token, fingerprint);
  if (!cursor.ok()) return CheckRefusal(cursor.status());
  STEPWELL_CHECK(cursor->ToText(fingerprint) == token);
  STEPWELL_CHECK(Value(cursor->series_no) >= 0 && cursor->taken_count >= 0);
  cursor->Pass(cursor->series_no, cursor->time_us);
  STEPWELL_CHECK(cursor->taken_count > 0);
}

inline void ReadHostileCursor(HostileBytes& input) {
  std::string bytes(1, 1);
  bytes += Uuid().ToBytes();
  const std::uint64_t trial = 7;
  bytes.append(reinterpret_cast<const char*>(&trial), sizeof(trial));
  bytes += input.rest();
  const std::uint32_t crc32c = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&crc32c), sizeof(crc32c));
  const auto place = FollowPlace::FromCursor(absl::WebSafeBase64Escape(bytes), Uuid(), TrialId{7});
  if (!place.ok()) return CheckRefusal(place.status());
  STEPWELL_CHECK(place->writer_no_max() <= kFollowWritersMax);
  const std::string text = place->ToCursor(Uuid(), TrialId{7});
  const auto again = FollowPlace::FromCursor(text, Uuid(), TrialId{7});
  STEPWELL_CHECK(again.ok() && again->ToCursor(Uuid(), TrialId{7}) == text);
  STEPWELL_CHECK(!FollowPlace::FromCursor(text, Uuid(), TrialId{8}).ok());
}

inline std::variant<ParsedOptions, UsageError> ParseConfig(const std::string& text) {
  return ParseOptions(
      {"--config", "c"}, [](const std::string&) { return std::nullopt; },
      [&](const std::string&) { return absl::StatusOr<std::string>(text); });
}

inline void ReadHostileConfig(std::string_view text) {
  const auto lines = ReadConfigFile({text.data(), text.size()});
  const auto line_count = 1 + std::count(text.begin(), text.end(), '\n');
  if (lines.ok()) {
    STEPWELL_CHECK(lines->size() <= static_cast<std::size_t>(line_count));
    for (const ConfigLine& line : *lines) {
      STEPWELL_CHECK(line.line_no >= 1 && line.line_no <= line_count);
      STEPWELL_CHECK(line.value.find('\n') == std::string::npos);
    }
  } else {
    CheckRefusal(lines.status());
  }
  const auto parsed = ParseConfig(std::string(text));
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    STEPWELL_CHECK(error->exit_code == 78 && error->message.substr(0, 2) == "c:");
    return;
  }
  STEPWELL_CHECK(lines.ok());
  // What it prints is a file that says the same.
  ServeOptions options = std::get<ParsedOptions>(parsed).options;
  const std::string printed = PrintConfig(options);
  const auto again = ParseConfig(printed);
  STEPWELL_CHECK(std::holds_alternative<ParsedOptions>(again));
  STEPWELL_CHECK(PrintConfig(std::get<ParsedOptions>(again).options) == printed);
  for (const Setting& setting : Settings()) {
    if (std::string_view(setting.name) == "config") continue;
    STEPWELL_CHECK(ValueText(setting, std::get<ParsedOptions>(again).options) ==
                   ValueText(setting, options));
    if (const auto* place = std::get_if<std::string ServeOptions::*>(&setting.place)) {
      STEPWELL_CHECK(std::get<ParsedOptions>(again).options.**place == options.**place);
    }
  }
}

// Which setting, then its value.
inline void ReadHostileSetting(HostileBytes& input) {
  const auto& settings = Settings();
  const Setting& setting = settings[input.Take<std::uint8_t>() % settings.size()];
  ServeOptions options;
  const std::string text(input.rest());
  if (Set(setting, text, options)) return;
  if (const auto* number = std::get_if<std::int64_t ServeOptions::*>(&setting.place)) {
    STEPWELL_CHECK(options.**number >= setting.min && options.**number <= setting.max);
  }
  if (const auto* time = std::get_if<absl::Duration ServeOptions::*>(&setting.place)) {
    STEPWELL_CHECK(options.**time >= absl::Milliseconds(setting.min));
    STEPWELL_CHECK(options.**time <= absl::Milliseconds(setting.max));
  }
  const std::string shown = ValueText(setting, options);
  if (shown.size() < 2 || shown.front() != '"') {
    ServeOptions again;
    STEPWELL_CHECK(!Set(setting, shown, again));
    STEPWELL_CHECK(ValueText(setting, again) == shown);
  }
}

inline void ReadHostileCaps(std::string_view text) {
  using Parse = absl::StatusOr<std::int64_t> (*)(std::string_view, std::string_view);
  using Show = std::string (*)(std::int64_t);
  const std::pair<Parse, Show> kinds[] = {{cli::ParseAge, cli::AgeText},
                                          {cli::ParseBytes, cli::BytesText},
                                          {cli::ParseSamples, cli::SamplesText}};
  for (const auto& [parse, show] : kinds) {
    const auto value = parse("--cap", text);
    if (!value.ok()) {
      CheckRefusal(value.status());
      continue;
    }
    STEPWELL_CHECK(*value >= 0);
    const auto again = parse("--cap", show(*value));
    STEPWELL_CHECK(again.ok() && *again == *value);
  }
}

inline void ReadHostileNames(std::string_view text) {
  if (IsServerAddress(text)) STEPWELL_CHECK(text.find(':') != text.npos);
  const auto names = ParseHostNames(text);
  if (names.ok()) {
    for (const std::string& name : *names) {
      STEPWELL_CHECK(!name.empty() &&
                     name.find_first_of(name[0] == '[' ? "/* ," : ":/* ,") == std::string::npos);
    }
  } else {
    CheckRefusal(names.status());
  }
  if (const auto listen = ParseHostPort(std::string(text)); listen.ok()) {
    const auto again = ParseHostPort(HostPortText(listen->host, listen->port));
    STEPWELL_CHECK(again.ok() && again->host == listen->host && again->port == listen->port);
  } else {
    CheckRefusal(listen.status());
  }
  const absl::string_view view(text.data(), text.size());
  if (const auto version = ParseVersion(view)) {
    STEPWELL_CHECK(ParseVersion(VersionText(*version)) == version);
    STEPWELL_CHECK(VersionOfAgent("stepwell-agent/" + VersionText(*version)) == version);
  }
  (void)VersionOfAgent(view);
  if (IsViewerAddress(text)) {
    STEPWELL_CHECK(text.substr(0, 4) == "http" && IsUtf8(view));
    STEPWELL_CHECK(text.find_first_of("\"<> \\\n") == text.npos);
  }
  HttpRequest request;
  request.headers = {{"Accept-Encoding", std::string(text)}};
  (void)AcceptsGzip(request);
  const auto selection = agent::SensorSelection::Parse({.groups = std::string(text)});
  if (!selection.ok()) CheckRefusal(selection.status());
  const auto paced = agent::SensorSelection::Parse({.interval = std::string(text)});
  if (paced.ok()) {
    STEPWELL_CHECK(paced->interval() >= agent::SensorSelection::kIntervalMin);
    STEPWELL_CHECK(paced->interval() <= agent::SensorSelection::kIntervalMax);
  }
}

inline void ReadHostileAuthorization(std::string_view text) {
  const std::string shown = ShownToken(text);
  STEPWELL_CHECK(shown.size() <= text.size());
  STEPWELL_CHECK(ShownToken(HeaderOf(text)) == text);
  if (const auto parts = SplitToken(text)) {
    STEPWELL_CHECK("stepwell_" + std::string(parts->id) + "_" + std::string(parts->secret) == text);
  }
  const auto grants = Grants::Parse({std::string(text)});
  if (grants.ok()) {
    STEPWELL_CHECK(grants->texts().size() == 1 && grants->texts()[0] == text);
  } else {
    CheckRefusal(grants.status());
  }
  const auto is_plain = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain)) return;
  const std::string token(text);
  STEPWELL_CHECK(ShownToken("Bearer " + token) == token);
  STEPWELL_CHECK(ShownToken("basic " + absl::Base64Escape("any:" + token)) == token);
}

inline std::string PercentEncoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

inline void ReadHostileUrl(std::string_view text) {
  const UrlTarget target = SplitUrlTarget(text);
  STEPWELL_CHECK(target.path.size() + target.query.size() <= text.size() + 1);
  const auto query = ParseUrlQuery(target.query);
  if (!query.ok()) CheckRefusal(query.status());
  const std::string_view name = text.substr(0, text.size() / 2);
  const std::string_view value = text.substr(name.size());
  if (name.empty()) return;
  const auto made = ParseUrlQuery(PercentEncoded(name) + "=" + PercentEncoded(value));
  STEPWELL_CHECK(made.ok() && made->size() == 1);
  STEPWELL_CHECK(made->begin()->first == name && made->begin()->second == value);
}

// What a master, or whoever answers in its place, says of when to come again: any bytes as all details, as those of
// the right kind, and as numbers of any size in a whole answer.
inline void ReadHostileRetry(HostileBytes& input) {
  // A caller bounds it, whatever it is: no time is taken for none.
  const auto bounded = [](absl::Duration wait) {
    return std::clamp(wait, absl::ZeroDuration(), absl::Minutes(1));
  };
  // protobuf tells of each text that is no UTF-8, on stderr.
  static const auto told = google::protobuf::SetLogHandler(nullptr);
  (void)told;
  const std::string bytes(input.rest());
  google::rpc::Status status;
  if (const auto wait = RetryDelayIn(bytes)) {
    STEPWELL_CHECK(status.ParseFromString(bytes) && status.details_size() > 0);
    STEPWELL_CHECK(bounded(*wait) >= absl::ZeroDuration() && bounded(*wait) <= absl::Minutes(1));
  }
  google::rpc::RetryInfo retry;
  status.Clear();
  google::protobuf::Any& any = *status.add_details();
  any.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  any.set_value(bytes);
  STEPWELL_CHECK(RetryDelayIn(status.SerializeAsString()).has_value() ==
                 retry.ParseFromString(bytes));
  const auto seconds = input.Take<std::int64_t>();
  const auto nanos = input.Take<std::int32_t>();
  retry.Clear();
  retry.mutable_retry_delay()->set_seconds(seconds);
  retry.mutable_retry_delay()->set_nanos(nanos);
  status.add_details()->PackFrom(retry);
  status.mutable_details()->SwapElements(0, 1);
  STEPWELL_CHECK(RetryDelayIn(status.SerializeAsString()) ==
                 absl::Seconds(seconds) + absl::Nanoseconds(nanos));
}

inline void ReadHostileWords(std::string_view bytes) {
  HostileBytes input(bytes);
  switch (HostileWordsKind{
      static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileWordsKinds)}) {
    case HostileWordsKind::kText:
      return ReadHostileText(input.rest());
    case HostileWordsKind::kToken:
      return ReadHostileToken(input.rest());
    case HostileWordsKind::kPlace:
      return ReadHostilePlace(input);
    case HostileWordsKind::kCursor:
      return ReadHostileCursor(input);
    case HostileWordsKind::kConfig:
      return ReadHostileConfig(input.rest());
    case HostileWordsKind::kSetting:
      return ReadHostileSetting(input);
    case HostileWordsKind::kCaps:
      return ReadHostileCaps(input.rest());
    case HostileWordsKind::kNames:
      return ReadHostileNames(input.rest());
    case HostileWordsKind::kAuthorization:
      return ReadHostileAuthorization(input.rest());
    case HostileWordsKind::kUrl:
      return ReadHostileUrl(input.rest());
    case HostileWordsKind::kRetry:
      return ReadHostileRetry(input);
    case HostileWordsKind::kTop:
      return ReadHostileTop(input);
  }
}

}  // namespace stepwell::testing
