#include "base/machine_name.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stepwell {
namespace {

TEST(MachineNameTest, AgentRule07_WhatWasChosenGoesBeforeTheSchedulersAndTheHosts) {
  unsetenv("STEPWELL_AGENT_ID");
  unsetenv("NODE_NAME");
  setenv("SLURMD_NODENAME", "slurm-3", 1);
  EXPECT_EQ(MachineName(), "slurm-3");
  setenv("NODE_NAME", "pod-5", 1);
  EXPECT_EQ(MachineName(), "pod-5");
  setenv("STEPWELL_AGENT_ID", "rack-7", 1);
  EXPECT_EQ(MachineName(), "rack-7");
  setenv("STEPWELL_AGENT_ID", "", 1);
  EXPECT_EQ(MachineName(), "pod-5") << "empty is not set";
  unsetenv("STEPWELL_AGENT_ID");
  unsetenv("SLURMD_NODENAME");
  unsetenv("NODE_NAME");
  EXPECT_FALSE(MachineName().empty());
}

}  // namespace
}  // namespace stepwell
