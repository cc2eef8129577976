#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quern/codegen/ast/ast.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/runtime/kernel.h"

// Running a kernel on every device with every kind of schedule.
namespace quern::test {

// Elements of a buffer as lanes (codegen/uop/eval.h).
struct Values {
  DType dtype;
  std::vector<int64_t> lanes;

  bool operator==(const Values&) const = default;
  size_t size() const { return lanes.size(); }
  double real(size_t i) const;
};

// Rounded to the type, and wrapped into it.
Values reals(DType dtype, const std::vector<double>& values);
Values ints(DType dtype, const std::vector<int64_t>& values);
Values zeros(DType dtype, size_t size);
Values repeated(DType dtype, double value, size_t size);

Buffer upload(const std::shared_ptr<Device>& device, const Values& values);
Values download(const Buffer& buffer);

struct Launched {
  std::string device;
  std::vector<Opt> opts;
  std::vector<Values> buffers;  // after the launch
};

struct RunOptions {
  std::vector<VarValue> vars = {};
  bool contract = true;
  int walks = 6;                            // random schedules beside none and default
  std::vector<std::vector<Opt>> opts = {};  // in place of all these, if there are any
};

// Runs the kernel on cpu and interpreter with no opts, the default schedule and random ones, on
// copies of `inputs` (which hold every buffer that is no output, in order), and checks each run. A
// failure names device and opts. Outputs start as zeros, or as `in_place` holds them.
void for_all_schedules(const Ast& ast, const std::vector<Values>& inputs,
                       const std::function<void(const Launched& run)>& check,
                       const RunOptions& options = {});

// The outputs must be these: bit for bit, but that any NaN is right for a NaN.
void expect_outputs(const Ast& ast, const std::vector<Values>& inputs,
                    const std::vector<Values>& outputs, const RunOptions& options = {});
// Within `tolerance` of these, absolute.
void expect_near(const Ast& ast, const std::vector<Values>& inputs,
                 const std::vector<Values>& outputs, double tolerance,
                 const RunOptions& options = {});

}  // namespace quern::test
