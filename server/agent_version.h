// AgentVersion: which of our agents this master takes. A core.
//
//   if (auto complaint = CheckAgentVersion(open.agent_version(), minimum)) return *complaint;
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/complaint.h"

namespace stepwell {

struct AgentVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const AgentVersion&) const = default;
};

// The oldest that this master's wire contract works with.
inline constexpr AgentVersion kAgentVersionMin{0, 1, 0};

// Of "0.1.0": three numbers below 10^6.
std::optional<AgentVersion> ParseVersion(absl::string_view text);
std::string VersionText(const AgentVersion& version);
// Of "stepwell-agent/0.1.0", with whatever follows a '-' or '+' (a release candidate counts as its
// release). Nothing for other clients, whose versions say nothing of the contract.
std::optional<AgentVersion> VersionOfAgent(absl::string_view agent_version_untrusted);

// CLIENT_TOO_OLD, with what to do about it. Those that name no version of our agent are taken.
MaybeComplaint CheckAgentVersion(absl::string_view agent_version_untrusted,
                                 const AgentVersion& minimum);

}  // namespace stepwell
