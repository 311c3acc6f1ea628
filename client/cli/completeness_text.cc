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

// A sentence, not a list.
constexpr std::size_t kRangesMax = 10;

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

// "3, 5-7 and 12 more".
std::string RanksText(const v1::Completeness& completeness) {
  const auto& ranks = completeness.ranks_missing();
  std::vector<std::string> ranges;
  int shown = 0;
  while (shown < ranks.size() && ranges.size() < kRangesMax) {
    int end = shown + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    ranges.push_back(end == shown + 1 ? absl::StrCat(ranks[shown])
                                      : absl::StrCat(ranks[shown], "-", ranks[end - 1]));
    shown = end;
  }
  const std::int64_t more = std::int64_t{completeness.ranks_missing_count()} - shown;
  return absl::StrCat(absl::StrJoin(ranges, ", "),
                      more > 0 ? absl::StrCat(" and ", CountText(more), " more") : "");
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
  } else if (completeness.ranks_missing_count() > 0) {
    text = absl::StrCat("Incomplete: ", held, " samples are here.");
  } else {
    text = absl::StrCat("Perhaps incomplete: ", held,
                        " samples are here, but a writer that never closed is not being heard of.");
  }
  if (completeness.ranks_missing_count() > 0) {
    absl::StrAppend(
        &text, completeness.ranks_missing_count() == 1 ? " Rank " : " Ranks ",
        RanksText(completeness),
        " never opened: recorded into memory only, reached no master, or have not begun.");
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
