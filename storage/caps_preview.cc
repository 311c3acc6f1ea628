#include "storage/caps_preview.h"

#include <algorithm>
#include <set>
#include <utility>

namespace stepwell {
namespace {

class Preview {
 public:
  Preview(PreviewTrial trial, const PreviewRules& rules, CapRemovals& removals)
      : trial_(std::move(trial)), rules_(rules), removals_(removals) {}

  void Run() {
    for (PreviewLine& line : trial_.lines) {
      if (IsAskedFor(line.metric_group)) TakeByAge(line);
    }
    std::set<std::string> groups;
    for (const PreviewLine& line : trial_.lines) groups.insert(line.metric_group);
    for (const std::string& group : groups) {
      if (!IsAskedFor(group)) continue;
      TakeSamples(group);
      TakeBytes(group, GroupBytesCap(CapsOf(group)));
    }
    if (rules_.only_group.empty()) TakeBytes("", CapsOf("").trial_bytes.value);
  }

 private:
  bool IsAskedFor(const std::string& group) const {
    return rules_.only_group.empty() || rules_.only_group == group;
  }
  EffectiveCaps CapsOf(const std::string& group) const {
    return ResolveCaps(rules_.placed, trial_.project_id, Value(trial_.trial_id), group);
  }
  KeepAges AgesOfLine(const PreviewLine& line) const {
    if (rules_.for_merged_rows) return AgesOf(CapsOf(line.metric_group));
    const auto found =
        std::find_if(rules_.classes.begin(), rules_.classes.end(),
                     [&](const KeepClass& each) { return each.keep_class == line.keep_class; });
    return found == rules_.classes.end() || line.keep_class == 0 ? KeepAges{} : found->ages;
  }
  CapRemoval RemovalOf(const PreviewLine& line, const char* field) const {
    return {.trial_id = trial_.trial_id, .metric_group = line.metric_group, .field = field};
  }

  void TakeByAge(PreviewLine& line) {
    const KeepAges ages = AgesOfLine(line);
    if (IsOverAge(line.received_day, ages.raw_age_seconds, rules_.now_us)) {
      Take(line, line.byte_count, "raw_age_seconds");
    }
    if (IsOverAge(line.received_day, ages.rollup_age_seconds, rules_.now_us)) {
      CapRemoval removal = RemovalOf(line, "rollup_age_seconds");
      removal.rollup_bytes = std::exchange(line.rollup_byte_count, 0);
      removals_.Add(removal);
    }
  }

  // Takes so many bytes, and the share of samples that they are.
  void Take(PreviewLine& line, std::int64_t bytes, const char* field) {
    CapRemoval removal = RemovalOf(line, field);
    const bool all = bytes >= line.byte_count;
    removal.raw_bytes = std::min(bytes, line.byte_count);
    const double share =
        all ? 1.0 : static_cast<double>(bytes) / static_cast<double>(line.byte_count);
    removal.sample_count =
        all ? line.sample_count
            : static_cast<std::int64_t>(share * static_cast<double>(line.sample_count) + 0.5);
    if (removal.sample_count > 0) {
      removal.first_time_us = line.first_time_us;
      removal.last_time_us =
          line.first_time_us +
          static_cast<std::int64_t>(share *
                                    static_cast<double>(line.last_time_us - line.first_time_us));
    }
    line.byte_count -= removal.raw_bytes;
    line.sample_count -= removal.sample_count;
    removals_.Add(removal);
  }

  void TakeSamples(const std::string& group) {
    const auto found = trial_.excess.find(group);
    if (found == trial_.excess.end()) return;
    std::int64_t left = found->second.sample_count;
    // From the oldest lines, as far as ages left anything.
    for (PreviewLine& line : trial_.lines) {
      if (left <= 0) break;
      if (line.metric_group != group || line.sample_count <= 0) continue;
      const std::int64_t taken = std::min(left, line.sample_count);
      const double share = static_cast<double>(taken) / static_cast<double>(line.sample_count);
      CapRemoval removal = RemovalOf(line, "series_samples");
      removal.sample_count = taken;
      removal.raw_bytes = static_cast<std::int64_t>(share * static_cast<double>(line.byte_count));
      removal.first_time_us = found->second.first_time_us;
      removal.last_time_us = found->second.last_time_us;
      line.sample_count -= taken;
      line.byte_count -= removal.raw_bytes;
      left -= taken;
      removals_.Add(removal);
    }
  }

  // `group` empty = all of them.
  void TakeBytes(const std::string& group, std::int64_t bytes_max) {
    if (bytes_max == 0) return;
    const auto concerns = [&](const PreviewLine& line) {
      return group.empty() || line.metric_group == group;
    };
    std::int64_t over = -bytes_max;
    for (const PreviewLine& line : trial_.lines) {
      if (concerns(line)) over += line.byte_count + line.rollup_byte_count;
    }
    for (PreviewLine& line : trial_.lines) {
      if (over <= 0) return;
      if (!concerns(line) || line.byte_count <= 0) continue;
      const std::int64_t bytes = std::min(over, line.byte_count);
      Take(line, bytes, "trial_bytes");
      over -= bytes;
    }
    for (PreviewLine& line : trial_.lines) {
      if (over <= 0) return;
      if (!concerns(line)) continue;
      CapRemoval removal = RemovalOf(line, "trial_bytes");
      removal.rollup_bytes = std::min(over, line.rollup_byte_count);
      line.rollup_byte_count -= removal.rollup_bytes;
      over -= removal.rollup_bytes;
      removals_.Add(removal);
    }
  }

  PreviewTrial trial_;
  const PreviewRules& rules_;
  CapRemovals& removals_;
};

}  // namespace

void PlanPreview(PreviewTrial trial, const PreviewRules& rules, CapRemovals& removals) {
  Preview(std::move(trial), rules, removals).Run();
}

}  // namespace stepwell
