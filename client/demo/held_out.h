// HeldOut measures models on text that they were not trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "client/demo/corpus.h"
#include "client/demo/model.h"

namespace stepwell::demo {

class HeldOut {
 public:
  // Reads the held-out text; predicts at most `place_count_max` of its bytes, spread evenly, each
  // with `context` bytes of the same file before it.
  HeldOut(const Corpus& corpus, int context, std::int64_t place_count_max);

  std::int64_t place_count() const { return static_cast<std::int64_t>(places_.size()); }

  // Nats per byte. The model forgets its batch.
  double LossOf(Model& model) const;
  // Of a byte bigram counted in the whole training text, at its best smoothing: the baseline may
  // choose with the held-out text in view, which the model may not.
  double LossOfBigram(const Corpus& corpus) const;

 private:
  const int context_;
  std::vector<int> text_;
  std::vector<std::int64_t> places_;  // into text_
};

}  // namespace stepwell::demo
