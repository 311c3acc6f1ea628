#include "storage/pg_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_reader_rollups.h"
#include "storage/pg_reader_rows.h"
#include "storage/pg_reader_snapshot.h"
#include "storage/pg_reader_sql.h"
#include "storage/remembered_snapshot.h"
#include "storage/remembering_snapshot.h"
#include "storage/token_store.h"
#include "storage/trial_book.h"

namespace stepwell {
namespace {

// The longest deadline of a read, and what a client's pause within it may take.
constexpr absl::Duration kStatementMax = PgReadLink::kStatementMax;
// Where as many series are asked, and so many of all that a trial has, its ticks are fewer than their rows:
// some ten or more series share them.
constexpr std::size_t kManySeries = 8;
constexpr std::size_t kManySeriesOf = 4;

PgConnection::Options ConnectionOptions(const PgReader::Options& reader) {
  PgConnection::Options options;
  options.url = reader.url;
  options.cut = reader.cut;
  options.round_trip_count = reader.round_trip_count;
  options.application_name = "stepwell read";
  options.statement_timeout = kStatementMax;
  options.idle_in_transaction_timeout = kStatementMax + absl::Seconds(5);
  options.reply_timeout = kStatementMax + absl::Seconds(5);
  return options;
}

absl::StatusOr<absl::Duration> Patience(SteadyTime deadline) {
  const absl::Duration left = deadline.Left();
  if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("read: no time is left");
  return std::min(left, kStatementMax);
}

}  // namespace

PgReader::PgReader(Options options)
    : shelf_(ConnectionOptions(options), options.connection_count_max),
      memory_(options.memory),
      remembered_bytes_max_(options.memory.range_bytes_max / 2),
      sight_(options.owner_kept),
      book_changes_(options.book_changes),
      watch_(options.watch) {}

absl::StatusOr<PgShelf::Loan> PgReader::Borrow(absl::Duration patience) {
  auto loan = shelf_.Borrow(patience);
  if (loan.ok() && loan->is_new()) memory_.Clear();
  return loan;
}

std::optional<TrialId> PgReader::KnownTrial(const TrialSelector& selector,
                                            const ProjectFilter& projects) const {
  if (selector.trial_id != 0 && projects.is_all()) return TrialId{selector.trial_id};
  return memory_.TrialOf(selector, projects);
}

absl::StatusOr<TrialId> PgReader::FindTrial(const TrialSelector& selector,
                                            const ProjectFilter& projects, SteadyTime deadline) {
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration patience, Patience(deadline));
  STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, Borrow(patience));
  PgReadLink link(std::move(loan), watch_, memory_);
  const bool is_filtered = !projects.is_all();
  const PgParam readable = PgArray(projects.named());
  auto found = selector.trial_id != 0
                   ? link.RunOne(ReadQuery::kTrialId, sql::kReadTrialIdById,
                                 {selector.trial_id, is_filtered, readable})
                   : link.RunOne(ReadQuery::kTrialId, sql::kReadTrialIdByName,
                                 {selector.project, selector.external_id, is_filtered, readable});
  if (!found.ok()) return Annotate(found.status(), "find trial");
  if (found->row_count() == 0) return NoSuchTrial(selector);
  const TrialId trial_id{found->Int64(0, 0)};
  memory_.NoteTrial(selector, trial_id, std::string(found->Text(0, 1)), link.memory_age());
  return trial_id;
}

absl::StatusOr<bool> PgReader::IsOwnedUnder(std::int64_t owner_epoch, SteadyTime deadline) {
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration patience, Patience(deadline));
  STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, Borrow(patience));
  PgReadLink link(std::move(loan), watch_, memory_);
  const OwnerSight::Moment asked = {SteadyTime::Now(), link.memory_age()};
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult owner,
      link.RunOne(ReadQuery::kControl, sql::kReadOwnerEpoch, {}, ReadPlan::kOnce));
  return NoteOwner(owner, owner_epoch, asked);
}

bool PgReader::NoteOwner(const PgResult& owner, std::int64_t owner_epoch,
                         const OwnerSight::Moment& asked) {
  const std::int64_t epoch = owner.row_count() == 1 ? owner.Int64(0, 0) : 0;
  sight_.Note(epoch, asked);
  return epoch == owner_epoch;
}

absl::StatusOr<std::shared_ptr<const TrialBook>> PgReader::ReadBook(TrialId trial_id,
                                                                    std::int64_t owner_epoch,
                                                                    SteadyTime deadline,
                                                                    const ListRoom& room) {
  if (book_changes_ == nullptr) return ReadStore::ReadBook(trial_id, owner_epoch, deadline, room);
  const std::int64_t age = memory_.age();
  const auto known = memory_.BookOf(trial_id);
  const auto known_holds = [&] {
    return known && known->moment.owner_epoch == owner_epoch && memory_.age() == age &&
           book_changes_->NoneSince(trial_id, known->moment.changes);
  };
  if (sight_.Saw(owner_epoch, {SteadyTime::Now(), age}) && known_holds()) return known->book;
  STEPWELL_ASSIGN_OR_RETURN(const bool is_owned, IsOwnedUnder(owner_epoch, deadline));
  if (!is_owned) return nullptr;
  // After the answer: see book_memory.h.
  if (known_holds()) return known->book;
  const auto moment = book_changes_->Now(trial_id);
  STEPWELL_ASSIGN_OR_RETURN(const auto snapshot, OpenSnapshot(deadline));
  const std::int64_t snapshot_age = memory_.age();
  STEPWELL_ASSIGN_OR_RETURN(auto book, ReadBookOf(*snapshot, trial_id, room));
  if (moment) memory_.NoteBook(trial_id, {book, {*moment, owner_epoch}}, snapshot_age);
  return book;
}

