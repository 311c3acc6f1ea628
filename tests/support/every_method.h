// EveryMethod: all methods of the wire contract, from its files: one that nobody thought of is among them.
// Whoever includes this links their generated code.
#pragma once

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/clock.pb.h"
#include "stepwell/v1/ingest.pb.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/token.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {

inline std::vector<const google::protobuf::MethodDescriptor*> EveryMethod() {
  // Into the pool, whatever the linker thinks of them.
  EXPECT_NE(v1::Open::descriptor(), nullptr);
  EXPECT_NE(v1::ListTrialsRequest::descriptor(), nullptr);
  EXPECT_NE(v1::FlushRequest::descriptor(), nullptr);
  EXPECT_NE(v1::TraceUpload::descriptor(), nullptr);
  EXPECT_NE(v1::Token::descriptor(), nullptr);
  EXPECT_NE(v1::ReadClockRequest::descriptor(), nullptr);
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePlace("proto/stepwell/v1"))) {
    const std::string name = absl::StrCat("stepwell/v1/", entry.path().filename().string());
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    EXPECT_NE(file, nullptr) << name << " is not linked here";
    for (int i = 0; file != nullptr && i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  std::sort(methods.begin(), methods.end(),
            [](const auto* a, const auto* b) { return a->full_name() < b->full_name(); });
  return methods;
}

}  // namespace stepwell::testing
