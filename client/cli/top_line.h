// TopLine: one line of a screen that is never wider than it, whatever the texts in it are: each
// character counts the columns that a terminal gives it, control characters and broken UTF-8 show
// as '?', and where the screen knows ASCII only, so does the line. A value.
//
//   TopLine line(look);
//   line.Add("train_batch", Tone::kBold).PadTo(20).AddRight("72.1 %", 7);
//   lines.push_back(line.Take());
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/terminal.h"

namespace stepwell::cli {

enum class Charset { kAscii, kUtf8 };

// Of LC_ALL, LC_CTYPE and LANG the first that is set.
Charset CharsetOfLocale();

// `text`, whole lines with colour codes, as a terminal of that charset shows it: blocks of bars become
// '#', µ 'u', what has no like '?'. Columns stay where they are.
std::string InCharset(std::string_view text, Charset charset);

// How a frame is to be drawn.
struct TopLook {
  // At least 40; what is narrower is drawn for 40 and cut by the terminal. More than 132 are not
  // used: a number would stand too far from its name.
  int columns = 80;
  Charset charset = Charset::kUtf8;
  Paint paint = Paint(Colours::kOff);
  // Every metric there is, not just those that most people look for.
  bool all_metrics = false;
};

// Columns that a terminal gives to `text`.
int ColumnsOf(std::string_view text);
// `text` in at most `columns` columns, its end cut off with an ellipsis where it is longer.
std::string FitText(std::string_view text, int columns, Charset charset);
// The same with its beginning cut off: tails tell devices and directories apart.
std::string FitTail(std::string_view text, int columns, Charset charset);
// A bar of `share` (0 ... 1) of at most `columns` columns.
std::string MeterText(double share, int columns, Charset charset);
// `values`, oldest first, between `low` and `high` as blocks of eight heights; NaN is a blank. More
// values than columns: neighbours are averaged. REQUIRES: low < high.
std::string SparkText(const std::vector<double>& values, double low, double high, int columns,
                      Charset charset);

class TopLine {
 public:
  explicit TopLine(const TopLook& look) : look_(look) {}

  // Cut at the line's end, or after `columns_max` columns.
  TopLine& Add(std::string_view text, Tone tone = Tone::kPlain, int columns_max = 1 << 20);
  // In `columns`, at their right end; cut where it does not fit.
  TopLine& AddRight(std::string_view text, int columns, Tone tone = Tone::kPlain);
  // Blanks up to `column`; nothing where the line is there already.
  TopLine& PadTo(int column);
  int column() const { return column_; }
  Charset charset() const { return look_.charset; }
  int left() const { return look_.columns - column_; }
  // Without blanks at its end.
  std::string Take();

 private:
  const TopLook& look_;
  std::string text_;
  int column_ = 0;
  int blanks_ = 0;  // not yet in text_
};

}  // namespace stepwell::cli
