#include "storage/private_postgres_binaries.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/private_postgres_process.h"

namespace stepwell {
namespace {

constexpr int kMajorMin = 15;
constexpr char kRemedy[] =
    "install one (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install "
    "postgresql-server), name its directory with --pg-bindir or STEPWELL_PG_BINDIR, or use an "
    "existing server with --database-url";

bool IsExecutable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// "postgres (PostgreSQL) 15.20 (Debian ...)" gives 15; development versions say "17devel".
std::optional<int> MajorOf(const std::string& postgres) {
  const auto output = RunProgram({postgres, "--version"}, std::nullopt);
  if (!output.ok()) return std::nullopt;
  static const std::regex kVersion(R"(\) (\d+))");
  std::smatch match;
  if (!std::regex_search(*output, match, kVersion)) return std::nullopt;
  return std::stoi(match[1]);
}

// Nothing when the folder does not hold both programs.
std::optional<PostgresBinaries> Inspect(const std::string& directory) {
  PostgresBinaries found{.initdb = directory + "/initdb", .postgres = directory + "/postgres"};
  if (!IsExecutable(found.initdb) || !IsExecutable(found.postgres)) return std::nullopt;
  const auto major = MajorOf(found.postgres);
  if (!major.has_value()) return std::nullopt;
  found.major = *major;
  return found;
}

absl::StatusOr<PostgresBinaries> InspectNamed(const std::string& directory,
                                              const std::string& named_by) {
  const auto found = Inspect(directory);
  if (!found.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(named_by, ": no working initdb and postgres in ", directory, "; ", kRemedy));
  }
  if (found->major < kMajorMin) {
    return absl::FailedPreconditionError(
        absl::StrCat(named_by, ": ", directory, " holds PostgreSQL ", found->major, ", at least ",
                     kMajorMin, " is needed; ", kRemedy));
  }
  return *found;
}

std::vector<std::string> Candidates() {
  std::vector<std::string> folders;
  if (const auto output = RunProgram({"pg_config", "--bindir"}, std::nullopt); output.ok()) {
    folders.emplace_back(absl::StripSuffix(*output, "\n"));
  }
  // Debian and Ubuntu; PGDG on Red Hat; Alpine.
  for (const std::string parent : {"/usr/lib/postgresql", "/usr", "/usr/libexec"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
      const std::string name = entry.path().filename();
      const bool versioned = parent == "/usr/lib/postgresql" || name.rfind("pgsql-", 0) == 0 ||
                             name.rfind("postgresql", 0) == 0;
      if (!versioned) continue;
      folders.push_back(entry.path().string() + "/bin");
      folders.push_back(entry.path().string());
    }
  }
  folders.push_back("/usr/local/pgsql/bin");
  folders.push_back("/usr/bin");
  return folders;
}

}  // namespace

absl::StatusOr<PostgresBinaries> FindPostgresBinaries(const std::string& directory, int major) {
  if (!directory.empty()) return InspectNamed(directory, "--pg-bindir");
  const char* const env = std::getenv("STEPWELL_PG_BINDIR");
  if (env != nullptr && *env != '\0') return InspectNamed(env, "STEPWELL_PG_BINDIR");
  std::optional<PostgresBinaries> newest;
  for (const std::string& folder : Candidates()) {
    const auto found = Inspect(folder);
    if (!found.has_value() || found->major < kMajorMin) continue;
    if (found->major == major) return *found;
    if (!newest.has_value() || found->major > newest->major) newest = found;
  }
  if (newest.has_value()) return *newest;
  return absl::FailedPreconditionError(
      absl::StrCat("no PostgreSQL server of version ", kMajorMin, " or later found; ", kRemedy));
}

}  // namespace stepwell
