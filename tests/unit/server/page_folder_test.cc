#include "server/http/page_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stepwell {
namespace {

TEST(PageFolderTest, OnlyFilesOfTheFolderAreServed) {
  std::string scratch = ::testing::TempDir() + "page_folder_XXXXXX";
  ASSERT_NE(mkdtemp(scratch.data()), nullptr);
  const std::filesystem::path top(scratch);
  std::filesystem::create_directories(top / "page/icons");
  const auto write = [&](const char* name, const char* text) { std::ofstream(top / name) << text; };
  write("secret.txt", "secret");
  write("page/index.html", "page");
  write("page/icons/x.svg", "icon");
  write("page/.hidden", "hidden");
  std::filesystem::create_symlink(top / "secret.txt", top / "page/link.txt");
  std::filesystem::create_directory_symlink(top, top / "page/out");
  const PageFolder folder((top / "page").string());
  const auto get = [&](const std::string& path) {
    HttpRequest request;
    request.path = path;
    const HttpResponse response = folder.Answer(request);
    return response.status == 200 ? response.body : "none";
  };
  EXPECT_EQ(get("/"), "page");
  EXPECT_EQ(get("/icons/x.svg"), "icon");
  for (const char* path :
       {"/../secret.txt", "/icons/../../secret.txt", "/link.txt", "/out/secret.txt", "/.hidden",
        "/icons", "/icons/", "//etc/passwd", "/%2e%2e/secret.txt", "/..%2fsecret.txt",
        "/..\\secret.txt", "/none", "", "x", "/index.html/x"}) {
    EXPECT_EQ(get(path), "none") << path;
  }
  EXPECT_EQ(get(std::string("/index.html\0", 12)), "none");
  EXPECT_TRUE(PageFolder::Check((top / "page").string()).ok());
  EXPECT_FALSE(PageFolder::Check((top / "nowhere").string()).ok());
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace stepwell
