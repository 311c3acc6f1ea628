// SeriesChoice: which series a stream of answers sends, found out as their samples come: selectors hold
// for series of the future, too. Remembers a byte for each series that came by. Confined to one thread.
//
//   for (SeriesNo no : choice.Unknown(chunk)) ...   // look them up
//   choice.Learn(series);                           // whether chosen or not
//   if (choice.Holds(column.series_no)) ...
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/head_chunk.h"
#include "storage/read_store.h"

namespace stepwell {

// As the database selects: every condition that is given. REQUIRES: series_nos are sorted, as CheckSelector leaves
// them: a request may have millions, and each series is looked for among them.
bool Matches(const SeriesSelection& selection, const Series& series);

class SeriesChoice {
 public:
  // A series that any of them chooses; no selection = all.
  explicit SeriesChoice(std::vector<SeriesSelection> selections)
      : selections_(std::move(selections)) {}

  // Series of the chunks that were not looked up yet, by number, each once.
  std::vector<SeriesNo> Unknown(const std::vector<HeadChunkPtr>& chunks) const;
  // True when it is chosen.
  bool Learn(const Series& series);
  bool Holds(SeriesNo series_no) const;

 private:
  const std::vector<SeriesSelection> selections_;
  absl::flat_hash_map<SeriesNo, bool> chosen_;
};

}  // namespace stepwell
