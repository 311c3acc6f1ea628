// A private root: one that a recorder made for itself alone, because the default one was refused
// (stepwell-UID-XXXXXX beside it). Nobody else ever looks for it, so that what its agent leaves there
// would lie there for ever.
//
//   if (IsPrivateRoot(root)) RemovePrivateRoot(root, format_directory);
#pragma once

#include <string>

namespace stepwell::agent {

// By its name and its owner.
bool IsPrivateRoot(const std::string& root);

// Removes it where no writer is left in it: the agent's own files, the format's directory, the root.
// Otherwise all of it stays. False = it is still there. Called by an agent that holds the lock and has
// said that it leaves: a recorder that comes now starts another one, which makes its lock anew.
// REQUIRES: `format_directory` is open on ROOT/f1.
bool RemovePrivateRoot(const std::string& root, int format_directory);

}  // namespace stepwell::agent
