#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "quern/codegen/shape/sint.h"

namespace quern {

// How a list of axes lies in the at most three dimensions of a launch.
//
// Where each of at most three axes fits into a dimension of its own, the last axis is dimension 0.
// Else neighbours share dimensions, the slowest first. Where no such partition fits the limits, all
// axes together are one number, cut into three dimensions: by divisors if there are some that fit,
// else with an overhang of work items beyond the end of the slowest axis, which do nothing.
struct LaunchDims {
  SInt size[3] = {1, 1, 1};
  std::vector<int> dim_of;  // by axis; unused if is_linear
  bool is_linear = false;   // the axes are the digits of ((id2 * size1) + id1) * size0 + id0
  bool overhangs = false;
};

// `sizes`: of the axes, slowest first, with `vars` as the bounds of their variables. `limits`: of
// each dimension, 0 for none. Nothing if they cannot hold the axes.
std::optional<LaunchDims> launch_dims(std::span<const SInt> sizes, const int64_t (&limits)[3],
                                      std::span<const VarBounds> vars);

}  // namespace quern
