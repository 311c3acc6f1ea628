#include "client/cli/table.h"

#include <algorithm>

#include "base/check.h"

namespace stepwell::cli {

void Table::Add(std::vector<std::string> cells) {
  STEPWELL_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
  tones_.emplace_back();
}

void Table::Tint(std::size_t column, Tone tone) {
  STEPWELL_CHECK(!rows_.empty() && column < columns_.size());
  tones_.back().resize(columns_.size(), Tone::kPlain);
  tones_.back()[column] = tone;
}

std::vector<std::size_t> Table::Widths() const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], ColumnCount(row[i]));
    }
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] > 0 || rows_.empty()) {
      widths[i] = std::max(widths[i], ColumnCount(columns_[i].title));
    }
  }
  return widths;
}

std::string Table::Line(const std::vector<std::string>& cells, const std::vector<Tone>& tones,
                        const std::vector<std::size_t>& widths, const Paint& paint) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    if (!line.empty()) line += "  ";
    const std::string blanks(widths[i] - ColumnCount(cells[i]), ' ');
    const std::string cell = tones.empty() ? cells[i] : paint.In(tones[i], cells[i]);
    line += columns_[i].align == Align::kRight ? blanks + cell : cell + blanks;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string Table::Text(const Paint& paint, const std::string& indent) const {
  const std::vector<std::size_t> widths = Widths();
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(widths[i] == 0 ? std::string() : columns_[i].title);
  }
  std::string text = indent + paint.Dim(Line(titles, {}, widths, paint)) + "\n";
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    text += indent + Line(rows_[row], tones_[row], widths, paint) + "\n";
  }
  return text;
}

}  // namespace stepwell::cli
