// PgShelf: a few PgConnections that threads borrow for one piece of work each: opening writers,
// creating series, asking for progress. Bounded; when all are out a borrower waits. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, shelf.Borrow());
//   STEPWELL_RETURN_IF_ERROR(loan->InTransaction([&] { ... }));
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/pg_connection.h"

namespace stepwell {

class PgShelf {
 public:
  // Gives the connection back when it goes; a lost one is closed instead.
  class Loan {
   public:
    Loan(PgShelf* shelf, std::unique_ptr<PgConnection> connection, bool is_new)
        : shelf_(shelf), connection_(std::move(connection)), is_new_(is_new) {}
    Loan(Loan&& other) noexcept
        : shelf_(std::exchange(other.shelf_, nullptr)),
          connection_(std::move(other.connection_)),
          is_new_(other.is_new_) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan();
    PgConnection* operator->() const { return connection_.get(); }
    PgConnection& operator*() const { return *connection_; }
    bool has_connection() const { return connection_ != nullptr; }
    // Opened for this loan.
    bool is_new() const { return is_new_; }

   private:
    PgShelf* shelf_;
    std::unique_ptr<PgConnection> connection_;
    bool is_new_;
  };

  // REQUIRES: count_max > 0.
  PgShelf(PgConnection::Options options, int count_max);

  // Opens one where none is free; kUnavailable when all are out for `patience`.
  absl::StatusOr<Loan> Borrow(absl::Duration patience = absl::Seconds(10));

 private:
  void Return(std::unique_ptr<PgConnection> connection);
  // Takes a place, and a free connection if there is one.
  absl::StatusOr<std::unique_ptr<PgConnection>> TakePlace(absl::Duration patience);

  const PgConnection::Options options_;
  const int count_max_;
  absl::Mutex mu_;
  int out_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<PgConnection>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
