// Why a command reaches no master, told apart: each of these is a slip of its own.
#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/spine.h"
#include "tests/e2e/startup.h"
#include "tests/support/child_process.h"
#include "tests/support/loopback.h"

namespace stepwell::testing {
namespace {

class ConnectTroubleTest : public SpineTest {
 protected:
  // What `stepwell trials` says of it, whose first line tells why.
  std::string Asked(const std::string& server) {
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess command;
    command.Start({BuiltProgram("stepwell"), "trials", "--server", server}, {}, log);
    EXPECT_EQ(command.Wait(absl::Seconds(60)), "exit 69");
    const std::string said = ReadAll(log);
    EXPECT_THAT(said, ::testing::HasSubstr("name another with --server HOST:PORT"));
    return said.substr(0, said.find('\n'));
  }

 private:
  int count_ = 0;
};

TEST_F(ConnectTroubleTest, IsToldApart) {
  StartMaster();
  const std::string http = master_->http_address();
  EXPECT_EQ(
      Asked(http),
      absl::StrCat("stepwell: no master answers at ", http,
                   " (something listens there that speaks HTTP and no gRPC: is it the master's"
                   " other port?)."));
  const std::string nobody = absl::StrCat("127.0.0.1:", FreePort());
  EXPECT_EQ(Asked(nobody), absl::StrCat("stepwell: no master answers at ", nobody,
                                        " (the connection was refused: nobody listens there)."));
  // No name that DNS could be asked for.
  EXPECT_EQ(Asked("no..name:7817"),
            "stepwell: no master answers at no..name:7817 (the name 'no..name' is unknown here).");
  const SilentListener silent;
  const std::string mute = absl::StrCat("127.0.0.1:", silent.port());
  EXPECT_EQ(
      Asked(mute),
      absl::StrCat("stepwell: no master answers at ", mute,
                   " (no answer within 5 s: something listens there, but no connection of gRPC"
                   " came about)."));
  // What recorders are told where they are to ask none.
  EXPECT_EQ(Asked("offline"),
            "stepwell: no master answers at offline (a word for recorders, which ask none then).");
}

}  // namespace
}  // namespace stepwell::testing
