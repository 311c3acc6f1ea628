// AgentMain: `stepwell agent ...` as a process: options, signals, exit codes.
//
//   return stepwell::AgentMain(argc - 1, argv + 1);   // argv[0] is "agent"
#pragma once

namespace stepwell {

// 0 ended as asked, 64 wrong usage, 71 no process could be made, 73 the spool cannot be made or used, 78 a setting that cannot
// be. SIGTERM (and SIGINT at a terminal) ends it: what is recorded is sealed and sent for up to 5 s.
int AgentMain(int argc, char** argv);

}  // namespace stepwell
