// FormChoice: which form holds a vector of integers in the fewest bytes. A core; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/dictionary.h"
#include "storage/encoded_vector.h"
#include "storage/integer_shape.h"

namespace stepwell {

// The form, and what measuring for it found; only that of the chosen form is filled beyond shape.
struct FormChoice {
  Form form = Form::kFrame;
  // As EncodedBytes, without the header.
  std::size_t bytes = 0;
  IntegerShape shape;
  std::vector<std::uint32_t> run_ends;
  std::size_t longest_run = 0;
  IntegerLine line;
  std::vector<std::int64_t> non_zeros;
  IntegerRange non_zero_range;
  std::optional<Dictionary> dictionary;
};

// Of forms that cost the same, the one with the smallest number. Never kRaw.
// REQUIRES: integers is not empty, `totals` are theirs.
FormChoice ChooseForm(std::span<const std::int64_t> integers, const IntegerTotals& totals);
// Nothing where each form takes `bytes_limit` or more, which is found sooner than what it would take.
std::optional<FormChoice> ChooseFormBelow(std::size_t bytes_limit,
                                          std::span<const std::int64_t> integers,
                                          const IntegerTotals& totals);

}  // namespace stepwell
