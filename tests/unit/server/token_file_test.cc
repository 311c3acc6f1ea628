#include "server/token_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"

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

}  // namespace
}  // namespace stepwell
