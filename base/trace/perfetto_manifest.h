// PerfettoManifest: where Perfetto is to place the traces of an archive: a JSON file beside them, by its published format
// (perfetto.dev/docs/reference/perfetto-manifest). The traces stay as they are: what other sources wrote into them too is
// seen, and each place can be changed by hand. Functions.
//
//   manifest = ManifestOf(plan, {{.path = "0-rank0.json", .clock = ""}, ...});
//
// One whose own times lie lowest is the reference, so that no event lies before it (Perfetto drops those). Files of one
// machine, where that is unknown of one rank, share its name: their processes are the same.
#pragma once

#include <string>
#include <vector>

#include "base/trace/merge_plan.h"

namespace stepwell {

struct ArchivedFile {
  std::string path;     // in the archive
  std::string machine;  // empty: its rank stands for it
  std::string
      clock;  // what its times count by, by Perfetto's names; empty: nothing tells (Chrome's JSON)
};

// The name by which it lies in the archive; Perfetto knows it by its first bytes.
inline constexpr char kManifestName[] = "perfetto_manifest.json";

// `files` are those of the plan, in its order.
std::string ManifestOf(const MergePlan& plan, const std::vector<ArchivedFile>& files);

// "2-ep0-ba7-rank3.json": distinct by `index`, of what any archive takes.
std::string ArchivedName(std::size_t index, const std::string& path);

}  // namespace stepwell
