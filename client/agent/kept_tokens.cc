#include "client/agent/kept_tokens.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/agent/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace stepwell::agent {
namespace {

// Of two thousand trials with names of some length. A user of the machine may have written it.
constexpr std::size_t kFileBytesMax = 512 << 10;
constexpr std::size_t kTokensMax = 1024;

}  // namespace

bool IsTokenText(const std::string& text_untrusted) {
  return !text_untrusted.empty() && text_untrusted.size() <= kTokenBytesMax &&
         std::all_of(text_untrusted.begin(), text_untrusted.end(), absl::ascii_isgraph);
}

std::vector<KeptToken> ReadKeptTokens(int format_directory, absl::Time now) {
  std::vector<KeptToken> kept;
  const auto text = ReadSmallFileAt(format_directory, kKeptTokensFile, kFileBytesMax);
  if (!text.ok()) return kept;
  const nlohmann::json file = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_array()) return kept;
  for (const nlohmann::json& each : file) {
    if (kept.size() >= kTokensMax) break;
    const auto word = [&](const char* name) {
      const bool is_text = each.is_object() && each.contains(name) && each[name].is_string();
      return is_text ? each[name].get<std::string>() : std::string();
    };
    const bool has_end =
        each.is_object() && each.contains("ends_us") && each["ends_us"].is_number_integer();
    const absl::Time ends =
        has_end ? absl::FromUnixMicros(each["ends_us"].get<std::int64_t>()) : absl::InfinitePast();
    KeptToken token{word("server"), word("project"), word("trial"), word("token"), ends};
    if (ends > now && IsTokenText(token.text)) kept.push_back(std::move(token));
  }
  return kept;
}

std::vector<KeptToken> InOrderToKeep(std::vector<KeptToken> own,
                                     const std::vector<KeptToken>& before, absl::Time now) {
  std::vector<KeptToken> kept = std::move(own);
  const auto own_count = static_cast<std::ptrdiff_t>(kept.size());
  kept.insert(kept.end(), before.begin(), before.end());
  // What was fetched last ends last.
  const auto is_newer = [](const KeptToken& a, const KeptToken& b) { return a.ends > b.ends; };
  std::stable_sort(kept.begin(), kept.begin() + own_count, is_newer);
  std::stable_sort(kept.begin() + own_count, kept.end(), is_newer);
  std::erase_if(kept, [now](const KeptToken& each) { return each.ends <= now; });
  return kept;
}

absl::Status WriteKeptTokens(int format_directory, const std::vector<KeptToken>& tokens) {
  if (tokens.empty()) {
    unlinkat(format_directory, kKeptTokensFile, 0);
    return absl::OkStatus();
  }
  std::string text = "[";
  for (const KeptToken& each : tokens) {
    const nlohmann::json line = {{"server", each.server},
                                 {"project", each.project},
                                 {"trial", each.trial},
                                 {"token", each.text},
                                 {"ends_us", absl::ToUnixMicros(each.ends)}};
    const std::string one = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() + one.size() + 4 > kFileBytesMax) break;
    absl::StrAppend(&text, text.size() > 1 ? ",\n" : "", one);
  }
  text += "]\n";
  // One that somebody left may be others' to read.
  unlinkat(format_directory, kKeptTokensDraft, 0);
  const auto draft =
      OpenAt(format_directory, kKeptTokensDraft, O_WRONLY | O_CREAT | O_EXCL | O_TRUNC, 0600);
  if (!draft.ok()) return draft.status();
  absl::Status written = WriteAt(draft->get(), 0, text);
  if (written.ok() &&
      renameat(format_directory, kKeptTokensDraft, format_directory, kKeptTokensFile) != 0) {
    written = absl::ErrnoToStatus(errno, kKeptTokensFile);
  }
  if (!written.ok()) unlinkat(format_directory, kKeptTokensDraft, 0);
  return written;
}

}  // namespace stepwell::agent
