#include "client/cli/merge_words.h"

#include "client/cli/terminal.h"
#include "client/cli/units.h"

namespace stepwell::cli {

void TellInputs(const v1::TracePlacement& placement, std::ostream& err) {
  for (const v1::MergedTrace& input : placement.inputs()) {
    if (!input.is_cut()) continue;
    err << "stepwell: trace " << input.trace_no() << " (" << Printable(input.name())
        << ") ends too early; what it has is taken\n";
  }
  for (const std::string& note : placement.notes()) err << "stepwell: " << Printable(note) << "\n";
}

void TellLeftOut(const v1::MergeTotals& totals, std::ostream& err) {
  if (totals.left_out_count() > 0) {
    err << "stepwell: " << Plural(totals.left_out_count(), "event")
        << " without a time or beyond a bound left out\n";
  }
  if (!totals.counters_note().empty()) {
    err << "stepwell: " << Printable(totals.counters_note()) << "\n";
  }
}

}  // namespace stepwell::cli
