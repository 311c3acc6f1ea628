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
  const Form form_;
  const std::int64_t limit_;
  std::int64_t count_ = 0;
  bool full_ = false;
  std::string last_series_;
  int series_count_ = 0;
  v1::Completeness completeness_;
};

struct SampleFields {
  std::int32_t series_no = 0;
  std::int64_t time_us = 0;
  std::int32_t batch = -1;
  double value = 0;
  std::int32_t attempt = 0;
};
// One sample of the series of that name, with its end of line.
std::string SampleLine(SamplesView::Form form, const std::string& series,
                       const SampleFields& fields);
// "training/loss{rank=0}"
std::string SeriesName(const v1::Series& series);

}  // namespace stepwell::cli
