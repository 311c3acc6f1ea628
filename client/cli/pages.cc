#include "client/cli/pages.h"

#include <algorithm>
#include <iterator>

#include "base/status_macros.h"

namespace stepwell::cli {
namespace {

// What the master lowers larger pages to.
constexpr std::int64_t kTrialsOfPage = 1000;
constexpr std::int64_t kSeriesOfPage = 10'000;

// Calls `list` with one page after the other and hands the elements `of` each on.
template <typename Element, typename Request, typename List, typename Elements>
absl::StatusOr<std::vector<Element>> ReadPages(Request request, std::int64_t limit,
                                               std::int64_t page_max, List list, Elements of) {
  std::vector<Element> elements;
  for (;;) {
    const auto left = limit - static_cast<std::int64_t>(elements.size());
    request.set_page_size(static_cast<std::int32_t>(std::min(left, page_max)));
    STEPWELL_ASSIGN_OR_RETURN(auto page, list(request));
    auto* const more = of(page);
    std::move(more->begin(), more->end(), std::back_inserter(elements));
    if (page.next_page_token().empty() || static_cast<std::int64_t>(elements.size()) >= limit) {
      return elements;
    }
    request.set_page_token(page.next_page_token());
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::Trial>> ReadTrials(MasterClient& master,
                                                  v1::ListTrialsRequest request,
                                                  std::int64_t limit) {
  return ReadPages<v1::Trial>(
      std::move(request), limit, kTrialsOfPage,
      [&](const v1::ListTrialsRequest& page) { return master.ListTrials(page); },
      [](v1::ListTrialsResponse& page) { return page.mutable_trials(); });
}

absl::StatusOr<std::vector<v1::Series>> ReadSeries(MasterClient& master,
                                                   v1::ListSeriesRequest request,
                                                   std::int64_t limit) {
  return ReadPages<v1::Series>(
      std::move(request), limit, kSeriesOfPage,
      [&](const v1::ListSeriesRequest& page) { return master.ListSeries(page); },
      [](v1::ListSeriesResponse& page) { return page.mutable_series(); });
}

}  // namespace stepwell::cli