PgReader::OwnerQuestion PgReader::AskOwnerAhead(std::int64_t owner_epoch, SteadyTime deadline) {
  if (sight_.Saw(owner_epoch, {SteadyTime::Now(), memory_.age()})) return {};
  const auto patience = Patience(deadline);
  if (!patience.ok()) return {};
  auto loan = Borrow(*patience);
  if (!loan.ok()) return {};
  auto link = std::make_unique<PgReadLink>(*std::move(loan), watch_, memory_);
  const OwnerSight::Moment asked = {SteadyTime::Now(), link->memory_age()};
  if (!link->SendAhead(ReadQuery::kControl, sql::kReadOwnerEpoch)) return {};
  return {std::move(link), asked};
}

absl::StatusOr<bool> PgReader::Holds(TrialId trial_id, const ReadMoment& moment, std::int64_t age,
                                     SteadyTime deadline, OwnerQuestion asked) {
  bool is_owned = false;
  if (asked.link != nullptr) {
    STEPWELL_ASSIGN_OR_RETURN(const PgResult owner, asked.link->TakeAhead());
    is_owned = NoteOwner(owner, moment.owner_epoch, asked.sent);
  } else if (sight_.Saw(moment.owner_epoch, {SteadyTime::Now(), age})) {
    is_owned = true;
  } else {
    STEPWELL_ASSIGN_OR_RETURN(is_owned, IsOwnedUnder(moment.owner_epoch, deadline));
  }
  // After the answer: see book_memory.h.
  return is_owned && memory_.age() == age && book_changes_->NoneSince(trial_id, moment.changes);
}

std::unique_ptr<ReadSnapshot> PgReader::OpenRemembered(TrialId trial_id, std::int64_t owner_epoch,
                                                       SteadyTime deadline) {
  const auto changes = book_changes_ == nullptr ? std::nullopt : book_changes_->Now(trial_id);
  if (!changes || owner_epoch == 0) return nullptr;
  const ReadMoment moment = {*changes, owner_epoch};
  const std::int64_t age = memory_.age();
  const auto known = memory_.BookOf(trial_id);
  if (!known || known->moment != moment || known->book->series == nullptr) return nullptr;
  RememberedSnapshot::Memory memory;
  memory.deadline = deadline;
  memory.ranges = [this, trial_id, moment](const RangeSource& source,
                                           const std::vector<std::int32_t>& series_nos) {
    return memory_.RangesOf(trial_id, source, series_nos, moment);
  };
  const auto asked = std::make_shared<OwnerQuestion>();
  memory.ask_ahead = [this, asked, owner_epoch, deadline] {
    *asked = AskOwnerAhead(owner_epoch, deadline);
  };
  memory.holds = [this, trial_id, moment, age, deadline, asked](RememberedSnapshot::Asked when) {
    if (when == RememberedSnapshot::Asked::kNow) *asked = {};
    return Holds(trial_id, moment, age, deadline, std::move(*asked));
  };
  return std::make_unique<RememberedSnapshot>(known->book, std::move(memory));
}

std::optional<KnownBook> PgReader::KnownBookOf(TrialId trial_id, const ReadMoment& moment,
                                               std::int64_t age) {
  auto known = memory_.BookOf(trial_id);
  if (!known || known->moment != moment) return std::nullopt;
  return KnownBook{.trial_id = trial_id,
                   .book = std::move(known->book),
                   .owner_epoch = moment.owner_epoch,
                   .unchanged = [this, trial_id, moment, age] {
                     return memory_.age() == age &&
                            book_changes_->NoneSince(trial_id, moment.changes);
                   }};
}

