#include "client/cli/caps_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/cap_units.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

using Effective = google::protobuf::RepeatedPtrField<v1::EffectiveCap>;

std::string SetText(const CapOption& cap, const v1::Caps& caps) {
  return (caps.*cap.has)() ? cap.text((caps.*cap.get)()) : "-";
}

std::string NameOf(const std::string& field) {
  const CapOption* cap = FindCap(field);
  return cap == nullptr ? Printable(field) : cap->name;
}

std::string HoldsTable(const v1::Caps& set, const Effective& effective, const Paint& paint) {
  Table table({{"CAP"}, {"HOLDS", Align::kRight}, {"SET HERE", Align::kRight}, {"DECIDED BY"}});
  for (const v1::EffectiveCap& each : effective) {
    const CapOption* cap = FindCap(each.field());
    table.Add({NameOf(each.field()),
               cap == nullptr ? absl::StrCat(each.value()) : cap->text(each.value()),
               cap == nullptr ? "-" : SetText(*cap, set),
               each.has_place() ? PlaceText(each.place()) : "default"});
  }
  return table.Text(paint);
}

// Where no place decides, the default does: null, and not the place of all trials.
nlohmann::ordered_json WithDefaults(nlohmann::ordered_json json, const Effective& effective) {
  for (int i = 0; i < effective.size(); ++i) {
    if (!effective.Get(i).has_place())
      json["effective"][static_cast<std::size_t>(i)]["place"] = nullptr;
  }
  return json;
}

std::string Bytes(std::int64_t bytes) { return ValueText(static_cast<double>(bytes), "bytes"); }

// "1,200 samples (3.40 MiB) and 0 B of rollups", ", and 2 traces (4.00 MiB)" where there are some.
template <typename Response>
std::string SumsText(const Response& response) {
  std::int64_t trace_count = 0;
  std::int64_t trace_bytes = 0;
  for (const v1::CapRemoval& each : response.removals()) {
    trace_count += each.trace_count();
    trace_bytes += each.trace_bytes();
  }
  std::string text =
      absl::StrCat(Plural(response.sample_count(), "sample"), " (", Bytes(response.raw_bytes()),
                   ") and ", Bytes(response.rollup_bytes()), " of rollups");
  if (trace_count > 0) {
    // The sums of an answer have no traces.
    absl::StrAppend(&text, ", and ", response.truncated() ? "at least " : "",
                    Plural(trace_count, "trace"), " (", Bytes(trace_bytes), ")");
  }
  return text;
}

// What of one trial, group and cap goes of `response`; nullptr = nothing.
const v1::CapRemoval* Find(const v1::PreviewCapsResponse& response, const v1::CapRemoval& like) {
  for (const v1::CapRemoval& each : response.removals()) {
    if (each.trial_id() == like.trial_id() && each.metric_group() == like.metric_group() &&
        each.field() == like.field()) {
      return &each;
    }
  }
  return nullptr;
}

bool HasMore(const v1::CapRemoval& would, const v1::CapRemoval& now) {
  return would.sample_count() > now.sample_count() || would.raw_bytes() > now.raw_bytes() ||
         would.rollup_bytes() > now.rollup_bytes() || would.trace_count() > now.trace_count();
}

template <typename Response>
std::string RemovalsTable(const Response& response, const Paint& paint) {
  Table table({{"TRIAL"},
               {"GROUP"},
               {"CAP"},
               {"SAMPLES", Align::kRight},
               {"BYTES", Align::kRight},
               {"ROLLUPS", Align::kRight},
               {"TRACES", Align::kRight},
               {"FROM"},
               {"TO"}});
  for (const v1::CapRemoval& each : response.removals()) {
    table.Add({absl::StrCat("id:", each.trial_id()),
               each.metric_group().empty() ? "all" : Printable(each.metric_group()),
               NameOf(each.field()), CountText(each.sample_count()), Bytes(each.raw_bytes()),
               Bytes(each.rollup_bytes()),
               each.trace_count() == 0
                   ? ""
                   : absl::StrCat(each.trace_count(), " (", Bytes(each.trace_bytes()), ")"),
               TimeText(each.first_time_us()), TimeText(each.last_time_us())});
  }
  std::string text = table.Text(paint);
  if (response.truncated()) text += "... and more, which the sums hold\n";
  return text;
}

}  // namespace

