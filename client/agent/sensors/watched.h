// Watched: a piece of work that may hang, on a thread of its own, asked for again and again. At most
// one call is under way: while it hangs nothing more is asked, its late answer waits to be taken (the
// next question throws it away), and then it serves again. A thread that still hangs at the end is left behind, with what it needs.
// Confined to the thread that asks.
//
//   Watched<Reading> gpu("sensor-gpu0", [sensor] { ... return reading; });
//   if (gpu.Ask()) std::optional<Reading> reading = gpu.Await(absl::Milliseconds(100));
#pragma once

#include <pthread.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace stepwell::agent {

template <typename Question, typename Answer>
class Watched {
 public:
  // `work` owns all it touches. Starts no thread before the first question.
  Watched(std::string thread_name, std::function<Answer(const Question&)> work)
      : thread_name_(std::move(thread_name)), state_(std::make_shared<State>(std::move(work))) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    bool busy = false;
    {
      absl::MutexLock lock(&state_->mu);
      state_->stopping = true;
      busy = state_->busy;
    }
    if (!thread_.joinable()) return;
    if (busy) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

  // False: an earlier question is still being worked on. Whoever wants its answer takes it first:
  // Await(absl::ZeroDuration()).
  bool Ask(Question question) {
    {
      absl::MutexLock lock(&state_->mu);
      if (state_->busy) return false;
      state_->answer.reset();
      state_->question = std::move(question);
      state_->busy = true;
    }
    if (!thread_.joinable()) {
      thread_ = std::thread([state = state_, name = thread_name_.substr(0, 15)] {
        pthread_setname_np(pthread_self(), name.c_str());
        Serve(*state);
      });
    }
    return true;
  }
  // The answer to the last question; none within `patience`.
  std::optional<Answer> Await(absl::Duration patience) {
    absl::MutexLock lock(&state_->mu);
    const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(state_->mu) { return !state_->busy; };
    state_->mu.AwaitWithTimeout(absl::Condition(&idle), patience);
    if (state_->busy) return std::nullopt;
    return std::exchange(state_->answer, std::nullopt);
  }

 private:
  struct State {
    explicit State(std::function<Answer(const Question&)> what) : work(std::move(what)) {}
    const std::function<Answer(const Question&)> work;
    absl::Mutex mu;
    std::optional<Question> question ABSL_GUARDED_BY(mu);
    std::optional<Answer> answer ABSL_GUARDED_BY(mu);
    bool busy ABSL_GUARDED_BY(mu) = false;
    bool stopping ABSL_GUARDED_BY(mu) = false;
  };

  static void Serve(State& state) {
    while (true) {
      std::optional<Question> question;
      {
        absl::MutexLock lock(&state.mu);
        const auto due = [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mu) {
          return state.stopping || state.question.has_value();
        };
        state.mu.Await(absl::Condition(&due));
        if (state.stopping) return;
        question = std::exchange(state.question, std::nullopt);
      }
      Answer answer = state.work(*question);
      absl::MutexLock lock(&state.mu);
      state.answer = std::move(answer);
      state.busy = false;
    }
  }

  const std::string thread_name_;
  const std::shared_ptr<State> state_;  // the asker's and the thread's
  std::thread thread_;
};

}  // namespace stepwell::agent
