// Mutated: which of the faults that mutate.py put into our sources is switched on. One at most.
//
//   if (!Mutated("forgets_definitions")) definitions_sent_count_ = 0;
#pragma once

#include <string>

namespace stepwell::simulation {

bool Mutated(const char* name);
// Empty: none.
void SwitchOn(std::string name);

}  // namespace stepwell::simulation
