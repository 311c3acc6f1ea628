// Trainer is one rank's training loop, recorded: its six timings are taken where they happen.
//
//   dataloader_next      reads a batch of bytes from disk
//   to_device            turns bytes into symbols in the buffers that are computed with
//   train_batch          forward, backward, all_reduce (of gradients, with several ranks), optimizer
//   step_lr_schedulers   the next learning rate
//   from_device          takes loss and hits out of the computed buffers
//   reduce_metrics       their mean over all ranks
//
// Confined to the rank's one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "client/demo/adam.h"
#include "client/demo/corpus.h"
#include "client/demo/loader.h"
#include "client/demo/model.h"
#include "client/demo/options.h"
#include "client/demo/rank_group.h"
#include "stepwell/stepwell.h"

namespace stepwell::demo {

inline constexpr int kContext = 12;  // bytes that a prediction looks back at

// Values that ReduceMean must have room for.
std::size_t ParameterCount(const Corpus& corpus);

class Trainer {
 public:
  struct Summary {
    std::int64_t step_count = 0;
    double seconds = 0;
    double loss = 0;                 // mean of the last steps
    double examples_per_second = 0;  // of this rank
    bool is_complete = false;        // false: another rank is gone
  };

  // `corpus`, `group` and `recorder` outlive the trainer.
  Trainer(const Options& options, const Corpus& corpus, RankGroup& group, int rank,
          stepwell::Recorder& recorder);

  Summary Train();
  Model& model() { return model_; }

 private:
  struct Metrics {
    float loss = 0, accuracy = 0, progress = 0;
  };

  bool TrainStep();
  void ToDevice(const std::vector<unsigned char>& windows);
  bool TrainBatch();
  Metrics FromDevice() const;
  bool ReduceMetrics(Metrics& metrics);
  void RecordMetrics(const Metrics& metrics);
  double Progress() const;
  double Seconds() const;
  void ShowProgress();

  const Options options_;
  const Corpus& corpus_;
  RankGroup& group_;
  const int rank_;
  stepwell::Recorder& recorder_;
  const stepwell::Series loss_series_, accuracy_series_, throughput_series_, rate_series_;

  Loader loader_;
  Model model_;
  Adam adam_;
  std::vector<int> contexts_, targets_;
  double rate_ = 0;
  double progress_ = 0;  // the same on all ranks
  double loss_ = 0;      // smoothed
  std::int64_t step_count_ = 0;
  std::chrono::steady_clock::time_point begin_, step_begin_, shown_;
};

}  // namespace stepwell::demo
