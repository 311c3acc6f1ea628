#include "server/caps_wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/query_wire.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr char kPlaceMissing[] =
    "place is missing; allowed: a project, a trial, or neither for all trials, and a metric_group "
    "or "
    "none for all groups";

Caps FromWire(const pb::Caps& wire) {
  Caps caps;
  if (wire.has_raw_age_seconds()) caps.raw_age_seconds = wire.raw_age_seconds();
  if (wire.has_rollup_age_seconds()) caps.rollup_age_seconds = wire.rollup_age_seconds();
  if (wire.has_trial_bytes()) caps.trial_bytes = wire.trial_bytes();
  if (wire.has_series_samples()) caps.series_samples = wire.series_samples();
  if (wire.has_profiling_window_seconds()) {
    caps.profiling_window_seconds = wire.profiling_window_seconds();
  }
  if (wire.has_trace_bytes()) caps.trace_bytes = wire.trace_bytes();
  if (wire.has_trial_trace_bytes()) caps.trial_trace_bytes = wire.trial_trace_bytes();
  if (wire.has_trace_age_seconds()) caps.trace_age_seconds = wire.trace_age_seconds();
  return caps;
}

MaybeComplaint CheckFields(const pb::Caps& wire_untrusted, const CapsTarget& target, Caps& caps) {
  caps = FromWire(wire_untrusted);
  const absl::Status checked = CheckCaps(caps, {.metric_group = target.metric_group});
  if (checked.ok()) return std::nullopt;
  return Invalid("CAPS", absl::StrCat("caps.", checked.message()));
}

// Of a request that sets `caps`, too.
template <typename Request>
MaybeComplaint CheckClear(const Request& request_untrusted, const Caps& caps,
                          std::vector<std::string>& clear) {
  const Request& request = request_untrusted;
  if (request.clear_size() > static_cast<int>(kCapFields.size())) {
    return Invalid("CLEAR", absl::StrCat("clear has ", request.clear_size(),
                                         " entries; allowed: 0 ... ", kCapFields.size()));
  }
  clear.assign(request.clear().begin(), request.clear().end());
  Caps changed;
  const absl::Status clears = ChangeCaps(caps, clear, changed);
  if (!clears.ok()) return Invalid("CLEAR", Shortened(clears.message(), 1024));
  return std::nullopt;
}

}  // namespace

MaybeComplaint CheckPlace(const pb::CapsPlace& place_untrusted, CapsTarget& target) {
  const pb::CapsPlace& place = place_untrusted;
  target = {};
  if (place.owner_case() == pb::CapsPlace::kProject) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckProjectName("place.project", place.project()));
    target.project = place.project();
  }
  if (place.owner_case() == pb::CapsPlace::kTrial) {
    auto selector = CheckTrialRef(place.trial(), "place.trial");
    if (!selector.ok()) return Invalid("TRIAL_REF", std::string(selector.status().message()));
    target.trial = *std::move(selector);
  }
  STEPWELL_RETURN_IF_COMPLAINT(CheckText("place.metric_group", place.metric_group(),
                                         {0, kCapGroupBytesMax}, "METRIC_GROUP"));
  target.metric_group = place.metric_group();
  return std::nullopt;
}

MaybeComplaint CheckGetCaps(const pb::GetCapsRequest& request_untrusted, CapsTarget& target) {
  if (!request_untrusted.has_place()) return Invalid("PLACE", kPlaceMissing);
  return CheckPlace(request_untrusted.place(), target);
}

MaybeComplaint CheckSetCaps(const pb::SetCapsRequest& request_untrusted, CapsChange& change) {
  const pb::SetCapsRequest& request = request_untrusted;
  change = {};
  if (!request.has_place()) return Invalid("PLACE", kPlaceMissing);
  STEPWELL_RETURN_IF_COMPLAINT(CheckPlace(request.place(), change.target));
  STEPWELL_RETURN_IF_COMPLAINT(CheckFields(request.caps(), change.target, change.caps));
  return CheckClear(request, change.caps, change.clear);
}

