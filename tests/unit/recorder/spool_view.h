// A reader of names and events for tests, written against spool_format.h and nothing else of the
// recorder: what it can read, the agent can.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {

struct NameView {
  spool::NameRecord record;
  std::vector<std::string> texts;
};

inline std::vector<NameView> ReadNames(std::span<const std::byte> bytes) {
  std::vector<NameView> names;
  while (bytes.size() >= sizeof(spool::NameRecord)) {
    NameView name;
    std::memcpy(&name.record, bytes.data(), sizeof(name.record));
    const std::byte* at = bytes.data() + sizeof(name.record);
    for (int i = 0; i < name.record.text_count; ++i) {
      std::uint16_t length = 0;
      std::memcpy(&length, at, sizeof(length));
      name.texts.emplace_back(reinterpret_cast<const char*>(at) + sizeof(length), length);
      at += sizeof(length) + length;
    }
    // Labels of a scope are not counted.
    const std::byte* end = bytes.data() + name.record.record_bytes;
    while (name.record.kind == spool::NameKind::kScope && end - at >= 2) {
      std::uint16_t length = 0;
      std::memcpy(&length, at, sizeof(length));
      if (length == 0) break;
      name.texts.emplace_back(reinterpret_cast<const char*>(at) + sizeof(length), length);
      at += sizeof(length) + length;
    }
    bytes = bytes.subspan(name.record.record_bytes);
    names.push_back(std::move(name));
  }
  return names;
}

// Name and value in turn.
inline std::string ShownLabels(const std::vector<std::string>& texts, std::size_t first) {
  std::string shown;
  for (std::size_t i = first; i + 1 < texts.size(); i += 2) {
    shown += "{" + texts[i] + "=" + texts[i + 1] + "}";
  }
  return shown;
}

// "forward/attention" for a scope, "fetch{loader=train}" where it has labels, "training/loss{layer=1}"
// for a series, "" for no name.
inline std::string Shown(const std::vector<NameView>& names, std::uint32_t id) {
  if (id == spool::kNoName || id > names.size()) return "";
  const NameView& name = names[id - 1];
  if (name.record.kind == spool::NameKind::kScope) {
    const std::string parent = Shown(names, name.record.parent);
    const std::string own = name.texts[0] + ShownLabels(name.texts, 1);
    return parent.empty() ? own : parent + "/" + own;
  }
  return name.texts[0] + "/" + name.texts[1] + ShownLabels(name.texts, 3);
}

// One line per event: what a test compares. "scope+ a/b" = in the step, "scope a" = on its own.
inline std::string Shown(const std::vector<NameView>& names, const spool::Event& event) {
  const std::string mark = (event.flags & spool::kInStep) != 0 ? "+ " : " ";
  const std::string batch = "@" + std::to_string(event.batch);
  switch (event.kind) {
    case spool::EventKind::kScope:
      return "scope" + mark + Shown(names, event.name);
    case spool::EventKind::kRecord:
      return "record" + mark + Shown(names, event.name) + batch;
    case spool::EventKind::kRecordAt:
      return "record_at " + Shown(names, event.name) + batch;
    case spool::EventKind::kInstant:
      return "instant" + mark + Shown(names, event.name);
    case spool::EventKind::kStepBegin:
      return "begin";
    case spool::EventKind::kStepEnd:
      return "end" + batch + ((event.flags & spool::kLossy) != 0 ? " lossy" : "");
  }
  return "unknown";
}

}  // namespace stepwell::recorder