std::string PlaceText(const v1::CapsPlace& place) {
  std::string text;
  switch (place.owner_case()) {
    case v1::CapsPlace::kProject:
      text = "project " + Printable(place.project());
      break;
    case v1::CapsPlace::kTrial:
      if (place.trial().external_id().empty()) {
        text = absl::StrCat("trial id:", place.trial().trial_id());
      } else {
        text = "trial " + Printable(place.trial().external_id());
        const std::string& project = place.trial().project();
        if (!project.empty() && project != "default") text += " of project " + Printable(project);
      }
      break;
    case v1::CapsPlace::OWNER_NOT_SET:
      text = "all trials";
      break;
  }
  if (!place.metric_group().empty()) text += ", group " + Printable(place.metric_group());
  return text;
}

std::string CapsText(const v1::CapsPlace& place, const v1::GetCapsResponse& response,
                     const Paint& paint) {
  std::string text = absl::StrCat("Caps of ", PlaceText(place), "\n\n",
                                  HoldsTable(response.set(), response.effective(), paint));
  if (response.places().empty()) return text;
  std::vector<Table::Column> columns = {{"SET AT"}};
  for (const CapOption& cap : CapOptions()) columns.push_back({cap.name, Align::kRight});
  Table table(columns);
  for (const v1::PlacedCaps& each : response.places()) {
    std::vector<std::string> cells = {PlaceText(each.place())};
    for (const CapOption& cap : CapOptions()) cells.push_back(SetText(cap, each.caps()));
    table.Add(cells);
  }
  return absl::StrCat(text, "\n", table.Text(paint));
}

std::string CapsJson(const v1::GetCapsResponse& response) {
  return WithDefaults(ToJson(response), response.effective()).dump(2) + "\n";
}

std::string CapsSetText(const v1::CapsPlace& place, const v1::SetCapsResponse& response,
                        const Paint& paint) {
  return absl::StrCat("Caps of ", PlaceText(place), " now\n\n",
                      HoldsTable(response.set(), response.effective(), paint));
}

std::string CapsSetJson(const v1::SetCapsResponse& response) {
  return WithDefaults(ToJson(response), response.effective()).dump(2) + "\n";
}

std::string PreviewText(const v1::PreviewCapsResponse& response, const Paint& paint) {
  if (response.removals().empty()) return "A sweep would remove nothing.\n";
  return absl::StrCat(RemovalsTable(response, paint), "\nA sweep would remove ", SumsText(response),
                      ".\n");
}

v1::PreviewCapsResponse RemovedBesides(const v1::PreviewCapsResponse& would,
                                       const v1::PreviewCapsResponse& now) {
  if (would.truncated()) return would;
  v1::PreviewCapsResponse goes;
  for (const v1::CapRemoval& each : would.removals()) {
    const v1::CapRemoval* anyway = Find(now, each);
    if (anyway != nullptr && !HasMore(each, *anyway)) continue;
    *goes.add_removals() = each;
    goes.set_sample_count(goes.sample_count() + each.sample_count());
    goes.set_raw_bytes(goes.raw_bytes() + each.raw_bytes());
    goes.set_rollup_bytes(goes.rollup_bytes() + each.rollup_bytes());
  }
  return goes;
}

std::string CapsRemoveText(const v1::CapsPlace& place, const v1::PreviewCapsResponse& goes,
                           const Paint& paint) {
  return absl::StrCat(RemovalsTable(goes, paint), "\nWith these caps of ", PlaceText(place),
                      " the next sweep would remove ", SumsText(goes), ", for good.\n");
}

std::string SweepText(const v1::SweepCapsResponse& response, const Paint& paint) {
  std::string text = "Nothing was to be removed.\n";
  if (!response.removals().empty()) {
    text = absl::StrCat(RemovalsTable(response, paint), "\n", SumsText(response), " went.\n");
  }
  if (response.leaves_left() > 0) {
    absl::StrAppend(&text, "Their disk space comes back with later sweeps: ",
                    response.leaves_left() == 1 ? std::string("1 leaf is still read.\n")
                                                : absl::StrCat(CountText(response.leaves_left()),
                                                               " leaves are still read.\n"));
  }
  return text;
}

}  // namespace stepwell::cli
