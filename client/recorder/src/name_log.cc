#include "client/recorder/src/name_log.h"

#include <cstring>

namespace stepwell::recorder {
namespace {

std::size_t RecordBytes(const std::vector<std::string_view>& texts) {
  std::size_t bytes = sizeof(spool::NameRecord);
  for (const std::string_view text : texts) bytes += sizeof(std::uint16_t) + text.size();
  return (bytes + 7) & ~std::size_t{7};
}

void AddLabels(const std::map<std::string, std::string>& labels,
               std::vector<std::string_view>& texts) {
  for (const auto& [name, value] : labels) {
    texts.push_back(name);
    texts.push_back(value);
  }
}

}  // namespace

NameLog::NameLog(std::span<std::byte> room, std::atomic<std::uint64_t>& committed_bytes)
    : room_(room), committed_bytes_(committed_bytes) {}

std::uint32_t NameLog::FindOrAddPath(std::uint32_t parent, std::uint32_t scope,
                                     const ScopeDefinition& definition) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | scope;
  if (const auto known = paths_.find(key); known != paths_.end()) return known->second;
  const spool::NameRecord record{.record_bytes = 0,
                                 .id = 0,
                                 .parent = parent,
                                 .kind = spool::NameKind::kScope,
                                 .series_kind = spool::SeriesKind::kNone,
                                 .text_count = 1};  // labels follow uncounted
  std::vector<std::string_view> texts = {definition.name};
  AddLabels(definition.labels, texts);
  const std::uint32_t id = Append(record, texts);
  if (id != spool::kNoName) paths_.emplace(key, id);
  return id;
}

std::uint32_t NameLog::AddSeries(const SeriesDefinition& series) {
  std::vector<std::string_view> texts = {series.group, series.name, series.unit};
  AddLabels(series.labels, texts);
  const spool::NameRecord record{.record_bytes = 0,
                                 .id = 0,
                                 .parent = spool::kNoName,
                                 .kind = spool::NameKind::kSeries,
                                 .series_kind = series.kind,
                                 .text_count = static_cast<std::uint16_t>(texts.size())};
  return Append(record, texts);
}

std::uint32_t NameLog::Append(spool::NameRecord record,
                              const std::vector<std::string_view>& texts) {
  const std::size_t bytes = RecordBytes(texts);
  const std::size_t begin = committed_bytes_.load(std::memory_order_relaxed);
  if (begin + bytes > room_.size()) return spool::kNoName;
  record.record_bytes = static_cast<std::uint32_t>(bytes);
  record.id = ++name_count_;
  std::byte* at = room_.data() + begin;
  std::memcpy(at, &record, sizeof(record));
  at += sizeof(record);
  for (const std::string_view text : texts) {
    const auto length = static_cast<std::uint16_t>(text.size());
    std::memcpy(at, &length, sizeof(length));
    std::memcpy(at + sizeof(length), text.data(), text.size());
    at += sizeof(length) + text.size();
  }
  committed_bytes_.store(begin + bytes, std::memory_order_release);
  return record.id;
}

}  // namespace stepwell::recorder
