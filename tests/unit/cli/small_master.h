// SmallMaster: a master of two trials, my-run and next-run, with three series each, on a port of its own, that answers the RPCs
// of the subcommands from memory; and of slow-run, which has three samples and gives one to a call, the others with
// DEADLINE_EXCEEDED. What a command makes of a real master's answers is tested in
// tests/e2e; here each command meets each kind of answer.
//
//   SmallMaster master;
//   RunCommandLine({"trials", "--server", master.address()}, streams);
#pragma once

#include <memory>
#include <string>

namespace stepwell::cli {

class SmallMaster {
 public:
  SmallMaster();
  ~SmallMaster();

  const std::string& address() const { return address_; }

 private:
  struct Services;  // defined in small_master.cc, wraps gRPC
  std::unique_ptr<Services> services_;
  std::string address_;
};

}  // namespace stepwell::cli
