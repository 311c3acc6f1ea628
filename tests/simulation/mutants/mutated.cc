#include "tests/simulation/mutants/mutated.h"

#include <utility>

namespace stepwell::simulation {
namespace {

std::string switched_on;

}  // namespace

bool Mutated(const char* name) { return switched_on == name; }

void SwitchOn(std::string name) { switched_on = std::move(name); }

}  // namespace stepwell::simulation
