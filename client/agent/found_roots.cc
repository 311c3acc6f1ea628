#include "client/agent/found_roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/agent/file_descriptor.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

bool IsRoot(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         lstat(absl::StrCat(path, "/", spool::kFormatDirectory).c_str(), &found) == 0;
}

void Add(const std::string& path, const std::string& served_by, std::vector<FoundRoot>& roots) {
  const bool is_known = std::any_of(roots.begin(), roots.end(),
                                    [&](const FoundRoot& root) { return root.path == path; });
  if (!is_known && IsRoot(path)) roots.push_back({path, served_by});
}

// Entries of `folder` that begin so, sorted.
std::vector<std::string> Entries(const std::string& folder, const std::string& begin) {
  std::vector<std::string> entries;
  const auto directory = OpenAt(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) return entries;
  absl::StatusOr<std::vector<std::string>> names = ListNames(directory->get());
  if (!names.ok()) return entries;
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, begin)) entries.push_back(absl::StrCat(folder, "/", name));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

RootPlaces RootPlaces::OfThisProcess() {
  RootPlaces places;
  places.given = Variable("STEPWELL_SPOOL_DIR");
  if (const std::string system = Variable("STEPWELL_SYSTEM_ROOT"); !system.empty()) {
    places.system = system;
  }
  std::string temporary = Variable("TMPDIR");
  while (temporary.size() > 1 && temporary.back() == '/') temporary.pop_back();
  if (!temporary.empty()) places.temporary.push_back(temporary);
  places.temporary.emplace_back("/tmp");
  places.user = geteuid();
  return places;
}

std::vector<std::string> DescribePlaces(const RootPlaces& places) {
  if (!places.given.empty()) return {absl::StrCat(places.given, " (STEPWELL_SPOOL_DIR)")};
  std::vector<std::string> texts;
  texts.push_back(places.user == 0 ? absl::StrCat(places.system, "/u*")
                                   : absl::StrCat(places.system, "/u", places.user));
  for (const std::string& folder : places.temporary) {
    std::string text = absl::StrCat(folder, "/stepwell-", places.user);
    if (texts.back() != text) texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<FoundRoot> FindSpoolRoots(const RootPlaces& places) {
  std::vector<FoundRoot> roots;
  if (!places.given.empty()) {
    Add(places.given, "", roots);
    return roots;
  }
  if (places.user == 0) {
    for (const std::string& path : Entries(places.system, "u")) Add(path, places.system, roots);
  } else {
    Add(absl::StrCat(places.system, "/u", places.user), places.system, roots);
  }
  for (const std::string& folder : places.temporary) {
    const std::string own = absl::StrCat("stepwell-", places.user);
    Add(absl::StrCat(folder, "/", own), "", roots);
    for (const std::string& path : Entries(folder, own + "-")) Add(path, "", roots);
  }
  return roots;
}

}  // namespace stepwell::agent
