#include "client/agent/name_table.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {
namespace {

// The wire's bounds (model.proto, SeriesKey).
constexpr std::size_t kNameBytesMax = 256;
constexpr std::size_t kGroupBytesMax = 128;
constexpr std::size_t kLabelNameBytesMax = 128;
constexpr std::size_t kUnitBytesMax = 64;
constexpr std::size_t kLabelValueBytesMax = 1024;

// Takes them off `bytes`.
bool SplitTexts(std::string_view& bytes, std::size_t count, std::vector<std::string_view>& texts) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t length = 0;
    if (bytes.size() < sizeof(length)) return false;
    std::memcpy(&length, bytes.data(), sizeof(length));
    bytes.remove_prefix(sizeof(length));
    if (length > spool::kTextBytesMax || length > bytes.size()) return false;
    texts.push_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return true;
}

// Those of a scope lie behind its texts, not counted; zeros follow.
bool SplitLabels(std::string_view bytes, std::vector<std::string_view>& texts) {
  while (bytes.size() >= sizeof(std::uint16_t) && (bytes[0] != 0 || bytes[1] != 0)) {
    if (!SplitTexts(bytes, 2, texts)) return false;
  }
  return texts.size() <= 1 + 2 * spool::kLabelCountMax;
}

// Name and value in turn.
void TakeLabels(const std::vector<std::string_view>& texts, std::size_t first, NameEntry& entry) {
  for (std::size_t i = first; i < texts.size(); i += 2) {
    entry.labels[CleanText(texts[i], kLabelNameBytesMax)] =
        CleanText(texts[i + 1], kLabelValueBytesMax);
  }
  // The master adds these two itself and refuses them here.
  entry.labels.erase("rank");
  entry.labels.erase("agent");
}

// As far as there is room for them: a path may be deep, and each of its scopes have many.
void InheritLabels(const NameEntry& parent, NameEntry& entry) {
  for (const auto& label : parent.labels) {
    if (entry.labels.size() < spool::kLabelCountMax) entry.labels.insert(label);
  }
}

}  // namespace

void NameTable::Extend(std::string_view bytes) {
  while (!damaged_) {
    spool::NameRecord head;
    if (bytes.size() < sizeof(head)) return;
    std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof(head));
    if (head.record_bytes < sizeof(head) || head.record_bytes % 8 != 0 ||
        head.record_bytes > spool::kNamesBytesMax) {
      damaged_ = true;
      return;
    }
    if (head.record_bytes > bytes.size()) return;
    damaged_ = !Take(head, bytes.substr(sizeof(head), head.record_bytes - sizeof(head)));
    consumed_bytes_ += head.record_bytes;
    bytes.remove_prefix(head.record_bytes);
  }
}

bool NameTable::Take(const spool::NameRecord& head, std::string_view texts_bytes) {
  std::vector<std::string_view> texts;
  if (head.id != entries_.size() + 1) return false;
  if (head.text_count > 3 + 2 * spool::kLabelCountMax) return false;
  if (!SplitTexts(texts_bytes, head.text_count, texts)) return false;
  NameEntry entry;
  entry.kind = head.kind;
  switch (head.kind) {
    case spool::NameKind::kScope: {
      if (texts.size() != 1 || !SplitLabels(texts_bytes, texts)) return false;
      const NameEntry* parent = Find(head.parent);
      if (head.parent != spool::kNoName &&
          (parent == nullptr || parent->kind != spool::NameKind::kScope)) {
        return false;
      }
      std::string path(texts[0]);
      if (parent != nullptr) path = absl::StrCat(parent->name, "/", path);
      entry.name = CleanText(path, kNameBytesMax);
      TakeLabels(texts, 1, entry);
      if (parent != nullptr) InheritLabels(*parent, entry);
      break;
    }
    case spool::NameKind::kSeries: {
      if (texts.size() < 3 || texts.size() % 2 == 0) return false;
      entry.metric_group = CleanText(texts[0], kGroupBytesMax);
      entry.name = CleanText(texts[1], kNameBytesMax);
      entry.unit = CleanText(texts[2], kUnitBytesMax);
      entry.series_kind = head.series_kind;
      TakeLabels(texts, 3, entry);
      break;
    }
    default:
      return false;
  }
  entries_.push_back(std::move(entry));
  return true;
}

}  // namespace stepwell::agent
