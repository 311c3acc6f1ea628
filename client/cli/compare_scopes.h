// CompareScopes: the timings of compared trials as people compare them: the step, its scopes with their
// shares of it, the largest change first, and what lies in no scope. A core; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepwell/v1/compare.pb.h"

namespace stepwell::cli {

// What one trial has of a scope. Nothing to show where a value is absent.
struct ScopeSide {
  std::string unit = "seconds";      // another where somebody has recorded it so
  std::optional<double> mean;        // of per-step totals
  std::optional<double> share;       // own time over the step's time, 0 ... 1; of seconds alone
  std::optional<double> difference;  // to the first trial's mean
  std::optional<double> ratio;
  bool unit_differs = false;  // from the first trial's
};

struct ScopeLine {
  std::string name;  // with the labels that were kept apart
  std::vector<ScopeSide> sides;
  // By how much the scope makes a step longer or shorter, seconds: the largest over the trials.
  double change_seconds = 0;
};

struct ScopeLines {
  // The step of each rank that was kept apart, then the scopes, then what lies in none.
  std::vector<ScopeLine> steps;
  std::vector<ScopeLine> scopes;  // largest change first
  std::vector<ScopeLine> unaccounted;
  // On the device's clock: without shares. Largest change first.
  std::vector<ScopeLine> device;
};

// Shares where `in_steps`: the samples are of steps, not of occurrences outside of them as well.
ScopeLines ScopesOf(const v1::CompareTrialsResponse& answer, bool in_steps);
// A timing that ScopesOf shows; counts of occurrences (`<path>.count`) are none.
bool IsScope(const v1::CompareTrialsResponse::ComparedSeries& series);

// Nothing where a trial has none, or where no difference says anything.
std::optional<double> DifferenceOf(const v1::CompareTrialsResponse::ComparedSeries& series,
                                   int side);
std::optional<double> RatioOf(const v1::CompareTrialsResponse::ComparedSeries& series, int side);
// Of what one trial has. Empty where it has none, or several.
const std::string& UnitOf(const v1::CompareTrialsResponse::ComparedSeries& series, int side);
// The trial and the first have the series in units that are not one and the same.
bool UnitDiffers(const v1::CompareTrialsResponse::ComparedSeries& series, int side);

}  // namespace stepwell::cli
