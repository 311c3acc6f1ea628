// KeptTokens: the newest of the tokens that were fetched with what writers brought (`stepwell run --trial-token`), in a file of
// the format directory beside those writers' own: an agent that begins after the first token's end goes on with them. What was
// fetched with an agent's own token is never among them. Functions; they act as whoever calls them.
//
//   std::vector<KeptToken> kept = ReadKeptTokens(format_directory, now);
//   WriteKeptTokens(format_directory, kept).IgnoreError();
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace stepwell::agent {

inline constexpr char kKeptTokensFile[] = "tokens.json";
inline constexpr char kKeptTokensDraft[] = "tokens.json.new";
// Ours have 86 bytes.
inline constexpr std::size_t kTokenBytesMax = 512;

struct KeptToken {
  std::string server;
  std::string project;
  std::string trial;  // a name, or "id:7"
  std::string text;
  absl::Time ends;  // by this machine's clock
  friend bool operator==(const KeptToken& a, const KeptToken& b) = default;
};

// A header can carry it.
bool IsTokenText(const std::string& text_untrusted);

// Those that live. Whoever wrote there may have written anything: what is none is left out, and none of a file that cannot be
// read.
std::vector<KeptToken> ReadKeptTokens(int format_directory, absl::Time now);

// Those that live, as they are to be kept where not all have room: the agent's `own` before those of agents `before` it, of each
// the newest first.
std::vector<KeptToken> InOrderToKeep(std::vector<KeptToken> own,
                                     const std::vector<KeptToken>& before, absl::Time now);

// As a whole, mode 0600; none = no file. The first of them, as many as 512 KiB hold.
absl::Status WriteKeptTokens(int format_directory, const std::vector<KeptToken>& tokens);

}  // namespace stepwell::agent
