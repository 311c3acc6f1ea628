// OthersPostgres: a PostgreSQL that no master looks after, on the files that a private one made: of --database-url, or the one that
// outlived its master. It ends with the test. Confined to one thread, the one that starts it.
//
//   OthersPostgres postgres(master.data_directory());
//   ASSERT_EQ(postgres.Start(), "");
//   postgres.Signal(SIGINT);
//   Eventually([&] { return postgres.HasEnded(); }, absl::Seconds(30));
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace stepwell::faults {

class OthersPostgres {
 public:
  // `directory`: of the master that had the private one.
  explicit OthersPostgres(std::string directory) : directory_(std::move(directory)) {}
  ~OthersPostgres();
  OthersPostgres(const OthersPostgres&) = delete;
  OthersPostgres& operator=(const OthersPostgres&) = delete;

  // Does not wait until it lets anybody in. Empty = started, else why not. REQUIRES: has ended, as the private one has.
  std::string Start();
  void Signal(int signal) const;
  bool HasEnded();
  // 0 = has ended.
  pid_t pid() const { return pid_; }

 private:
  const std::string directory_;
  pid_t pid_ = 0;
};

}  // namespace stepwell::faults
