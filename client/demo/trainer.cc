#include "client/demo/trainer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace stepwell::demo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLossWeight = 0.02;  // the shown loss is of about the last 50 steps

Model::Shape ShapeFor(const Corpus& corpus) {
  return {.symbol_count = corpus.alphabet().size(), .context = kContext};
}

Loader::Options LoaderOptions(const Options& options, int rank) {
  return {.batch_size = options.batch_size,
          .window = kContext + 1,
          .delay = std::chrono::duration<double, std::milli>(options.slow_loader_ms),
          // Every rank learns from other bytes.
          .seed = options.seed * 1000 + static_cast<std::uint64_t>(rank)};
}

}  // namespace

std::size_t ParameterCount(const Corpus& corpus) {
  return Model(ShapeFor(corpus), 0).parameters().size();
}

Trainer::Trainer(const Options& options, const Corpus& corpus, RankGroup& group, int rank,
                 stepwell::Recorder& recorder)
    : options_(options),
      corpus_(corpus),
      group_(group),
      rank_(rank),
      recorder_(recorder),
      loss_series_("training", "loss", {.unit = "nats"}),
      accuracy_series_("training", "accuracy", {.unit = "1"}),
      throughput_series_("training", "throughput", {.unit = "examples/s"}),
      rate_series_("training", "learning_rate", {.unit = "1"}),
      loader_(corpus.training(), LoaderOptions(options, rank)),
      model_(ShapeFor(corpus), options.seed),
      adam_(model_.parameters().size()) {}

Trainer::Summary Trainer::Train() {
  begin_ = step_begin_ = shown_ = Clock::now();
  rate_ = LearningRate(0, 0);
  recorder_.StepBegin();
  Summary summary;
  do {
    summary.is_complete = TrainStep();
  } while (summary.is_complete && progress_ < 1);
  summary.step_count = step_count_;
  summary.seconds = Seconds();
  summary.loss = loss_;
  summary.examples_per_second =
      static_cast<double>(step_count_) * options_.batch_size / summary.seconds;
  return summary;
}

bool Trainer::TrainStep() {
  const std::vector<unsigned char>* windows = nullptr;
  {
    STEPWELL_SCOPE("dataloader_next");
    windows = &loader_.Next();
  }
  {
    STEPWELL_SCOPE("to_device");
    ToDevice(*windows);
  }
  if (!TrainBatch()) return false;
  {
    STEPWELL_SCOPE("step_lr_schedulers");
    rate_ = LearningRate(step_count_ + 1, progress_);
  }
  Metrics metrics;
  {
    STEPWELL_SCOPE("from_device");
    metrics = FromDevice();
  }
  {
    STEPWELL_SCOPE("reduce_metrics");
    if (!ReduceMetrics(metrics)) return false;
  }
  RecordMetrics(metrics);
  recorder_.StepEnd();
  ++step_count_;
  ShowProgress();
  return true;
}

void Trainer::ToDevice(const std::vector<unsigned char>& windows) {
  contexts_.clear();
  targets_.clear();
  for (std::size_t begin = 0; begin < windows.size(); begin += kContext + 1) {
    for (int i = 0; i < kContext; ++i) {
      contexts_.push_back(corpus_.alphabet().symbol(windows[begin + i]));
    }
    targets_.push_back(corpus_.alphabet().symbol(windows[begin + kContext]));
  }
}

bool Trainer::TrainBatch() {
  STEPWELL_SCOPE("train_batch");
  {
    STEPWELL_SCOPE("forward");
    model_.Forward(contexts_);
    (void)model_.Loss(targets_);
  }
  {
    STEPWELL_SCOPE("backward");
    model_.Backward();
  }
  if (group_.rank_count() > 1) {
    STEPWELL_SCOPE("all_reduce");
    if (!group_.ReduceMean(rank_, model_.gradients())) return false;
  }
  STEPWELL_SCOPE("optimizer");
  adam_.Step(model_.gradients(), rate_, model_.parameters());
  return true;
}

Trainer::Metrics Trainer::FromDevice() const {
  const auto losses = model_.losses();
  const auto guesses = model_.guesses();
  const auto count = static_cast<float>(losses.size());
  int hits = 0;
  for (std::size_t i = 0; i < guesses.size(); ++i) hits += guesses[i] == targets_[i] ? 1 : 0;
  return {.loss = std::accumulate(losses.begin(), losses.end(), 0.0f) / count,
          .accuracy = static_cast<float>(hits) / count,
          .progress = static_cast<float>(Progress())};
}

bool Trainer::ReduceMetrics(Metrics& metrics) {
  std::array<float, 3> values = {metrics.loss, metrics.accuracy, metrics.progress};
  if (!group_.ReduceMean(rank_, values)) return false;
  metrics = {values[0], values[1], values[2]};
  // From here on the same on all ranks: they take the same rate and stop after the same step.
  progress_ = metrics.progress;
  const double weight = std::max(kLossWeight, 1.0 / static_cast<double>(step_count_ + 1));
  loss_ += weight * (double{metrics.loss} - loss_);
  return true;
}

void Trainer::RecordMetrics(const Metrics& metrics) {
  const Clock::time_point now = Clock::now();
  const double took = std::chrono::duration<double>(now - step_begin_).count();
  step_begin_ = now;
  recorder_.Record(loss_series_, metrics.loss);
  recorder_.Record(accuracy_series_, metrics.accuracy);
  recorder_.Record(throughput_series_, options_.batch_size / took);
  recorder_.Record(rate_series_, rate_);
}

// 1 and more = done.
double Trainer::Progress() const {
  const double by_steps = options_.steps > 0 ? static_cast<double>(step_count_ + 1) /
                                                   static_cast<double>(options_.steps)
                                             : 0;
  const double by_time = options_.seconds > 0 ? Seconds() / options_.seconds : 0;
  return std::max(by_steps, by_time);
}

double Trainer::Seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Trainer::ShowProgress() {
  const Clock::time_point now = Clock::now();
  if (rank_ != 0 || options_.is_quiet || now - shown_ < std::chrono::seconds(2)) return;
  shown_ = now;
  std::fprintf(stderr, "stepwell-demo: step %lld, %3.0f %%, loss %.3f nats/byte\n",
               static_cast<long long>(step_count_), 100 * std::min(progress_, 1.0), loss_);
}

}  // namespace stepwell::demo
