#include "server/http/page_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/http_routes.h"
#include "server/http/page_files.h"

namespace stepwell {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 20;

// "/icons/x.svg" as its names; empty where one of them is none that a page has.
std::vector<std::string> NamesOf(const std::string& path) {
  std::vector<std::string> names = absl::StrSplit(path.substr(1), '/');
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  };
  for (const std::string& name : names) {
    if (name.empty() || name[0] == '.' || !std::all_of(name.begin(), name.end(), is_plain))
      return {};
  }
  return names;
}

// Each name by itself from the folder on, so that no link leads out of it. -1 = none there.
int OpenBelow(const std::string& folder, const std::vector<std::string>& names) {
  int at = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t i = 0; i < names.size() && at >= 0; ++i) {
    const int kind = i + 1 < names.size() ? O_DIRECTORY : O_NONBLOCK;
    const int next = openat(at, names[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind);
    close(at);
    at = next;
  }
  return at;
}

}  // namespace

absl::Status PageFolder::Check(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(absl::StrCat(folder, ": ", std::strerror(errno)));
  close(fd);
  return absl::OkStatus();
}

HttpResponse PageFolder::Answer(const HttpRequest& request) const {
  const std::string path = request.path == "/" ? "/index.html" : request.path;
  const HttpResponse none = HttpErrorAnswer(404, "no such path");
  const std::vector<std::string> names =
      path.empty() || path[0] != '/' ? std::vector<std::string>() : NamesOf(path);
  if (names.empty()) return none;
  const int fd = OpenBelow(folder_, names);
  if (fd < 0) return none;
  const absl::Cleanup closing = [fd] { close(fd); };
  struct stat about {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return none;
  HttpResponse response{200, std::string(ContentTypeOf(path)), "", PageHeaders(path)};
  for (auto& [name, value] : response.headers) {
    if (name == "Cache-Control") value = "no-store";
  }
  char block[64 << 10];
  ssize_t count = 0;
  while ((count = read(fd, block, sizeof block)) > 0 && response.body.size() < kFileBytesMax) {
    response.body.append(block, static_cast<std::size_t>(count));
  }
  return count < 0 ? HttpErrorAnswer(500, std::strerror(errno)) : response;
}

}  // namespace stepwell
