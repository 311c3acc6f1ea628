#include "base/tls/tls_reload.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookEach = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<TlsReload>> TlsReload::Open(TlsFiles files, TlsSide side,
                                                           const Clock& clock) {
  std::shared_ptr<TlsReload> reload(new TlsReload(std::move(files), side, clock));
  const absl::MutexLock lock(&reload->mu_);
  // Before they are read: what changes meanwhile is read again.
  reload->stamps_ = reload->LookAt();
  STEPWELL_ASSIGN_OR_RETURN(TlsMaterial read, ReadTls(reload->files_, side));
  reload->Take(std::move(read));
  return reload;
}

std::shared_ptr<const TlsMaterial> TlsReload::Current() {
  // Under the lock: two threads would read the same, and it is some kilobytes.
  const absl::MutexLock lock(&mu_);
  if (clock_.Monotonic() - looked_ < kLookEach) return current_;
  looked_ = clock_.Monotonic();
  Stamps stamps = LookAt();
  if (stamps == stamps_) return current_;
  absl::StatusOr<TlsMaterial> read = ReadTls(files_, side_);
  if (!read.ok()) {
    // It is tried again at each look, for what failed may pass: a key that is not readable yet. Said once.
    if (stamps == refused_) return current_;
    refused_ = std::move(stamps);
    log::Warning("certificates_not_taken",
                 {{"why", read.status().message()}, {"then", "those from before stay"}});
    return current_;
  }
  stamps_ = std::move(stamps);
  Take(*std::move(read));
  log::Info(
      "certificates_taken",
      {{"cert", files_.cert},
       {"expires", absl::FormatTime(absl::RFC3339_sec, current_->expires, absl::UTCTimeZone())}});
  return current_;
}

void TlsReload::Take(TlsMaterial read) {
  current_ = std::make_shared<const TlsMaterial>(std::move(read));
  if (current_->expires > clock_.Now()) return;
  log::Warning("certificate_expired", {{"cert", files_.cert}});
}

TlsReload::Stamps TlsReload::LookAt() const {
  Stamps stamps;
  for (const std::string& path : {files_.ca, files_.cert, files_.key}) {
    struct stat found {};
    // Followed: certificates are often links, of which the target is exchanged.
    if (path.empty() || stat(path.c_str(), &found) != 0) {
      stamps.emplace_back();
      continue;
    }
    stamps.push_back(absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                                  found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec));
  }
  return stamps;
}

}  // namespace stepwell
