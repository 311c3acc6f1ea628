#include "bench/rivals/remote_write.h"

#include <bit>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell::bench {
namespace {

void AppendVarint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

// A field of wire type 2.
void AppendBytes(std::string& to, int field, std::string_view bytes) {
  AppendVarint(to, static_cast<std::uint64_t>(field) << 3 | 2);
  AppendVarint(to, bytes.size());
  to.append(bytes);
}

void AppendLabel(std::string& to, std::string_view name, std::string_view value) {
  std::string label;
  AppendBytes(label, 1, name);
  AppendBytes(label, 2, value);
  AppendBytes(to, 1, label);
}

}  // namespace

// Labels sorted by name, as the protocol wants them.
void RemoteWrite::BeginSeries(const LoadSeries& series, int writer, bool is_batch) {
  EndSeries();
  AppendLabel(series_, "__name__", series.name);
  if (!series.device.empty()) AppendLabel(series_, "device", series.device);
  AppendLabel(series_, "field", is_batch ? "batch" : "value");
  AppendLabel(series_, "writer", absl::StrCat(writer));
}

void RemoteWrite::AddSample(double value, std::int64_t time_ms) {
  std::string sample;
  sample.push_back(1 << 3 | 1);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) sample.push_back(static_cast<char>(bits >> shift));
  sample.push_back(2 << 3);
  AppendVarint(sample, static_cast<std::uint64_t>(time_ms));
  AppendBytes(series_, 2, sample);
}

void RemoteWrite::EndSeries() {
  if (!series_.empty()) AppendBytes(bytes_, 1, std::exchange(series_, {}));
}

std::string RemoteWrite::Take() {
  EndSeries();
  return std::exchange(bytes_, {});
}

}  // namespace stepwell::bench
