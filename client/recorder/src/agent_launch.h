// AgentLaunch is all that it takes to start an agent: which program, for which root, with which
// variables. It is gathered when the recorder opens, for a thread of ours must not read variables
// that the trial may be changing.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "client/recorder/src/environment.h"

namespace stepwell::recorder {

struct AgentLaunch {
  std::string root;                   // absolute
  std::vector<std::string> programs;  // paths; the first that can be executed is taken
  std::vector<std::string> variables;
  // Nobody else ever finds this root: its agent removes it with what is in it.
  bool removes_root = false;
};

struct ProgramSurroundings {
  Environment environment;
  std::string working_directory;
  std::string executable;  // /proc/self/exe; empty = not known
  std::string library;     // the file that holds this code; empty = not known
};

// Where the agent's program may lie, best first. `given` is options.agent, empty = not given; where
// that or STEPWELL_AGENT names one, no other is taken. Pure.
std::vector<std::string> ListPrograms(const std::string& given, const ProgramSurroundings& around);

// The agent's variables of the trial's: not what steers the trial's loader or its Python, nor a
// server that is none; files of TLS as they are found from `working_directory`, which is not the
// agent's. `variables` ends with null, as `environ` does. Pure.
std::vector<std::string> AgentVariables(const char* const* variables,
                                        const std::string& working_directory);

// What this process is and where this code lies.
ProgramSurroundings ReadProgramSurroundings(const Environment& environment);

// The first of `launch.programs` that is a file and may be executed; "" = none.
std::string FindProgram(const AgentLaunch& launch);

// Starts `PROGRAM agent --spool-dir ROOT --on-demand [--remove-root]` in a session of its own, with nothing of the
// trial's: no descriptor, no terminal, no mask or disposition of a signal, cwd /. 0, or an errno.
// Returns when the program runs: a hung file server that holds it holds this call.
int Launch(const AgentLaunch& launch, const std::string& program, pid_t* launched);

}  // namespace stepwell::recorder
