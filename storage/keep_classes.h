// KeepClasses: the few pairs of ages that rows can have. A row gets the number of its pair at merge
// and keeps it; leaves are of one class and day, so that an age is kept by emptying whole leaves.
// A core: PgCapsStore reads and stores them, PgMerger looks them up. Thread-compatible.
//
//   KeepClasses classes(stored);
//   STEPWELL_ASSIGN_OR_RETURN(const std::int16_t keep_class, classes.FindOrCreate(AgesOf(caps)));
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/caps.h"

namespace stepwell {

// The column's CHECK says the same.
inline constexpr std::size_t kKeepClassesMax = 8;

struct KeepAges {
  // 0 = for ever.
  std::int64_t raw_age_seconds = 0;
  std::int64_t rollup_age_seconds = 0;

  auto operator<=>(const KeepAges&) const = default;
};

KeepAges AgesOf(const EffectiveCaps& caps);

struct KeepClass {
  std::int16_t keep_class = 0;
  KeepAges ages = {};

  bool operator==(const KeepClass&) const = default;
};

class KeepClasses {
 public:
  // Class 0 has no ages and keeps none: rows of recent are counted under it until they are merged.
  // `stored` ascends.
  explicit KeepClasses(std::vector<KeepClass> stored) : classes_(std::move(stored)) {}

  // No value = rows of these ages have no class yet.
  std::optional<std::int16_t> Find(KeepAges ages) const;
  // A new class takes the lowest free number, else that of a class in `spare`: one that has no rows
  // and that no caps ask for. kFailedPrecondition with the list of classes when there is none.
  absl::StatusOr<std::int16_t> FindOrCreate(KeepAges ages,
                                            const std::set<std::int16_t>& spare = {});

  const std::vector<KeepClass>& all() const { return classes_; }

 private:
  std::vector<KeepClass> classes_;
};

// Every pair of ages that `placed` can give to some trial and group, each once. The product's default
// is among them. `trial_projects`: trial and project of each trial that a place names, ascending.
std::vector<KeepAges> AgesThatMayHold(
    absl::Span<const PlacedCaps> placed,
    absl::Span<const std::pair<std::int64_t, std::int64_t>> trial_projects);

}  // namespace stepwell
