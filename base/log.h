// Structured logs: an event name and keys, one line each, on stderr. Thread-safe.
//
//   log::Info("group_committed", {{"chunks", 12}, {"took_ms", 8}});
//
// A warning means that someone should look. Values are escaped, so that no client's text can forge
// a line; nothing secret may be passed in. Text or JSON lines, set once by log::Setup.
#pragma once

#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stepwell::log {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format { kText, kJson };

struct Setting {
  Level level = Level::kInfo;
  Format format = Format::kText;
};
void Setup(Setting setting);

// A key and its value as text; numbers keep their form.
struct Field {
  template <typename T>
  Field(absl::string_view field_key, const T& field_value)
      : key(field_key), value(absl::StrCat(field_value)) {}
  Field(absl::string_view field_key, bool field_value)
      : key(field_key), value(field_value ? "true" : "false") {}
  absl::string_view key;
  std::string value;
};

void Write(Level level, absl::string_view event, std::initializer_list<Field> fields);

inline void Debug(absl::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kDebug, event, fields);
}
inline void Info(absl::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kInfo, event, fields);
}
inline void Warning(absl::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kWarning, event, fields);
}
inline void Error(absl::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kError, event, fields);
}

}  // namespace stepwell::log
