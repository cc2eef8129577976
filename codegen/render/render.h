#pragma once

#include <string>

#include "quern/codegen/target.h"
#include "quern/codegen/uop/linear.h"

namespace quern {

// The program text of a kernel in the target's language, with a function of that name
// ([A-Za-z0-9_]+). The uops have passed `verify`. Equal uops, names and targets give equal text.
std::string render(const std::string& name, const LinearUOps& uops, const Target& target);

}  // namespace quern
