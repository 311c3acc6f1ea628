#include "server/nearest_word.h"

#include <algorithm>
#include <numeric>

namespace stepwell {

std::string NearestWord(absl::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t k = 1; k <= candidate.size(); ++k) {
        const std::size_t substituted = diagonal + (word[i - 1] == candidate[k - 1] ? 0 : 1);
        diagonal = row[k];
        row[k] = std::min({row[k] + 1, row[k - 1] + 1, substituted});
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace stepwell
