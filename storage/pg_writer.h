// PgWriter: the exactly-once step. It writes a commit group in one transaction on a connection of
// its own: checks that we own the trials, holds the writers' rows, judges by where they stand (from its
// book, or read), inserts progress, stores gaps, copies the journal rows of what the guard let through,
// commits. When the COMMIT's answer is lost it reads back on a fresh connection. It stands between
// GroupCommitter and journal_0..7 with progress_0..7. Confined to one thread at a time.
//
//   PgWriter writer(options, ring);
//   STEPWELL_ASSIGN_OR_RETURN(auto results, writer.Commit(group));
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/ingest_store.h"
#include "storage/journal_ring.h"
#include "storage/pg_link.h"
#include "storage/pg_session_place.h"
#include "storage/progress_book.h"

namespace stepwell {

class PgWriter {
 public:
  struct Options {
    PgConnection::Options connection;
    // Null: where the database lies is not compared.
    std::shared_ptr<const OwnedPlace> owned_place = nullptr;
    // How long a COMMIT in doubt is read back before the caller is told that it is unknown.
    absl::Duration read_back_timeout = absl::Seconds(15);
    // For tests: called at each failpoint of a commit, with its name and our backend's pid.
    std::function<void(std::string_view point, int backend_pid)> at_point = nullptr;
  };

  PgWriter(Options options, std::shared_ptr<JournalRing> ring);

  // As IngestStore::Commit.
  absl::StatusOr<std::vector<AdvanceResult>> Commit(const CommitGroupRequest& request);
  // Since the start; thread-safe.
  std::uint64_t commits_in_doubt() const { return commits_in_doubt_; }

 private:
  struct Group;  // one Commit's view of its request
  absl::Status Write(PgConnection& connection, Group& group);
  absl::Status HoldBook(PgConnection& connection, const PgResult& held);
  void NoteStands(const Group& group);
  absl::Status LockWriters(PgConnection& connection, Group& group);
  static absl::Status CheckOwner(PgConnection& connection, const std::vector<std::int64_t>& trials,
                                 const PgResult& owned, Group& group);
  absl::Status CompleteStands(PgConnection& connection, Group& group);
  static void Judge(Group& group);
  absl::Status Advance(PgConnection& connection, const Group& group, int segment);
  static absl::Status CloseWriters(PgConnection& connection, const Group& group);
  absl::Status StoreGaps(PgConnection& connection, const Group& group);
  absl::Status LeaveSegment(int segment, const absl::Status& why);
  absl::Status CopyJournal(PgConnection& connection, const Group& group, int segment);
  absl::StatusOr<std::vector<AdvanceResult>> ReadBack(Group& group);
  absl::Status Pass(std::string_view point);

  const Options options_;
  const std::shared_ptr<JournalRing> ring_;  // with the folder's recycler
  PgSessionPlace place_;
  PgLink link_;
  ProgressBook book_;
  std::int64_t book_connection_ = 0;  // of link_, on which the book was begun
  std::atomic<std::uint64_t> commits_in_doubt_{0};
};

}  // namespace stepwell
