// Catalog holds the names a process has defined: scopes and series, from their first definition
// until the process ends, whether a writer is open or not. Ids count from 1.
//
// Thread-compatible: Process locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {

struct ScopeDefinition {
  std::string name;
  std::map<std::string, std::string> labels = {};

  auto operator<=>(const ScopeDefinition&) const = default;
};

struct SeriesDefinition {
  std::string group;
  std::string name;
  std::string unit;
  spool::SeriesKind kind = spool::SeriesKind::kGauge;
  std::map<std::string, std::string> labels;

  auto operator<=>(const SeriesDefinition&) const = default;
};

inline constexpr std::size_t kScopeNameCountMax = 4096;
inline constexpr std::size_t kSeriesCountMax = 16384;
inline constexpr std::size_t kNameBytesMax = 200;

// The rules of recorder.h's stepwell_define_scope, stepwell_define_labelled_scope and
// stepwell_define_series.
bool IsScopeName(std::string_view name);
bool IsScope(const ScopeDefinition& scope);
bool IsSeries(const SeriesDefinition& series);
bool IsUtf8(std::string_view text);

class Catalog {
 public:
  // 0 = not a legal one, or the catalog is full.
  std::uint32_t DefineScope(ScopeDefinition scope);
  std::uint32_t DefineSeries(SeriesDefinition series);

  std::uint32_t scope_count() const { return static_cast<std::uint32_t>(scopes_.size()); }
  std::uint32_t series_count() const { return static_cast<std::uint32_t>(series_.size()); }
  // REQUIRES: the id was given by this catalog.
  const ScopeDefinition& scope(std::uint32_t id) const { return scopes_[id - 1]; }
  const SeriesDefinition& series(std::uint32_t id) const { return series_[id - 1]; }

 private:
  std::deque<ScopeDefinition> scopes_;
  std::map<ScopeDefinition, std::uint32_t> scope_ids_;
  std::deque<SeriesDefinition> series_;
  std::map<SeriesDefinition, std::uint32_t> series_ids_;
};

}  // namespace stepwell::recorder
