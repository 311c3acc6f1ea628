#include "client/demo/held_out.h"

#include <algorithm>
#include <limits>

#include "client/demo/bigram.h"

namespace stepwell::demo {
namespace {

constexpr std::size_t kBatchSize = 256;
constexpr double kSmoothings[] = {1, 0.3, 0.1, 0.03, 0.01};  // "add one", and what beats it

std::vector<int> SymbolsOf(const TextRange& range, const Alphabet& alphabet) {
  std::vector<int> symbols;
  for (const char c : ReadRange(range)) {
    symbols.push_back(alphabet.symbol(static_cast<unsigned char>(c)));
  }
  return symbols;
}

}  // namespace

HeldOut::HeldOut(const Corpus& corpus, int context, std::int64_t place_count_max)
    : context_(context) {
  for (const TextRange& range : corpus.held_out()) {
    const std::vector<int> symbols = SymbolsOf(range, corpus.alphabet());
    const auto begin = static_cast<std::int64_t>(text_.size());
    text_.insert(text_.end(), symbols.begin(), symbols.end());
    for (auto place = begin + context_; place < static_cast<std::int64_t>(text_.size()); ++place) {
      places_.push_back(place);
    }
  }
  const std::int64_t stride = place_count() / place_count_max + 1;
  std::vector<std::int64_t> spread;
  for (std::int64_t i = 0; i < place_count(); i += stride) spread.push_back(places_[i]);
  places_ = std::move(spread);
}

double HeldOut::LossOf(Model& model) const {
  double sum = 0;
  for (std::size_t begin = 0; begin < places_.size(); begin += kBatchSize) {
    const std::size_t end = std::min(begin + kBatchSize, places_.size());
    std::vector<int> contexts, targets;
    for (std::size_t i = begin; i < end; ++i) {
      const auto place = text_.begin() + places_[i];
      contexts.insert(contexts.end(), place - context_, place);
      targets.push_back(*place);
    }
    model.Forward(contexts);
    sum += static_cast<double>(model.Loss(targets)) * static_cast<double>(end - begin);
  }
  return sum / static_cast<double>(places_.size());
}

double HeldOut::LossOfBigram(const Corpus& corpus) const {
  Bigram bigram(corpus.alphabet().size());
  for (const TextRange& range : corpus.training()) {
    bigram.Count(SymbolsOf(range, corpus.alphabet()));
  }
  double best = std::numeric_limits<double>::infinity();
  for (const double smoothing : kSmoothings) {
    best = std::min(best, bigram.Loss(text_, places_, smoothing));
  }
  return best;
}

}  // namespace stepwell::demo
