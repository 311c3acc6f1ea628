#include "client/demo/corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

namespace stepwell::demo {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCorpusBytesMax = 64 << 20;
constexpr std::int64_t kFileBytesMax = 4 << 20;  // larger ones are data, not prose or code
constexpr std::int64_t kTrainingBytesMin = 4096;
constexpr std::int64_t kHeldOutBytesMin = 256;
constexpr int kOneHeldOutIn = 10;

bool IsSkippedFolder(const std::string& name) {
  return name.starts_with('.') || name == "build" || name == "node_modules" ||
         name == "__pycache__";
}

bool IsTextFile(const fs::path& path) {
  static const std::set<std::string> extensions = {
      ".cc", ".h",     ".c",  ".cpp",  ".hpp", ".py",   ".sql", ".proto", ".md", ".txt",
      ".sh", ".cmake", ".ts", ".html", ".css", ".yaml", ".yml", ".toml",  ".rs", ".go"};
  return extensions.contains(path.extension().string());
}

std::vector<fs::path> FindTextFiles(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  auto at = fs::recursive_directory_iterator(
      directory, fs::directory_options::skip_permission_denied, ignored);
  for (; at != fs::recursive_directory_iterator(); at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (at->is_directory(ignored) && IsSkippedFolder(name)) at.disable_recursion_pending();
    if (at->is_regular_file(ignored) && IsTextFile(name)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// FNV-1a: the same split on every machine.
std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::optional<TextRange> AsText(const fs::path& path) {
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error || bytes == 0 || bytes > kFileBytesMax) return std::nullopt;
  TextRange range{path.string(), 0, bytes};
  const std::string text = ReadRange(range);
  if (text.empty() || text.find('\0') != std::string::npos) return std::nullopt;
  return range;
}

}  // namespace

Alphabet::Alphabet(const std::array<std::int64_t, 256>& counts) {
  int known = 0;
  for (const std::int64_t count : counts) known += count > 0 ? 1 : 0;
  size_ = known + 1;
  int next = 0;
  for (std::size_t byte = 0; byte < counts.size(); ++byte) {
    symbols_[byte] = counts[byte] > 0 ? next++ : known;
  }
}

std::optional<Corpus> Corpus::Find(const std::string& directory,
                                   const std::vector<std::string>& held_outs, std::string* error) {
  Corpus corpus;
  std::set<fs::path> kept_out;
  for (const std::string& held_out : held_outs) {
    const std::optional<TextRange> text = AsText(held_out);
    if (!text) {
      *error = "--held-out: '" + held_out + "' is no readable text file of at most 4 MiB";
      return std::nullopt;
    }
    corpus.held_out_.push_back(*text);
    kept_out.insert(fs::weakly_canonical(held_out));
  }
  std::int64_t bytes = 0;
  for (const fs::path& path : FindTextFiles(directory)) {
    const std::optional<TextRange> text = AsText(path);
    if (!text || bytes + text->bytes() > kCorpusBytesMax) continue;
    if (kept_out.contains(fs::weakly_canonical(path))) continue;
    bytes += text->bytes();
    const std::string shown = fs::relative(path, directory).string();
    const bool is_held_out = held_outs.empty() && HashOf(shown) % kOneHeldOutIn == 0;
    (is_held_out ? corpus.held_out_ : corpus.training_).push_back(*text);
  }
  // Too few files for a split by files: the end of the last one.
  if (BytesOf(corpus.held_out_) < kHeldOutBytesMin && !corpus.training_.empty()) {
    TextRange& last = corpus.training_.back();
    const std::int64_t cut = last.end - last.bytes() / kOneHeldOutIn;
    corpus.held_out_.push_back({last.path, cut, last.end});
    last.end = cut;
  }
  if (BytesOf(corpus.training_) < kTrainingBytesMin ||
      BytesOf(corpus.held_out_) < kHeldOutBytesMin) {
    *error = "--data: '" + directory + "' holds " + std::to_string(bytes) +
             " bytes of text, too little to learn from (at least 8 KiB)";
    return std::nullopt;
  }
  std::array<std::int64_t, 256> counts{};
  for (const TextRange& range : corpus.training_) {
    for (const char c : ReadRange(range)) ++counts[static_cast<unsigned char>(c)];
  }
  corpus.alphabet_ = Alphabet(counts);
  return corpus;
}

std::string ReadRange(const TextRange& range) {
  std::ifstream file(range.path, std::ios::binary);
  std::string text(static_cast<std::size_t>(range.bytes()), '\0');
  file.seekg(range.begin);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file ? text : std::string();
}

std::int64_t BytesOf(const std::vector<TextRange>& ranges) {
  std::int64_t bytes = 0;
  for (const TextRange& range : ranges) bytes += range.bytes();
  return bytes;
}

}  // namespace stepwell::demo