MaybeComplaint CheckPreviewCaps(const pb::PreviewCapsRequest& request_untrusted,
                                PreviewRequest& preview) {
  const pb::PreviewCapsRequest& request = request_untrusted;
  preview = {};
  // What is set nowhere in particular is set for all trials.
  if (request.has_place() || request.has_caps() || request.clear_size() > 0) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckPlace(request.place(), preview.target.emplace()));
  }
  if (request.has_caps()) {
    STEPWELL_RETURN_IF_COMPLAINT(
        CheckFields(request.caps(), *preview.target, preview.caps.emplace()));
  }
  preview.for_merged_rows = request.for_merged_rows();
  return CheckClear(request, preview.caps.value_or(Caps{}), preview.clear);
}

MaybeComplaint CheckSweepCaps(const pb::SweepCapsRequest& request_untrusted,
                              std::optional<CapsTarget>& target) {
  CapsTarget named;
  STEPWELL_RETURN_IF_COMPLAINT(CheckPlace(request_untrusted.place(), named));
  target = std::nullopt;
  if (named.project || named.trial || !named.metric_group.empty()) target = std::move(named);
  return std::nullopt;
}

pb::CapsPlace ToWire(const CapsPlace& place) {
  pb::CapsPlace wire;
  wire.set_metric_group(place.metric_group);
  switch (place.owner) {
    case CapsOwner::kAll:
      break;
    case CapsOwner::kProject:
      wire.set_project(place.project);
      break;
    case CapsOwner::kTrial:
      // As a request may name it: by one of both.
      if (place.external_id.empty()) {
        wire.mutable_trial()->set_trial_id(place.owner_id);
      } else {
        wire.mutable_trial()->set_project(place.project);
        wire.mutable_trial()->set_external_id(place.external_id);
      }
      break;
  }
  return wire;
}

pb::Caps ToWire(const Caps& caps) {
  pb::Caps wire;
  if (caps.raw_age_seconds) wire.set_raw_age_seconds(*caps.raw_age_seconds);
  if (caps.rollup_age_seconds) wire.set_rollup_age_seconds(*caps.rollup_age_seconds);
  if (caps.trial_bytes) wire.set_trial_bytes(*caps.trial_bytes);
  if (caps.series_samples) wire.set_series_samples(*caps.series_samples);
  if (caps.profiling_window_seconds) {
    wire.set_profiling_window_seconds(*caps.profiling_window_seconds);
  }
  if (caps.trace_bytes) wire.set_trace_bytes(*caps.trace_bytes);
  if (caps.trial_trace_bytes) wire.set_trial_trace_bytes(*caps.trial_trace_bytes);
  if (caps.trace_age_seconds) wire.set_trace_age_seconds(*caps.trace_age_seconds);
  return wire;
}

pb::CapRemoval ToWire(const CapRemoval& removal) {
  pb::CapRemoval wire;
  wire.set_trial_id(Value(removal.trial_id));
  wire.set_metric_group(removal.metric_group);
  wire.set_field(removal.field);
  wire.set_sample_count(removal.sample_count);
  wire.set_raw_bytes(removal.raw_bytes);
  wire.set_rollup_bytes(removal.rollup_bytes);
  wire.set_first_time_us(removal.first_time_us);
  wire.set_last_time_us(removal.last_time_us);
  wire.set_trace_count(removal.trace_count);
  wire.set_trace_bytes(removal.trace_bytes);
  return wire;
}

std::vector<pb::EffectiveCap> ToWire(const EffectiveCaps& effective) {
  std::vector<pb::EffectiveCap> wire;
  for (const CapField& field : kCapFields) {
    const EffectiveCap& cap = effective.*field.effective;
    pb::EffectiveCap& each = wire.emplace_back();
    each.set_field(std::string(field.name));
    each.set_value(cap.value);
    if (cap.place) *each.mutable_place() = ToWire(*cap.place);
  }
  return wire;
}

pb::GetCapsResponse ToWire(const CapsReport& report) {
  pb::GetCapsResponse wire;
  *wire.mutable_set() = ToWire(report.set);
  for (pb::EffectiveCap& each : ToWire(report.effective)) *wire.add_effective() = std::move(each);
  for (const PlacedCaps& placed : report.places) {
    pb::PlacedCaps& each = *wire.add_places();
    *each.mutable_place() = ToWire(placed.place);
    *each.mutable_caps() = ToWire(placed.caps);
  }
  return wire;
}

}  // namespace stepwell
