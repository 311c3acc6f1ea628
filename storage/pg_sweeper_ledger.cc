#include "storage/pg_sweeper_ledger.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_error.h"
#include "storage/pg_owner.h"
#include "storage/pg_sweeper_sql.h"

namespace stepwell {
namespace {

// $1 to $6 of STEPWELL_NOTE_CAP_GAPS; none when no sample is known to have gone.
std::vector<PgParam> GapParams(const std::vector<CapRemoval>& removed) {
  CapRemovals joined;
  for (const CapRemoval& each : removed) {
    if (each.sample_count > 0) joined.Add(each);
  }
  joined.Sort();
  STEPWELL_CHECK(!joined.truncated);
  if (joined.removals.empty()) return {};
  std::vector<std::int64_t> trials, sample_counts, firsts, lasts;
  std::vector<std::string> groups;
  for (const CapRemoval& each : joined.removals) {
    trials.push_back(Value(each.trial_id));
    groups.push_back(each.metric_group);
    sample_counts.push_back(each.sample_count);
    firsts.push_back(each.first_time_us);
    lasts.push_back(each.last_time_us);
  }
  return {PgArray(trials), PgArray(groups), PgArray(sample_counts),
          PgArray(firsts), PgArray(lasts),  joined.removals.front().field};
}

}  // namespace

absl::Status InSweepTransaction(
    PgConnection& connection, std::int64_t owner_epoch, CapRemovals& total,
    const std::function<absl::Status(std::vector<CapRemoval>& removed)>& body) {
  std::vector<CapRemoval> removed;
  const absl::Status ended = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(body(removed));
    return failpoint::Check("sweep_before_commit");
  });
  STEPWELL_RETURN_IF_ERROR(ended);
  STEPWELL_FAILPOINT("sweep_after_commit");
  for (const CapRemoval& each : removed) total.Add(each);
  return absl::OkStatus();
}

absl::Status NoteGaps(PgConnection& connection, const std::vector<CapRemoval>& removed) {
  const std::vector<PgParam> gaps = GapParams(removed);
  return gaps.empty() ? absl::OkStatus() : connection.Exec(sql::kNoteCapGaps, gaps).status();
}

absl::Status NoteGapsOfLeaf(PgConnection& connection, const LeafKey& leaf,
                            const std::vector<CapRemoval>& removed) {
  std::vector<PgParam> gaps = GapParams(removed);
  if (gaps.empty()) return absl::OkStatus();
  gaps.emplace_back(leaf.keep_class);
  gaps.emplace_back(PgDate{leaf.received_day});
  return connection.Exec(sql::kNoteLeafGaps, gaps).status();
}

absl::Status SweepErrors::Take(const absl::Status& status, absl::string_view place) {
  if (status.ok()) return absl::OkStatus();
  const absl::Status told = Annotate(status, place);
  if (absl::IsAborted(status) || IsCommitUnknown(status) || !connection_.usable()) return told;
  log::Warning("sweep_place_failed", {{"place", place}, {"status", status.ToString()}});
  if (result_.failed.ok()) result_.failed = told;
  return absl::OkStatus();
}

bool SweepPace::IsOver() {
  stopped_ = stopped_ || deadline_.HasPassed();
  return stopped_;
}

}  // namespace stepwell
