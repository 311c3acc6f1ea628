#include "client/cli/trace_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/gzip_unpacker.h"

namespace stepwell::cli {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string LastPart(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The digits right behind `word`, at its first place that has some; empty: there are none.
std::string DigitsBehind(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t begin = at + word.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    if (end > begin) return text.substr(begin, end - begin);
  }
  return "";
}

}  // namespace

absl::StatusOr<TraceForm> ReadTraceFile(const std::string& path, TraceSplitter::Takers takers) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  TraceSplitter splitter(std::move(takers));
  GzipUnpacker unpacker([&](std::string_view bytes) { return splitter.Feed(bytes); });
  std::vector<char> piece(kPieceBytes);
  while (true) {
    const std::size_t count = std::fread(piece.data(), 1, piece.size(), file.get());
    STEPWELL_RETURN_IF_ERROR(Annotate(unpacker.Feed(std::string_view(piece.data(), count)), path));
    if (count == piece.size()) continue;
    if (std::ferror(file.get()) != 0) {
      return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
    break;
  }
  absl::StatusOr<TraceForm> form = splitter.Finish();
  if (!form.ok()) return Annotate(form.status(), path);
  form->is_cut = form->is_cut || !unpacker.at_end();
  return form;
}

std::optional<std::int32_t> RankOfFileName(const std::string& path) {
  std::int32_t rank = 0;
  const bool is_number = absl::SimpleAtoi(DigitsBehind(LastPart(path), "rank"), &rank);
  return is_number ? std::optional(rank) : std::nullopt;
}

std::string CycleOfFileName(const std::string& path) {
  const std::string name = LastPart(path);
  const std::string epoch = DigitsBehind(name, "ep");
  const std::string batch = DigitsBehind(name, "ba");
  return epoch.empty() || batch.empty() ? "" : absl::StrCat("ep", epoch, "-ba", batch);
}

}  // namespace stepwell::cli
