#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>

#include "base/utf8.h"

namespace stepwell::log {
namespace {

std::atomic<Format> format{Format::kText};

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::logger& Logger() {
  static auto logger = [] {
    auto made = std::make_shared<spdlog::logger>("stepwell",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %v", spdlog::pattern_time_type::utc);
    return made;
  }();
  return *logger;
}

// JSON string escaping; in text form the same, so that one event stays one line and no byte of it moves a
// terminal's cursor: control characters, C1 too, and what is no UTF-8 are shown by their numbers.
void AppendEscaped(absl::string_view text, std::string& out) {
  for (std::string_view rest(text.data(), text.size()); !rest.empty();) {
    const std::size_t length = CharacterBytes(rest);
    const char c = rest[0];
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (length == 0 || BeginsWithControl(rest)) {
      out.append(fmt::format("\\u{:04x}", static_cast<unsigned char>(rest[length == 2 ? 1 : 0])));
    } else {
      out.append(rest.substr(0, length));
    }
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

bool NeedsQuotes(absl::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == '"' || c == '\\' || c == '=' || c == 0x7f) {
      return true;
    }
  }
  return false;
}

std::string ToText(absl::string_view event, std::initializer_list<Field> fields) {
  std::string line(event);
  for (const Field& field : fields) {
    absl::StrAppend(&line, " ", field.key, "=");
    const bool quotes = NeedsQuotes(field.value);
    if (quotes) line.push_back('"');
    AppendEscaped(field.value, line);
    if (quotes) line.push_back('"');
  }
  return line;
}

std::string ToJson(absl::string_view event, std::initializer_list<Field> fields) {
  std::string line = "\"event\":\"";
  AppendEscaped(event, line);
  line.push_back('"');
  for (const Field& field : fields) {
    absl::StrAppend(&line, ",\"", field.key, "\":\"");
    AppendEscaped(field.value, line);
    line.push_back('"');
  }
  return line;
}

}  // namespace

void Setup(Setting setting) {
  format.store(setting.format);
  Logger().set_level(ToSpdlog(setting.level));
  if (setting.format == Format::kJson) {
    Logger().set_pattern("{\"time\":\"%Y-%m-%dT%H:%M:%S.%fZ\",\"level\":\"%l\",%v}",
                         spdlog::pattern_time_type::utc);
  }
}

void Write(Level level, absl::string_view event, std::initializer_list<Field> fields) {
  const auto wanted = ToSpdlog(level);
  if (!Logger().should_log(wanted)) return;
  Logger().log(wanted, "{}",
               format.load() == Format::kJson ? ToJson(event, fields) : ToText(event, fields));
}

}  // namespace stepwell::log
