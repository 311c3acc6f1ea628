// NameTable: what the ids in a recorder's events mean, read from its `names` file. The bytes come
// from another process: each record is checked, and reading ends at the first that is not whole.
// Thread-compatible.
//
//   names.Extend(bytes_from_file);
//   if (const NameEntry* entry = names.Find(event.name)) ...
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {

struct NameEntry {
  spool::NameKind kind = spool::NameKind::kScope;
  // kScope: names joined by '/'. kSeries: the metric's name.
  std::string name;
  std::map<std::string, std::string> labels;  // kScope: with those of what it lies in
  // kSeries only.
  std::string metric_group;
  std::string unit;
  spool::SeriesKind series_kind = spool::SeriesKind::kNone;
};

class NameTable {
 public:
  // Takes the records that `bytes`, read from consumed_bytes() on, holds whole.
  void Extend(std::string_view bytes);
  std::size_t consumed_bytes() const { return consumed_bytes_; }
  // A record was bad: the names behind it are unknown for good.
  bool damaged() const { return damaged_; }
  // Valid until the next Extend. Null for ids that are not there.
  const NameEntry* Find(std::uint32_t id) const {
    return id == 0 || id > entries_.size() ? nullptr : &entries_[id - 1];
  }

 private:
  bool Take(const spool::NameRecord& head, std::string_view texts);

  std::vector<NameEntry> entries_;
  std::size_t consumed_bytes_ = 0;
  bool damaged_ = false;
};

}  // namespace stepwell::agent
