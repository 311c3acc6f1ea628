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

// "1,200 samples (3.40 MiB) and 0 B of rollups".
template <typename Response>
std::string SumsText(const Response& response) {
  return absl::StrCat(Plural(response.sample_count(), "sample"), " (", Bytes(response.raw_bytes()),
                      ") and ", Bytes(response.rollup_bytes()), " of rollups");
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
