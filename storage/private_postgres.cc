#include "storage/private_postgres.h"

#include "base/status_macros.h"
#include "storage/private_postgres_cluster.h"
#include "storage/private_postgres_supervisor.h"

namespace stepwell {

absl::StatusOr<std::unique_ptr<PrivatePostgres>> PrivatePostgres::Open(Options options) {
  const SteadyTime deadline = SteadyTime::Now() + options.ready_wait;
  STEPWELL_ASSIGN_OR_RETURN(auto cluster, PostgresCluster::Prepare(options));
  std::unique_ptr<PrivatePostgres> postgres(
      new PrivatePostgres(std::move(cluster), std::move(options)));
  STEPWELL_RETURN_IF_ERROR(postgres->supervisor_->WaitFirst(deadline));
  return postgres;
}

PrivatePostgres::PrivatePostgres(std::unique_ptr<PostgresCluster> cluster, Options options)
    : cluster_(std::move(cluster)),
      url_(cluster_->Url(kPrivateDatabase)),
      supervisor_(std::make_unique<PostgresSupervisor>(*cluster_, options)) {}

PrivatePostgres::~PrivatePostgres() { Stop(); }

const std::string& PrivatePostgres::url() const { return url_; }
std::string PrivatePostgres::UrlOf(const std::string& database) const {
  return cluster_->Url(database);
}
const std::string& PrivatePostgres::data_directory() const { return cluster_->data_directory; }
PrivatePostgres::State PrivatePostgres::state() const { return supervisor_->state(); }
absl::Status PrivatePostgres::WaitReady(SteadyTime deadline) const {
  return supervisor_->WaitReady(deadline);
}

void PrivatePostgres::Stop() {
  absl::MutexLock lock(&stop_mu_);
  supervisor_->Stop();
  cluster_->Unlock();
}

}  // namespace stepwell
