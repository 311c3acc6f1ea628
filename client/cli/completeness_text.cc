#include "client/cli/completeness_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/units.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

struct CauseTotal {
  std::int64_t samples = 0;
  std::int64_t gaps = 0;
  bool unknown = false;  // some gap cannot say how many
};

bool MissesNothing(v1::GapCause cause) { return cause == v1::GAP_CAUSE_CLOCK; }
// Nothing of what was sent is missing: it could not be measured in the first place.
bool NeverMeasured(v1::GapCause cause) {
  return cause == v1::GAP_CAUSE_UNSUPPORTED || cause == v1::GAP_CAUSE_NO_PERMISSION;
}

std::map<v1::GapCause, CauseTotal> TotalsByCause(const v1::Completeness& completeness) {
  std::map<v1::GapCause, CauseTotal> totals;
  for (const v1::Gap& gap : completeness.gaps()) {
    CauseTotal& total = totals[gap.cause()];
    total.samples += gap.sample_count();
    ++total.gaps;
    total.unknown |= gap.sample_count() == 0;
  }
  return totals;
}

std::string CausesText(const std::map<v1::GapCause, CauseTotal>& totals, bool never_measured) {
  std::vector<std::string> texts;
  for (const auto& [cause, total] : totals) {
    if (MissesNothing(cause) || NeverMeasured(cause) != never_measured) continue;
    std::string text = CauseWords(cause);
    if (total.samples > 0) absl::StrAppend(&text, " ", CountText(total.samples));
    if (total.unknown && !never_measured) {
      absl::StrAppend(&text, total.samples > 0 ? " and more" : ", number unknown");
    }
    texts.push_back(text);
  }
  return absl::StrJoin(texts, "; ");
}

}  // namespace

std::string CompletenessText(const v1::Completeness& completeness) {
  const std::map<v1::GapCause, CauseTotal> totals = TotalsByCause(completeness);
  const std::string held = CountText(completeness.samples_held());
  const std::string missing = CausesText(totals, false);
  std::string text;
  if (completeness.contiguous()) {
    text = absl::StrCat("Complete: all ", held, " samples that were sent are here.");
  } else if (completeness.samples_missing() > 0 || !missing.empty()) {
    const std::string count = completeness.samples_missing() > 0
                                  ? CountText(completeness.samples_missing())
                                  : std::string("some");
    text = absl::StrCat("Incomplete: ", held, " samples are here, ", count, " are missing",
                        missing.empty() ? "" : absl::StrCat(" (", missing, ")"), ".");
  } else {
    text = absl::StrCat("Perhaps incomplete: ", held,
                        " samples are here, but a writer that never closed is not being heard of.");
  }
  if (const std::string never = CausesText(totals, true); !never.empty()) {
    absl::StrAppend(&text, " Not measured: ", never, ".");
  }
  if (const auto clock = totals.find(v1::GAP_CAUSE_CLOCK); clock != totals.end()) {
    absl::StrAppend(&text, " Some samples carry times far from when they were sent.");
  }
  if (completeness.recovering()) {
    absl::StrAppend(&text, " The master is still recovering: the last seconds may be missing.");
  }
  if (completeness.gaps_truncated()) absl::StrAppend(&text, " More gaps exist than were listed.");
  return text;
}

}  // namespace stepwell::cli
