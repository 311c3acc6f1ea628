#include "client/agent/series_catalog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/agent/byte_buffer.h"

namespace stepwell::agent {
namespace {

std::string KeyOf(const TickGroupKey& group, const std::string& metric_group,
                  const std::string& name, const std::map<std::string, std::string>& labels) {
  ByteWriter key;
  key.U8(static_cast<std::uint8_t>(group.kind));
  key.U32(group.index);
  key.Text(metric_group);
  key.Text(name);
  for (const auto& [label, value] : labels) {
    key.Text(label);
    key.Text(value);
  }
  return key.Take();
}

}  // namespace

std::uint32_t SeriesCatalog::Ref(const TickGroupKey& group, const SeriesSpec& series) {
  const std::string key = KeyOf(group, series.metric_group, series.name, series.labels);
  if (const auto found = ref_by_key_.find(key); found != ref_by_key_.end()) return found->second;
  if (definitions_.size() == kRefCountMax) return 0;
  pb::Definition definition;
  definition.set_ref(static_cast<std::uint32_t>(definitions_.size()) + 1);
  std::uint32_t* tick_group = nullptr;
  if (group.kind != TickGroupKind::kAlone) {
    tick_group = &tick_group_by_key_[{static_cast<std::uint8_t>(group.kind), group.index}];
  }
  if (tick_group == nullptr || *tick_group == 0) {
    definition.set_tick_group(++tick_group_last_);
  } else {
    definition.set_tick_group(*tick_group);
  }
  if (tick_group != nullptr) *tick_group = definition.tick_group();
  definition.set_metric_group(series.metric_group);
  definition.set_name(series.name);
  definition.mutable_labels()->insert(series.labels.begin(), series.labels.end());
  definition.set_unit(series.unit);
  definition.set_kind(series.kind);
  definition.set_divisor(series.divisor);
  Add(group, std::move(definition));
  return definitions_.back().ref();
}

void SeriesCatalog::Add(const TickGroupKey& group, pb::Definition definition) {
  const std::map<std::string, std::string> labels(definition.labels().begin(),
                                                  definition.labels().end());
  ref_by_key_[KeyOf(group, definition.metric_group(), definition.name(), labels)] =
      definition.ref();
  definitions_.push_back(std::move(definition));
  groups_.push_back(group);
}

std::vector<std::string> SeriesCatalog::TakeNew() {
  std::vector<std::string> stored;
  for (; taken_count_ < definitions_.size(); ++taken_count_) {
    const TickGroupKey& group = groups_[taken_count_];
    ByteWriter writer;
    writer.U8(static_cast<std::uint8_t>(group.kind));
    writer.U32(group.index);
    writer.Bytes(definitions_[taken_count_].SerializeAsString());
    stored.push_back(writer.Take());
  }
  return stored;
}

bool SeriesCatalog::Restore(std::string_view stored) {
  ByteReader reader(stored);
  TickGroupKey group;
  group.kind = static_cast<TickGroupKind>(reader.U8());
  group.index = reader.U32();
  const std::string_view bytes = reader.Rest();
  pb::Definition definition;
  if (!reader.ok() || !definition.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return false;
  }
  // One lost to damage leaves a hole: its ref is never given again, nor used.
  if (definition.ref() <= definitions_.size() || definition.ref() > kRefCountMax) return false;
  while (definitions_.size() + 1 < definition.ref()) {
    definitions_.emplace_back();
    groups_.emplace_back();
  }
  tick_group_last_ = std::max(tick_group_last_, definition.tick_group());
  if (group.kind != TickGroupKind::kAlone) {
    tick_group_by_key_[{static_cast<std::uint8_t>(group.kind), group.index}] =
        definition.tick_group();
  }
  Add(group, std::move(definition));
  taken_count_ = definitions_.size();
  return true;
}

}  // namespace stepwell::agent
