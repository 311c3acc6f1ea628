// The agent as a process of its own, for tests that kill it.
#include "client/agent/agent_main.h"

int main(int argc, char** argv) { return stepwell::AgentMain(argc, argv); }