absl::StatusOr<std::unique_ptr<ReadSnapshot>> PgReader::OpenToRemember(TrialId trial_id,
                                                                       std::int64_t owner_epoch,
                                                                       SteadyTime deadline) {
  // Before the snapshot: what changes meanwhile is then seen.
  const auto changes = book_changes_ == nullptr ? std::nullopt : book_changes_->Now(trial_id);
  if (!changes || owner_epoch == 0) return OpenSnapshot(deadline);
  const ReadMoment moment = {*changes, owner_epoch};
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration patience, Patience(deadline));
  STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, Borrow(patience));
  // Behind the loan: a connection that is new has cleared the memory.
  const std::int64_t age = memory_.age();
  STEPWELL_ASSIGN_OR_RETURN(auto snapshot,
                            PgReaderSnapshot::Begin(std::move(loan), watch_, memory_, deadline,
                                                    KnownBookOf(trial_id, moment, age)));
  auto keep = [this, trial_id, moment, age](RememberingSnapshot::Kept kept) {
    if (!book_changes_->NoneSince(trial_id, moment.changes)) return;
    if (kept.book != nullptr) memory_.NoteBook(kept.trial_id, {kept.book, moment}, age);
    memory_.NoteRanges(std::move(kept.ranges), moment, age);
  };
  return std::make_unique<RememberingSnapshot>(std::move(snapshot), trial_id, std::move(keep),
                                               remembered_bytes_max_);
}

absl::StatusOr<std::unique_ptr<ReadSnapshot>> PgReader::OpenSnapshot(SteadyTime deadline) {
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration patience, Patience(deadline));
  STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, Borrow(patience));
  STEPWELL_ASSIGN_OR_RETURN(auto snapshot,
                            PgReaderSnapshot::Begin(std::move(loan), watch_, memory_, deadline));
  return std::unique_ptr<ReadSnapshot>(std::move(snapshot));
}

absl::StatusOr<std::unique_ptr<PgReaderSnapshot>> PgReaderSnapshot::Begin(
    PgShelf::Loan loan, const ReadWatch& watch, PgReadMemory& memory, SteadyTime deadline,
    std::optional<KnownBook> known) {
  STEPWELL_RETURN_IF_ERROR(Patience(deadline).status());
  std::unique_ptr<PgReaderSnapshot> snapshot(new PgReaderSnapshot(std::move(loan), watch, memory));
  snapshot->link_.Begin(deadline);
  if (known) {
    snapshot->known_ = std::move(known);
    snapshot->owner_ =
        snapshot->link_.Queue(ReadQuery::kControl, sql::kReadOwnerEpoch, {}, ReadPlan::kOnce);
  }
  return snapshot;
}

absl::StatusOr<std::unique_ptr<RollupCursor>> PgReaderSnapshot::ReadRollups(
    const RollupFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgReadMemory::Usage usage,
      UsageFor(filter.trial_id, {filter.start_us, filter.end_us, LeafRows::kRollups}));
  return std::unique_ptr<RollupCursor>(PgRollupCursor::Open(
      link_, filter, *usage, LookBackOf(filter.trial_id, filter.series_nos, filter.start_us)));
}

absl::StatusOr<std::unique_ptr<RowCursor>> PgReaderSnapshot::ReadRows(const RowFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgReadMemory::Usage usage,
      UsageFor(filter.trial_id, {filter.start_us, filter.end_us, LeafRows::kSamples}));
  return std::unique_ptr<RowCursor>(PgRowCursor::Open(
      link_, filter, *usage, LookBackOf(filter.trial_id, filter.series_nos, filter.start_us)));
}

LookBack PgReaderSnapshot::LookBackOf(TrialId trial_id, const std::vector<std::int32_t>& series_nos,
                                      std::int64_t start_us) const {
  if (start_us == INT64_MIN) return LookBack::kRows;
  const PgReadMemory::AllSeries all = memory_.SeriesOf(trial_id);
  const bool are_many = all != nullptr && series_nos.size() >= kManySeries &&
                        series_nos.size() * kManySeriesOf >= all->size();
  return are_many ? LookBack::kTicks : LookBack::kRows;
}

std::optional<PresumedBook> PgReaderSnapshot::PresumeBook(TrialId trial_id) {
  const PgReadMemory::Usage usage = memory_.UsageOf(trial_id);
  const PgReadMemory::AllSeries series = memory_.SeriesOf(trial_id);
  if (usage == nullptr || series == nullptr || usage_.contains(trial_id)) return std::nullopt;
  presumed_[trial_id] = {.usage = usage, .picks = {}};
  return PresumedBook{static_cast<std::int32_t>(series->size()), *usage};
}

absl::StatusOr<bool> PgReaderSnapshot::ConfirmBook(TrialId trial_id) {
  const auto node = presumed_.extract(trial_id);
  if (node.empty()) return true;
  const Presumed& presumed = node.mapped();
  STEPWELL_ASSIGN_OR_RETURN(const PgReadMemory::Usage usage, UsageOf(trial_id));
  return std::all_of(presumed.picks.begin(), presumed.picks.end(), [&](const auto& pick) {
    return PickLeaves(*presumed.usage, pick.start_us, pick.end_us, pick.rows) ==
           PickLeaves(*usage, pick.start_us, pick.end_us, pick.rows);
  });
}

absl::StatusOr<PgReadMemory::Usage> PgReaderSnapshot::UsageFor(TrialId trial_id,
                                                               const Presumed::Pick& pick) {
  const auto presumed = presumed_.find(trial_id);
  if (presumed == presumed_.end()) return UsageOf(trial_id);
  presumed->second.picks.push_back(pick);
  return presumed->second.usage;
}

}  // namespace stepwell
