#include "client/recorder/src/catalog.h"

#include <algorithm>
#include <array>

namespace stepwell::recorder {
namespace {

// Those that the master and the agent add. (`loader` and `clock` are the training's side to set.)
constexpr std::array<std::string_view, 4> kReservedLabels = {"rank", "agent", "device", "worker"};

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool IsPlainText(std::string_view text) { return IsUtf8(text) && !HasControlCharacter(text); }

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && IsPlainText(text);
}

// Bytes of the UTF-8 character that begins `text`, 0 if none does. REQUIRES: text is not empty.
std::size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    // Neither overlong forms nor surrogates.
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

bool AreLabels(const std::map<std::string, std::string>& labels) {
  if (labels.size() > spool::kLabelCountMax) return false;
  return std::all_of(labels.begin(), labels.end(), [](const auto& label) {
    return IsName(label.first) && label.second.size() <= spool::kTextBytesMax &&
           IsPlainText(label.second) &&
           std::find(kReservedLabels.begin(), kReservedLabels.end(), label.first) ==
               kReservedLabels.end();
  });
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool IsScopeName(std::string_view name) {
  return IsName(name) && name.find('/') == std::string_view::npos && name != "step" &&
         !name.ends_with(".count");
}

bool IsScope(const ScopeDefinition& scope) {
  return IsScopeName(scope.name) && AreLabels(scope.labels);
}

bool IsSeries(const SeriesDefinition& series) {
  if (!IsName(series.group) || !IsName(series.name)) return false;
  if (series.unit.size() > kNameBytesMax || !IsPlainText(series.unit)) return false;
  return AreLabels(series.labels);
}

std::uint32_t Catalog::DefineScope(ScopeDefinition scope) {
  if (const auto known = scope_ids_.find(scope); known != scope_ids_.end()) return known->second;
  if (!IsScope(scope) || scopes_.size() >= kScopeNameCountMax) return 0;
  scopes_.push_back(scope);
  const auto id = static_cast<std::uint32_t>(scopes_.size());
  scope_ids_.emplace(std::move(scope), id);
  return id;
}

std::uint32_t Catalog::DefineSeries(SeriesDefinition series) {
  if (const auto known = series_ids_.find(series); known != series_ids_.end()) {
    return known->second;
  }
  if (!IsSeries(series) || series_.size() >= kSeriesCountMax) return 0;
  series_.push_back(series);
  const auto id = static_cast<std::uint32_t>(series_.size());
  series_ids_.emplace(std::move(series), id);
  return id;
}

}  // namespace stepwell::recorder
