#include "server/series_names.h"

#include <iterator>
#include <utility>

#include "base/check.h"
#include "server/query_wire.h"

namespace stepwell {
namespace {

// Of its places in the memory.
constexpr std::size_t kPlaceBytes = 192;

}  // namespace

WireSeries::WireSeries(const std::vector<Series>& all) {
  ends_.reserve(all.size());
  for (const Series& series : all) {
    STEPWELL_CHECK(Value(series.series_no) == static_cast<std::int32_t>(ends_.size()) + 1);
    ToWire(series).AppendToString(&bytes_);
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  bytes_.shrink_to_fit();
}

std::string_view WireSeries::Of(SeriesNo series_no) const {
  const auto index = static_cast<std::size_t>(Value(series_no)) - 1;
  STEPWELL_CHECK(index < ends_.size());
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(bytes_).substr(begin, ends_[index] - begin);
}

std::shared_ptr<const WireSeries> SeriesNames::Of(TrialId trial_id, const All& all) {
  {
    absl::MutexLock lock(&mu_);
    const auto found = places_.find(trial_id);
    if (found != places_.end() && found->second->all.lock() == all) {
      held_.splice(held_.begin(), held_, found->second);
      return found->second->wire;
    }
  }
  auto wire = std::make_shared<const WireSeries>(*all);
  const std::size_t bytes = wire->bytes() + kPlaceBytes;
  absl::MutexLock lock(&mu_);
  if (const auto found = places_.find(trial_id); found != places_.end()) {
    ForgetLocked(found->second);
  }
  if (bytes > bytes_max_) return wire;
  while (bytes_ + bytes > bytes_max_) ForgetLocked(std::prev(held_.end()));
  held_.push_front({trial_id, all, wire});
  places_[trial_id] = held_.begin();
  bytes_ += bytes;
  return wire;
}

std::size_t SeriesNames::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

void SeriesNames::ForgetLocked(std::list<Held>::iterator held) {
  bytes_ -= held->wire->bytes() + kPlaceBytes;
  places_.erase(held->trial_id);
  held_.erase(held);
}

}  // namespace stepwell
