#include "tests/kernel_check.h"

#include <cmath>

#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/eval.h"
#include "quern/runtime/devices.h"

namespace quern::test {
namespace {

std::vector<std::vector<Opt>> schedules(const Ast& ast, const Target& target,
                                        const RunOptions& options) {
  if (!options.opts.empty()) return options.opts;
  std::vector<std::vector<Opt>> list = {{}, default_opts(ast, target)};
  for (int i = 0; i < options.walks; ++i)
    list.push_back(random_opts(ast, target, static_cast<uint64_t>(i)));
  return list;
}

Launched run(const Ast& ast, const std::vector<Values>& inputs,
             const std::shared_ptr<Device>& device, const std::vector<Opt>& opts,
             const RunOptions& options) {
  Kernel kernel = compile(ast, device, {.opts = opts, .contract = options.contract});
  std::vector<Buffer> buffers;
  size_t outputs = ast.outputs().size(), given = inputs.size();
  // Either all buffers are given, or those that are no outputs.
  size_t skipped = given == ast.buffers().size() ? 0 : outputs;
  for (size_t i = 0; i < ast.buffers().size(); ++i) {
    const BufferParam& param = ast.buffers()[i];
    buffers.push_back(upload(device, i < skipped
                                         ? zeros(param.dtype, static_cast<size_t>(param.size))
                                         : inputs.at(i - skipped)));
  }
  kernel.launch(buffers, options.vars);
  Launched result{device->name(), opts, {}};
  for (const Buffer& buffer : buffers) result.buffers.push_back(download(buffer));
  return result;
}

bool same(DType dtype, int64_t a, int64_t b) {
  return a == b || (dtype.is_float() && std::isnan(bits_float(a)) && std::isnan(bits_float(b)));
}

std::string text(DType dtype, int64_t lane) {
  return dtype.is_float() ? fmt::format("{}", bits_float(lane)) : fmt::format("{}", lane);
}

void compare_outputs(const Launched& run, const std::vector<Values>& outputs,
                     const std::function<bool(DType, int64_t, int64_t)>& right) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Values& expected = outputs[i];
    ASSERT_GE(run.buffers[i].size(), expected.size());
    for (size_t k = 0; k < expected.size(); ++k)
      ASSERT_TRUE(right(expected.dtype, run.buffers[i].lanes[k], expected.lanes[k]))
          << "output " << i << ", element " << k << ": "
          << text(expected.dtype, run.buffers[i].lanes[k]) << " instead of "
          << text(expected.dtype, expected.lanes[k]);
  }
}

}  // namespace

double Values::real(size_t i) const {
  return dtype.is_float() ? bits_float(lanes[i]) : static_cast<double>(lanes[i]);
}

Values reals(DType dtype, const std::vector<double>& values) {
  Values result{dtype, {}};
  for (double value : values) result.lanes.push_back(float_bits(round_to(dtype, value)));
  return result;
}

Values ints(DType dtype, const std::vector<int64_t>& values) {
  Values result{dtype, {}};
  for (int64_t value : values) result.lanes.push_back(wrap_to(dtype, value));
  return result;
}

Values zeros(DType dtype, size_t size) { return {dtype, std::vector<int64_t>(size)}; }

Values repeated(DType dtype, double value, size_t size) {
  return dtype.is_float() ? reals(dtype, std::vector<double>(size, value))
                          : ints(dtype, std::vector<int64_t>(size, static_cast<int64_t>(value)));
}

Buffer upload(const std::shared_ptr<Device>& device, const Values& values) {
  Buffer buffer(device, values.dtype, static_cast<int64_t>(values.size()));
  auto itemsize = static_cast<size_t>(values.dtype.itemsize());
  std::vector<std::byte> bytes(buffer.bytes());
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = to_storage(values.dtype, values.lanes[i]);
    std::memcpy(&bytes[i * itemsize], &bits, itemsize);
  }
  buffer.write(bytes);
  return buffer;
}

Values download(const Buffer& buffer) {
  Values values = zeros(buffer.dtype(), static_cast<size_t>(buffer.size()));
  auto itemsize = static_cast<size_t>(values.dtype.itemsize());
  std::vector<std::byte> bytes(buffer.bytes());
  buffer.read(bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes[i * itemsize], itemsize);
    values.lanes[i] = from_storage(values.dtype, bits);
  }
  return values;
}

void for_all_schedules(const Ast& ast, const std::vector<Values>& inputs,
                       const std::function<void(const Launched& run)>& check,
                       const RunOptions& options) {
  for (const char* name : {"cpu", "interpreter", "interpreter:gpu"}) {
    std::shared_ptr<Device> device = open_device(name);
    for (const std::vector<Opt>& opts : schedules(ast, device->target(), options)) {
      SCOPED_TRACE(fmt::format("on {} with opts [{}]", name, to_string(opts)));
      try {
        check(run(ast, inputs, device, opts, options));
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

void expect_outputs(const Ast& ast, const std::vector<Values>& inputs,
                    const std::vector<Values>& outputs, const RunOptions& options) {
  for_all_schedules(
      ast, inputs, [&](const Launched& run) { compare_outputs(run, outputs, same); }, options);
}

void expect_near(const Ast& ast, const std::vector<Values>& inputs,
                 const std::vector<Values>& outputs, double tolerance, const RunOptions& options) {
  auto close = [&](DType dtype, int64_t a, int64_t b) {
    return same(dtype, a, b) ||
           (dtype.is_float() && std::fabs(bits_float(a) - bits_float(b)) <= tolerance);
  };
  for_all_schedules(
      ast, inputs, [&](const Launched& run) { compare_outputs(run, outputs, close); }, options);
}

}  // namespace quern::test
