#include "bench/beside/kept_by_caps.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::bench {
namespace {

std::string OfTrial(const std::string& trial) {
  return absl::StrCat(
      " where trial_id = (select trial_id from stepwell.trials where external_id = '", trial, "')");
}

}  // namespace

absl::StatusOr<KeptBytes> SweepHalfOfBytes(AdminClient& admin, const std::string& trial) {
  const std::string read = absl::StrCat(
      "select sum(byte_count + rollup_byte_count)::bigint from stepwell.usage", OfTrial(trial));
  // Rollups go when no sample is left: half of the samples are to stay.
  STEPWELL_ASSIGN_OR_RETURN(
      const std::int64_t cap,
      admin.Number(absl::StrCat("select sum(byte_count / 2 + rollup_byte_count)::bigint from "
                                "stepwell.usage",
                                OfTrial(trial))));
  v1::Caps caps;
  caps.set_trial_bytes(cap);
  STEPWELL_RETURN_IF_ERROR(admin.SetCaps(trial, caps));
  STEPWELL_RETURN_IF_ERROR(admin.Sweep(trial).status());
  STEPWELL_ASSIGN_OR_RETURN(const std::int64_t after, admin.Number(read));
  return KeptBytes{static_cast<double>(cap), static_cast<double>(after)};
}

absl::StatusOr<double> SweepHalfOfSamples(AdminClient& admin, const std::string& trial) {
  const std::string by_series = absl::StrCat(
      "(select sum(sample_count) as held, "
      "(array_agg(sample_count order by first_time_us))[1] as oldest from "
      "stepwell.metrics",
      OfTrial(trial), " group by series_no) s");
  STEPWELL_ASSIGN_OR_RETURN(const std::int64_t least,
                            admin.Number("select min(held)::bigint from " + by_series));
  v1::Caps caps;
  caps.set_series_samples(least / 2);
  STEPWELL_RETURN_IF_ERROR(admin.SetCaps(trial, caps));
  STEPWELL_RETURN_IF_ERROR(admin.Sweep(trial).status());
  STEPWELL_ASSIGN_OR_RETURN(
      const std::int64_t thousandths,
      admin.Number(absl::StrCat("select max(abs(held - ", least / 2,
                                ") * 1000 / oldest)::bigint from ", by_series)));
  return static_cast<double>(thousandths) / 1000;
}

}  // namespace stepwell::bench
