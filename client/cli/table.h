// Table: rows of text in aligned columns. A value.
//
//   Table table({{"name"}, {"samples", Align::kRight}});
//   table.Add({"loss", "1,200"});
//   streams.out << table.Text(paint, "  ");
#pragma once

#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace stepwell::cli {

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns. Cells hold no colour codes.
  void Add(std::vector<std::string> cells);
  // Of a cell of the row added last. REQUIRES: there are such a row and column.
  void Tint(std::size_t column, Tone tone);
  bool empty() const { return rows_.empty(); }

  // Titles (dimmed), then rows, each behind `indent`. No blanks at the end of a line. Columns
  // that are empty in every row are left out.
  std::string Text(const Paint& paint, const std::string& indent = "") const;

 private:
  std::vector<std::size_t> Widths() const;
  // `tones` may be empty: all plain.
  std::string Line(const std::vector<std::string>& cells, const std::vector<Tone>& tones,
                   const std::vector<std::size_t>& widths, const Paint& paint) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<Tone>> tones_;  // of each row; empty = all plain
};

}  // namespace stepwell::cli
