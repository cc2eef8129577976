#pragma once

#include <vector>

#include "quern/codegen/uop/uop.h"

namespace quern {

// The uops of a kernel in execution order: the result of `linearize`, the input of `verify`, of
// every renderer and of the interpreter. Owned by a Graph.
//
// - Every source stands before its user, constants and defines included; Index has been replaced by
//   int32 and int64, and LANE, REDUCE, SINK do not occur.
// - RANGE .. END and IF .. ENDIF nest. RANGE and SPECIAL count from 0 to their source less 1, and a
//   size of 0 runs nothing.
// - DEFINE_ACC sets its register to the initial value each time it is passed; it stands before the
//   loops that accumulate. As a source it is the register's present value. ASSIGN(acc, v) sets the
//   register; as a source of a later uop, after the loops that the ASSIGN lies in, it stands for
//   the register's value there (the initial one if the loops ran zero times).
// - A STORE or LOAD with a gate of n lanes touches just the elements whose lane is true.
using LinearUOps = std::vector<UOp>;

}  // namespace quern
