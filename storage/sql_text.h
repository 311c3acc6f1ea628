// SqlText: the text of SQL, which is made of literals alone. A literal becomes one while the program is compiled;
// what has to be put together (names of partitions, lists of conditions, numbers of parameters) is put together by
// the functions below, and nowhere else. PgConnection sends SqlText only, so that a text that was made
// of what somebody said cannot be run: it does not compile. Values are bound ($1), always.
//
//   connection.Exec("select name from stepwell.projects where project_id = $1", {project_id});
//   const SqlText leaf = SqlCat({"stepwell.", SqlName("metrics_k0_20260101")});
//   connection.ExecScript(SqlCat({"truncate ", leaf}));
//
// A value: whoever has a literal copies a pointer, whoever has a text that was put together copies it. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

namespace stepwell {

class SqlText {
 public:
  constexpr SqlText() = default;
  // A literal, or a constexpr array of one. Without NUL, which would end it early.
  template <std::size_t N>
  consteval SqlText(const char (&literal)[N])  // NOLINT(google-explicit-constructor): as it is read
      : text_(literal), size_(LiteralSize(literal)) {}

  constexpr SqlText(const SqlText& other) : text_(other.text_), size_(other.size_) {
    if (other.made_ != nullptr) CopyMade();
  }
  constexpr SqlText(SqlText&& other) noexcept
      : text_(std::exchange(other.text_, "")),
        size_(std::exchange(other.size_, 0)),
        made_(std::exchange(other.made_, nullptr)) {}
  constexpr SqlText& operator=(SqlText other) noexcept {
    std::swap(text_, other.text_);
    std::swap(size_, other.size_);
    std::swap(made_, other.made_);
    return *this;
  }
  // Not std::string: a class that has one makes no constants.
  constexpr ~SqlText() { delete[] made_; }

  constexpr bool empty() const { return size_ == 0; }
  // As libpq wants it.
  constexpr const char* c_str() const { return text_; }
  constexpr std::string_view text() const { return {text_, size_}; }

  // Throws where the compiler looks: the literal is refused.
  template <std::size_t N>
  static consteval std::size_t LiteralSize(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) {
      if ((literal[i] == '\0') != (i == N - 1)) throw "SQL ends with its only NUL";
    }
    return N - 1;
  }

 private:
  friend struct SqlMaker;    // of sql_text.cc
  friend struct SqlOfTests;  // of tests/support/sql_of.h
  // Of any text.
  explicit SqlText(std::string_view made);
  // Room for that many bytes, which whoever asks for it fills.
  explicit SqlText(std::size_t size);
  void CopyMade();

  const char* text_ = "";
  std::size_t size_ = 0;
  char* made_ = nullptr;  // owned; null = a literal
};

// One of the texts that are put together: a literal, or a SqlText that outlives the call.
class SqlPiece {
 public:
  template <std::size_t N>
  consteval SqlPiece(const char (&literal)[N])  // NOLINT(google-explicit-constructor)
      : text_(literal, SqlText::LiteralSize(literal)) {}
  SqlPiece(const SqlText& text) : text_(text.text()) {}  // NOLINT(google-explicit-constructor)

  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// One behind the other, as they are.
SqlText SqlCat(std::initializer_list<SqlPiece> pieces);
// Likewise, with `between` between two.
SqlText SqlJoin(std::span<const SqlText> texts, SqlPiece between);
// `text` with `table` in the place of each "%table".
SqlText SqlFill(SqlPiece text, SqlPiece table);

// `name` as an identifier in double quotes, whatever characters it has: where a schema stands before it that is
// not part of it. REQUIRES: not empty, 63 bytes at most (PostgreSQL would cut it), no NUL.
SqlText SqlName(std::string_view name);
// `text` as a literal of SQL in single quotes, for functions that want a relation's name as one.
SqlText SqlQuoted(SqlPiece text);
// A number of ours that cannot be bound: a limit of a constant, a segment's number, bounds of a partition.
SqlText SqlInteger(std::int64_t value);
// "$3". REQUIRES: 1 <= number <= 65535 (the protocol's).
SqlText SqlParameter(std::size_t number);
// "'2026-01-01'" of days since 1970, where a date cannot be bound.
SqlText SqlDay(std::int32_t day);

}  // namespace stepwell
