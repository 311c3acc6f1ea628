// PythonHooks: how trainings in Python that `stepwell run` starts come to be seen: a folder before their
// modules, whose sitecustomize.py waits for torch. And which of them do not. Pure but for the look
// whether the folder is there.
#pragma once

#include <string>
#include <vector>

#include "client/recorder/src/agent_launch.h"

namespace stepwell::cli {

// What PYTHONPATH is to be; "" where the folder is not beside this program, in ../share.
std::string HookedPythonPath(const recorder::ProgramSurroundings& around);

// Why the program that these words start is not seen, or not all of it; "" where that cannot be known.
std::string WhatIsNotSeen(const std::vector<std::string>& words);

}  // namespace stepwell::cli
