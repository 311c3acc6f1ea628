#include "server/agent_version.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace stepwell {
namespace {

constexpr absl::string_view kAgentName = "stepwell-agent/";
constexpr std::size_t kDigitsMax = 6;

bool ReadPart(absl::string_view text, int& out) {
  if (text.empty() || text.size() > kDigitsMax) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return absl::SimpleAtoi(text, &out);
}

}  // namespace

std::optional<AgentVersion> ParseVersion(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('.', 3));
  AgentVersion version;
  if (parts.size() != 3 || !ReadPart(parts[0], version.major) ||
      !ReadPart(parts[1], version.minor) || !ReadPart(parts[2], version.patch)) {
    return std::nullopt;
  }
  return version;
}

std::string VersionText(const AgentVersion& version) {
  return absl::StrCat(version.major, ".", version.minor, ".", version.patch);
}

std::optional<AgentVersion> VersionOfAgent(absl::string_view agent_version) {
  if (!absl::ConsumePrefix(&agent_version, kAgentName)) return std::nullopt;
  return ParseVersion(agent_version.substr(0, agent_version.find_first_of("-+")));
}

MaybeComplaint CheckAgentVersion(absl::string_view agent_version, const AgentVersion& minimum) {
  const std::optional<AgentVersion> given = VersionOfAgent(agent_version);
  if (!given || *given >= minimum) return std::nullopt;
  return Complaint{
      absl::StatusCode::kFailedPrecondition, "CLIENT_TOO_OLD",
      absl::StrCat("open.agent_version is ", agent_version, ", allowed are ", kAgentName,
                   VersionText(minimum), " and newer; install stepwell ", VersionText(minimum),
                   " or newer on that machine: what is recorded stays in its spool, and the newer"
                   " agent delivers it")};
}

}  // namespace stepwell
