#include "storage/sql_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "base/check.h"

namespace stepwell {

// The one door to a text that is no literal.
struct SqlMaker {
  // REQUIRES: what is appended has `size` bytes in all.
  explicit SqlMaker(std::size_t size) : text(size), next(text.made_) {}
  void Append(std::string_view piece) {
    if (!piece.empty()) next = std::copy(piece.begin(), piece.end(), next);
  }
  static SqlText Make(std::string_view made) { return SqlText(made); }

  SqlText text;
  char* next;
};

namespace {

// NAMEDATALEN - 1 of PostgreSQL's builds.
constexpr std::size_t kNameBytesMax = 63;
// A Bind message counts its values by 16 bits.
constexpr std::size_t kParametersMax = 65535;

// `text` between two of `quote`; those within are doubled, which is all that the standard's strings and
// identifiers need.
SqlText InQuotes(std::string_view text, char quote) {
  STEPWELL_CHECK(text.find('\0') == std::string_view::npos);
  std::string quoted(1, quote);
  for (const char c : text) quoted.append(c == quote ? 2 : 1, c);
  quoted.push_back(quote);
  return SqlMaker::Make(quoted);
}

absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

SqlText::SqlText(std::string_view made) : text_(made.data()), size_(made.size()) { CopyMade(); }

SqlText::SqlText(std::size_t size) : size_(size), made_(new char[size + 1]) {
  made_[size] = '\0';
  text_ = made_;
}

void SqlText::CopyMade() {
  const std::string_view copied = text();
  made_ = new char[size_ + 1];
  *std::copy(copied.begin(), copied.end(), made_) = '\0';
  text_ = made_;
}

SqlText SqlCat(std::initializer_list<SqlPiece> pieces) {
  std::size_t size = 0;
  for (const SqlPiece& piece : pieces) size += piece.text().size();
  SqlMaker made(size);
  for (const SqlPiece& piece : pieces) made.Append(piece.text());
  return std::move(made.text);
}

SqlText SqlJoin(std::span<const SqlText> texts, SqlPiece between) {
  if (texts.empty()) return {};
  std::size_t size = (texts.size() - 1) * between.text().size();
  for (const SqlText& text : texts) size += text.text().size();
  SqlMaker made(size);
  for (const SqlText& text : texts) {
    if (&text != &texts.front()) made.Append(between.text());
    made.Append(text.text());
  }
  return std::move(made.text);
}

SqlText SqlFill(SqlPiece text, SqlPiece table) {
  return SqlMaker::Make(
      absl::StrReplaceAll(AbslView(text.text()), {{"%table", AbslView(table.text())}}));
}

SqlText SqlName(std::string_view name) {
  STEPWELL_CHECK(!name.empty() && name.size() <= kNameBytesMax);
  return InQuotes(name, '"');
}

SqlText SqlQuoted(SqlPiece text) { return InQuotes(text.text(), '\''); }

SqlText SqlInteger(std::int64_t value) { return SqlMaker::Make(absl::StrCat(value)); }

SqlText SqlParameter(std::size_t number) {
  STEPWELL_CHECK(number >= 1 && number <= kParametersMax);
  return SqlMaker::Make(absl::StrCat("$", number));
}

SqlText SqlDay(std::int32_t day) {
  const absl::CivilDay civil = absl::CivilDay(1970, 1, 1) + day;
  return SqlMaker::Make(
      absl::StrFormat("'%04d-%02d-%02d'", civil.year(), civil.month(), civil.day()));
}

}  // namespace stepwell
