#include "tests/support/postgres.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/migrator.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {
namespace {

template <typename T>
T OrDie(absl::StatusOr<T> value, const char* what) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s: %s\n", what, value.status().ToString().c_str());
  std::abort();
}

std::unique_ptr<PrivatePostgres> Start(const std::string& directory) {
  return OrDie(PrivatePostgres::Open(
                   {.directory = directory,
                    .shared_buffers_bytes = 32 << 20,
                    .durability = PrivatePostgres::Options::Durability::kForTests,
                    .settings = {{"max_connections", "200"}, {"log_min_messages", "warning"}}}),
               "test PostgreSQL");
}

}  // namespace

// Stops the server when gtest ends its run: before static objects die, and on failure too.
class PostgresEnvironment : public ::testing::Environment {
 public:
  static PostgresEnvironment& Get() {
    // gtest deletes it.
    static auto* const environment = static_cast<PostgresEnvironment*>(
        ::testing::AddGlobalTestEnvironment(new PostgresEnvironment));
    return *environment;
  }

  TestPostgres& postgres() {
    absl::MutexLock lock(&mu_);
    if (postgres_ == nullptr) {
      directory_ = std::make_unique<ScratchDirectory>();
      postgres_.reset(new TestPostgres(Start(directory_->path())));
    }
    return *postgres_;
  }

  void TearDown() override {
    absl::MutexLock lock(&mu_);
    postgres_.reset();
    directory_.reset();
  }

 private:
  absl::Mutex mu_;
  std::unique_ptr<ScratchDirectory> directory_;
  std::unique_ptr<TestPostgres> postgres_;
};

namespace {
// Registered before main runs gtest: environments added later are not torn down.
[[maybe_unused]] const PostgresEnvironment& g_environment = PostgresEnvironment::Get();
}  // namespace

TestPostgres& TestPostgres::Get() { return PostgresEnvironment::Get().postgres(); }

TestPostgres::TestPostgres(std::unique_ptr<PrivatePostgres> server) : server_(std::move(server)) {}

std::string TestPostgres::FreshDatabase() { return CreateFrom("template1"); }

std::string TestPostgres::FreshMigratedDatabase() {
  {
    absl::MutexLock lock(&migrated_mu_);
    if (!migrated_) {
      // The master's own database serves as the origin: no test uses it.
      OrDie(Migrate(*Connect(server_->url()), EmbeddedMigrations()), "migrate");
      migrated_ = true;
    }
  }
  return CreateFrom("stepwell");
}

TestPostgres& TestPostgres::Durable() {
  const auto is_durable = [this] {
    const auto setting = Connect(server_->url())->Exec("show fsync");
    return setting.ok() && setting->Text(0, 0) == "on";
  };
  if (is_durable()) return *this;
  const auto connection = Connect(server_->url());
  for (const char* sql : {"alter system set fsync = on", "select pg_reload_conf()"}) {
    const auto done = connection->Exec(SqlOf(sql));
    OrDie<int>(done.ok() ? absl::StatusOr<int>(0) : done.status(), sql);
  }
  const bool is = Eventually(is_durable, absl::Seconds(20));
  OrDie<int>(is ? absl::StatusOr<int>(0) : absl::UnavailableError("still off"), "fsync");
  return *this;
}

std::string TestPostgres::CreateFrom(const std::string& origin) {
  const std::string name = absl::StrCat("test_", ++database_count_);
  const auto connection = Connect(server_->UrlOf("postgres"));
  const absl::Status created =
      connection->ExecScript(SqlOf(absl::StrCat("create database ", name, " template ", origin)));
  OrDie<int>(created.ok() ? absl::StatusOr<int>(0) : created, "create database");
  return server_->UrlOf(name);
}

std::unique_ptr<PgConnection> Connect(const std::string& url) {
  return OrDie(PgConnection::Open({.url = url}), "connect");
}

}  // namespace stepwell::testing
