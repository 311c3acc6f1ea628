#include "server/token_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/token_guard.h"
#include "server/token_text.h"

namespace stepwell {
namespace {

ServeOptions Plain(const std::function<void(ServeOptions&)>& more) {
  ServeOptions options;
  more(options);
  return options;
}

ServeOptions WithTls(const std::function<void(ServeOptions&)>& more) {
  ServeOptions options = Plain(more);
  options.tls_cert = "/c/server.pem";
  options.tls_key = "/c/server.key";
  return options;
}

TEST(TokenFileTest, LiesWithTheDataOfAMasterThatSpeaksTlsAndAsksForNothingElse) {
  const TokenHome home = {.facts = {.home = "/h/a"}};
  const TokenHome unit = {.state_directories = "/var/lib/stepwell:/other",
                          .facts = {.home = "/h/a"}};
  const struct {
    const char* name;
    ServeOptions options;
    TokenHome home;
    const char* file;
  } rows[] = {
      {"nothing said", WithTls([](auto&) {}), home, "/h/a/.local/share/stepwell/token"},
      {"root", WithTls([](auto&) {}), {.facts = {.is_root = true}}, "/var/lib/stepwell/token"},
      {"beside its data", WithTls([](auto& o) { o.data_dir = "/d"; }), unit, "/d/token"},
      {"of a unit", WithTls([](auto& o) { o.database_url = "postgresql://x"; }), unit,
       "/var/lib/stepwell/token"},
      {"its own database is not there", WithTls([](auto&) {}), unit,
       "/h/a/.local/share/stepwell/token"},
      {"no unit", WithTls([](auto& o) { o.database_url = "postgresql://x"; }), home,
       "/h/a/.local/share/stepwell/token"},
      {"named", WithTls([](auto& o) { o.token_file = "/t"; }), unit, "/t"},
      {"named, in plain", Plain([](auto& o) { o.token_file = "/t"; }), unit, "/t"},
      {"none", WithTls([](auto& o) { o.token_file = "none"; }), unit, ""},
      {"a file called so", WithTls([](auto& o) { o.token_file = "./none"; }), unit, "./none"},
      {"plain", Plain([](auto&) {}), unit, ""},
      {"certificates", WithTls([](auto& o) { o.tls_client_ca = "/c/ca.pem"; }), unit, ""},
      {"certificates and tokens",
       WithTls([](auto& o) { o.tls_client_ca = "/c/ca.pem", o.token_file = "/t"; }), unit, "/t"},
      {"open on purpose", WithTls([](auto& o) { o.insecure_allow_remote = true; }), unit, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto file = ChooseTokenFile(row.options, row.home);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*file, row.file);
  }
  const auto homeless = ChooseTokenFile(WithTls([](auto&) {}), {});
  EXPECT_EQ(homeless.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(homeless.status().message(),
            "no --token-file, and neither XDG_DATA_HOME nor HOME says where a token may be kept");
}

TEST(TokenFileTest, ItsDirectoryIsMadeOnceOrItIsSaidWhyNot) {
  const std::string root = absl::StrCat(::testing::TempDir(), "token-file-", getpid());
  EXPECT_TRUE(MakeDirectoryOf("").ok());
  ASSERT_TRUE(MakeDirectoryOf(root + "/a/b/token").ok());
  EXPECT_TRUE(std::filesystem::is_directory(root + "/a/b"));
  EXPECT_FALSE(std::filesystem::exists(root + "/a/b/token"));
  EXPECT_TRUE(MakeDirectoryOf(root + "/a/b/token").ok()) << "again";
  std::ofstream(root + "/file") << "x";
  EXPECT_TRUE(MakeDirectoryOf(root + "/file").ok()) << "one that is there needs nothing made";
  const absl::Status status = MakeDirectoryOf(root + "/file/token");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            absl::StrCat(root,
                         "/file: Not a directory; the token of this master is to be kept there,"
                         " which user id ",
                         geteuid(), " may not make: give --token-file"));
  std::filesystem::remove_all(root);
}

class KeptTokenTest : public ::testing::Test {
 protected:
  ~KeptTokenTest() override { std::filesystem::remove_all(path_); }
  std::string Token() const {
    std::ifstream file(path_);
    std::string token;
    file >> token;
    return token;
  }
  absl::StatusCode Read(const std::string& path) const {
    return ReadTokenFile(path).status().code();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "kept-token-", getpid());
  FakeClock clock_;
};

TEST_F(KeptTokenTest, WhatIsNotThereOrNoSecretIsToldFromWhatCannotBeRead) {
  EXPECT_EQ(Read(path_), absl::StatusCode::kNotFound);
  ASSERT_EQ(*MakeTokenFile(path_), true);
  EXPECT_EQ(*MakeTokenFile(path_), false) << "there is one";
  EXPECT_EQ(Read(path_), absl::StatusCode::kOk);
  EXPECT_EQ(ReadTokenFile(path_)->digest, TokenDigest(Token()));
  EXPECT_EQ(Read(path_ + "/below"), absl::StatusCode::kNotFound);
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  EXPECT_EQ(Read(path_), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(path_, path_);
  EXPECT_EQ(Read(path_), absl::StatusCode::kNotFound) << "a link to itself";
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Read(path_), absl::StatusCode::kFailedPrecondition);
}

// In a child that has no descriptor left.
bool HoldsWithoutDescriptors(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &files);
    const bool is_out = open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 && errno == EMFILE;
    _exit(is_out && holds() ? 0 : 1);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// Whoever held many connections open ended the admin's token, and what it had made, for all.
TEST_F(KeptTokenTest, OutOfDescriptorsTheTokenLivesOnAndOthersAreMade) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "without descriptors the sanitizer takes objects for unreadable: it asks a pipe";
#endif
  const auto guard = TokenGuard::Open(path_, clock_);
  ASSERT_TRUE(guard.ok()) << guard.status();
  const std::string token = Token();
  EXPECT_TRUE(HoldsWithoutDescriptors([&] {
    clock_.Advance(absl::Seconds(2));
    (*guard)->LookAround();
    clock_.Advance(absl::Seconds(2));
    return absl::IsUnavailable(ReadTokenFile(path_).status()) &&
           (*guard)->IdentifyToken(token).ok() && (*guard)->ended_count() == 0;
  }));
  EXPECT_TRUE(HoldsWithoutDescriptors([] { return SplitToken(MakeToken().text).has_value(); }));
  std::filesystem::remove(path_);
  clock_.Advance(absl::Seconds(2));
  EXPECT_FALSE((*guard)->IdentifyToken(token).ok()) << "taken away, and meant";
}

// One of them reads the file, without the lock.
TEST_F(KeptTokenTest, ManyAskWhileTheFileIsRead) {
  const auto guard = *TokenGuard::Open(path_, clock_);
  const std::string token = Token();
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      for (int call = 0; call < 200; ++call) {
        clock_.Advance(absl::Seconds(1));
        EXPECT_TRUE(guard->IdentifyToken(token).ok());
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(guard->ended_count(), 0);
}

}  // namespace
}  // namespace stepwell
