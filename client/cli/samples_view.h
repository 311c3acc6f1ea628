// SamplesView: raw samples as lines, one message of the stream after the other. Confined to one
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

class SamplesView {
 public:
  enum class Form { kText, kJson };

  // REQUIRES: limit > 0.
  SamplesView(Form form, std::int64_t limit) : form_(form), limit_(limit) {}

  // The lines of one message, until the limit is reached.
  std::string Lines(const v1::ReadSamplesResponse& response);
  // Samples printed so far.
  std::int64_t count() const { return count_; }
  // More samples came than the limit allows.
  bool full() const { return full_; }
  // For stderr, after the last message: what the limit or the master left out. May be empty.
  std::string Ending() const;

 private:
  std::string Line(const v1::ReadSamplesResponse& response, int i, const std::string& series) const;

  const Form form_;
  const std::int64_t limit_;
  std::int64_t count_ = 0;
  bool full_ = false;
  std::string last_series_;
  int series_count_ = 0;
  v1::Completeness completeness_;
};

}  // namespace stepwell::cli
