// Ids as types: a SeriesNo never fits where a WriterNo belongs. Values are those of the database.
#pragma once

#include <cstdint>

namespace stepwell {

// A trial's id, unique in one database. Callers' own ids are 1 ... 999,999,999; the master gives
// ids from 1,000,000,000 on.
enum class TrialId : std::int64_t {};
// Series and writers are numbered per trial, from 1.
enum class SeriesNo : std::int32_t {};
enum class WriterNo : std::int32_t {};
// A number that grows with every fold and merge of a database.
enum class FoldNo : std::int64_t {};

constexpr std::int64_t Value(TrialId id) { return static_cast<std::int64_t>(id); }
constexpr std::int32_t Value(SeriesNo no) { return static_cast<std::int32_t>(no); }
constexpr std::int32_t Value(WriterNo no) { return static_cast<std::int32_t>(no); }
constexpr std::int64_t Value(FoldNo no) { return static_cast<std::int64_t>(no); }

}  // namespace stepwell
