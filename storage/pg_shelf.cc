#include "storage/pg_shelf.h"

#include "base/check.h"
#include "base/status_macros.h"

namespace stepwell {

PgShelf::Loan::~Loan() {
  if (shelf_ != nullptr) shelf_->Return(std::move(connection_));
}

PgShelf::PgShelf(PgConnection::Options options, int count_max)
    : options_(std::move(options)), count_max_(count_max) {
  STEPWELL_CHECK(count_max > 0);
}

absl::StatusOr<PgShelf::Loan> PgShelf::Borrow(absl::Duration patience) {
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<PgConnection> taken, TakePlace(patience));
  if (taken != nullptr && taken->usable_after_rest()) {
    return Loan(this, std::move(taken), /*is_new=*/false);
  }
  taken.reset();
  auto opened = PgConnection::Open(options_);
  if (!opened.ok()) {
    Return(nullptr);
    return opened.status();
  }
  return Loan(this, *std::move(opened), /*is_new=*/true);
}

absl::StatusOr<std::unique_ptr<PgConnection>> PgShelf::TakePlace(absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  const auto has_place = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return out_ < count_max_; };
  if (!mu_.AwaitWithTimeout(absl::Condition(&has_place), patience)) {
    return absl::UnavailableError("all control connections to PostgreSQL are in use");
  }
  ++out_;
  if (free_.empty()) return nullptr;
  std::unique_ptr<PgConnection> taken = std::move(free_.back());
  free_.pop_back();
  return taken;
}

void PgShelf::Return(std::unique_ptr<PgConnection> connection) {
  // A transaction left open by an early return ends here, outside of the lock.
  if (connection != nullptr && (!connection->Rollback().ok() || connection->is_given_up())) {
    connection.reset();
  }
  absl::MutexLock lock(&mu_);
  --out_;
  if (connection != nullptr) free_.push_back(std::move(connection));
}

}  // namespace stepwell
