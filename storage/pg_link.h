// PgLink: a place for one PgConnection that opens it when it is first needed and again after it was
// lost, never in the middle of anything. Stands under the writer and the folder, which each have
// one. Confined to one thread at a time.
//
//   STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link.Get());
//   if (!status.ok()) link.Drop();   // whatever it was doing, its state is not known any more
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/pg_connection.h"

namespace stepwell {

class PgLink {
 public:
  explicit PgLink(PgConnection::Options options) : options_(std::move(options)) {}

  // The open connection, without a transaction. Blocks while connecting.
  absl::StatusOr<PgConnection*> Get() {
    if (connection_ != nullptr && connection_->usable_after_rest()) return connection_.get();
    // Before the next one, which may not come about: a server that stops waits for this one.
    Drop();
    auto opened = PgConnection::Open(options_);
    if (!opened.ok()) return opened.status();
    connection_ = *std::move(opened);
    ++opened_count_;
    return connection_.get();
  }
  // Of connections, since the start: another number is another connection.
  std::int64_t opened_count() const { return opened_count_; }
  // Process id of the server's side, 0 without a connection. Never reconnects: for tests that kill it
  // in the middle of something.
  int backend_pid() const { return connection_ == nullptr ? 0 : connection_->backend_pid(); }
  // It will not be opened any more.
  bool is_cut() const { return options_.cut != nullptr && options_.cut->is_cut(); }
  void Drop() { connection_.reset(); }

 private:
  const PgConnection::Options options_;
  std::unique_ptr<PgConnection> connection_;
  std::int64_t opened_count_ = 0;
};

}  // namespace stepwell
