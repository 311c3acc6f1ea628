#include "server/master_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/pg_error.h"

namespace stepwell {

std::string MasterState::Snapshot::reason() const {
  switch (role) {
    case MasterRole::kStarting:
      if (!database_error.empty()) return absl::StrCat("database down: ", database_error);
      return "starting";
    case MasterRole::kStandby:
      if (!database_error.empty()) return absl::StrCat("database down: ", database_error);
      return absl::StrFormat("standby: %s owns the database, renewed %.1f s ago", owner_id,
                             owner_age_seconds);
    case MasterRole::kDraining:
      return "draining: this master is stopping";
    case MasterRole::kOwner:
      if (!database_up) return absl::StrCat("database down: ", database_error);
      if (!disk_error.empty()) return disk_error;
      return recovering ? "recovering: the journal is being replayed" : "";
  }
  return "";
}

std::string MasterState::Snapshot::public_reason() const {
  if (role == MasterRole::kStandby && database_error.empty()) return "standby";
  return reason();
}

std::int64_t MasterState::Snapshot::disk_free_bytes() const {
  if (data_disk.total_bytes == 0) return wal_disk.free_bytes;
  if (wal_disk.total_bytes == 0) return data_disk.free_bytes;
  return std::min(data_disk.free_bytes, wal_disk.free_bytes);
}

std::string MasterState::Snapshot::role_name() const {
  switch (role) {
    case MasterRole::kStarting:
      return "starting";
    case MasterRole::kStandby:
      return "standby";
    case MasterRole::kDraining:
      return "draining";
    case MasterRole::kOwner:
      return recovering ? "recovering" : "owner";
  }
  return "";
}

MasterState::Snapshot MasterState::Get() const {
  absl::ReaderMutexLock lock(&mu_);
  return now_;
}

std::int64_t MasterState::epoch() const {
  absl::ReaderMutexLock lock(&mu_);
  return now_.epoch;
}

Uuid MasterState::incarnation() const {
  absl::ReaderMutexLock lock(&mu_);
  return incarnation_;
}

void MasterState::SetIncarnation(const Uuid& incarnation) {
  absl::MutexLock lock(&mu_);
  incarnation_ = incarnation;
}

void MasterState::SetDatabase(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  now_.database_up = status.ok();
  // It is told to who asks, at /readyz without a token; the log has all of it.
  now_.database_error =
      WithoutNames(std::string_view(status.message().data(), status.message().size()));
}

void MasterState::SetDisk(const std::string& error, DiskRoom data, DiskRoom wal) {
  absl::MutexLock lock(&mu_);
  now_.disk_error = error;
  now_.data_disk = data;
  now_.wal_disk = wal;
}

void MasterState::BecomeStandby(const std::string& owner_id, double owner_age_seconds) {
  absl::MutexLock lock(&mu_);
  if (now_.role == MasterRole::kDraining) return;
  now_.role = MasterRole::kStandby;
  now_.epoch = 0;
  now_.owner_id = owner_id;
  now_.owner_age_seconds = owner_age_seconds;
}

void MasterState::BecomeOwner(std::int64_t epoch, bool recovering) {
  absl::MutexLock lock(&mu_);
  if (now_.role == MasterRole::kDraining) return;
  now_.role = MasterRole::kOwner;
  now_.epoch = epoch;
  now_.recovering = recovering;
}

void MasterState::RecoveryDone(std::int64_t epoch) {
  absl::MutexLock lock(&mu_);
  if (now_.epoch == epoch) now_.recovering = false;
}

void MasterState::StartDraining() {
  absl::MutexLock lock(&mu_);
  now_.role = MasterRole::kDraining;
}

bool MasterState::IfOwner(std::int64_t epoch, const std::function<void()>& body) const {
  absl::ReaderMutexLock lock(&mu_);
  if (epoch == 0 || now_.epoch != epoch) return false;
  body();
  return true;
}

bool MasterState::EndOwnership(std::int64_t epoch, const std::function<void()>& body) {
  absl::MutexLock lock(&mu_);
  if (now_.epoch != epoch) return false;
  now_.epoch = 0;
  now_.recovering = false;
  if (now_.role == MasterRole::kOwner) now_.role = MasterRole::kStandby;
  body();
  return true;
}

void MasterState::ReportLost(std::int64_t epoch) {
  absl::MutexLock lock(&mu_);
  if (epoch != 0 && epoch == now_.epoch) lost_epoch_ = epoch;
}

std::int64_t MasterState::undoubted_epoch() const {
  absl::ReaderMutexLock lock(&mu_);
  return lost_epoch_ == now_.epoch ? 0 : now_.epoch;
}

bool MasterState::lost_reported() const {
  absl::ReaderMutexLock lock(&mu_);
  return now_.epoch != 0 && lost_epoch_ == now_.epoch;
}

}  // namespace stepwell
