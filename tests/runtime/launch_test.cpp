// Buffers, and what a launch checks before anything runs.

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/kernel.h"
#include "tests/expect_error.h"

namespace quern {
namespace {

Ast add_ast(int64_t n = 8) {
  KernelBuilder k;
  Array a = k.input(Scalar::Float32, {n}), b = k.input(Scalar::Float32, {n});
  k.output(a + b);
  return k.build();
}

Ast symbolic_ast() {
  KernelBuilder k;
  SInt n = k.variable("n", 1, 8);
  k.output(k.input(Scalar::Float32, {n}) * 2.0);
  return k.build();
}

using test::expect_error;

class Launch : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Device> device_ = open_device(GetParam());
};

INSTANTIATE_TEST_SUITE_P(On, Launch, testing::Values("cpu", "interpreter"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Launch, ComputesFromSlicesAndWrappedMemory) {
  Kernel kernel = compile(add_ast(), device_);
  Buffer all = Buffer::copy_of(device_, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  std::array<float, 8> data{10, 10, 10, 10, 20, 20, 20, 20};
  Buffer wrapped = Buffer::wrap(device_, std::span(data));
  Buffer out(device_, Scalar::Float32, 8);
  kernel.launch({out, all.slice(3, 8), wrapped});
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{13, 14, 15, 16, 27, 28, 29, 30}));
}

TEST_P(Launch, WritesToWrappedMemoryInPlace) {
  Kernel kernel = compile(add_ast(), device_);
  std::array<float, 8> data{};
  Buffer out = Buffer::wrap(device_, std::span(data));
  Buffer in = Buffer::copy_of(device_, std::vector<float>(8, 1.5f));
  kernel.launch({out, in, in});
  EXPECT_EQ(data, (std::array<float, 8>{3, 3, 3, 3, 3, 3, 3, 3}));
}

TEST_P(Launch, LargerBuffersWillDo) {
  Kernel kernel = compile(add_ast(), device_);
  Buffer in = Buffer::copy_of(device_, std::vector<float>(20, 1));
  Buffer out = Buffer::copy_of(device_, std::vector<float>(20, 7));
  kernel.launch({out, in, in});
  EXPECT_EQ(out.slice(7, 2).to_vector<float>(), (std::vector<float>{2, 7}));
}

TEST_P(Launch, UpdatesInPlace) {
  KernelBuilder k;
  Array x = k.input(Scalar::Int32, {100}), y = k.input(Scalar::Int32, {100});
  k.assign(x, x * 3.0 + y);
  Kernel kernel = compile(k.build(), device_);
  Buffer a = Buffer::copy_of(device_, std::vector<int32_t>(100, 5));
  Buffer b = Buffer::copy_of(device_, std::vector<int32_t>(100, 2));
  kernel.launch({a, b});
  EXPECT_EQ(a.to_vector<int32_t>(), std::vector<int32_t>(100, 17));
}

TEST_P(Launch, RefusesWrongBuffers) {
  Kernel kernel = compile(add_ast(), device_);
  Buffer good = Buffer::copy_of(device_, std::vector<float>(8, 1));
  Buffer out = Buffer::copy_of(device_, std::vector<float>(8, 7));
  auto launch = [&](std::initializer_list<Buffer> buffers) {
    return [&kernel, list = std::vector<Buffer>(buffers)] { kernel.launch(list); };
  };
  expect_error<ArgumentError>(launch({out, good}), "expected 3 buffers, found 2");
  expect_error<ArgumentError>(launch({out, good, good, good}), "expected 3 buffers, found 4");
  expect_error<ArgumentError>(launch({out, good, Buffer()}), "buffer 2: no buffer");
  expect_error<ArgumentError>(launch({out, good, good.slice(0, 7)}),
                              "expected float32[8] or more elements, found float32[7]");
  expect_error<ArgumentError>(launch({out, good, Buffer(device_, Scalar::Int32, 8)}),
                              "found int32[8]");
  std::shared_ptr<Device> other = open_device(GetParam());
  expect_error<ArgumentError>(launch({out, good, Buffer(other, Scalar::Float32, 8)}),
                              "another device");
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(8, 7)) << "something ran";
}

TEST_P(Launch, RefusesOutputsThatShareMemory) {
  Kernel kernel = compile(add_ast(), device_);
  Buffer memory = Buffer::copy_of(device_, std::vector<float>(32, 1));
  Buffer other = Buffer::copy_of(device_, std::vector<float>(8, 1));
  auto launch = [&](int64_t out, int64_t in) {
    return [&, out, in] { kernel.launch({memory.slice(out, 8), memory.slice(in, 8), other}); };
  };
  expect_error<ArgumentError>(launch(0, 0), "buffer 0 is written and shares memory with buffer 1");
  expect_error<ArgumentError>(launch(0, 7), "shares memory");
  expect_error<ArgumentError>(launch(10, 3), "shares memory");
  EXPECT_NO_THROW(launch(0, 8)());
  EXPECT_NO_THROW(launch(8, 0)());

  std::array<float, 16> data{};
  Buffer a = Buffer::wrap(device_, std::span(data)),
         b = Buffer::wrap(device_, std::span(data).subspan(4, 8));
  expect_error<ArgumentError>([&] { kernel.launch({a, b, other}); }, "shares memory");
}

TEST_P(Launch, RefusesReadOnlyOutputs) {
  Kernel kernel = compile(add_ast(), device_);
  const std::array<float, 8> data{1, 2, 3, 4, 5, 6, 7, 8};
  Buffer constant = Buffer::wrap(device_, Scalar::Float32, data.data(), 8);
  Buffer out(device_, Scalar::Float32, 8);
  EXPECT_NO_THROW(kernel.launch({out, constant, constant}));
  expect_error<ArgumentError>([&] { kernel.launch({constant, out, out}); }, "read-only");
  expect_error<ArgumentError>([&] { constant.slice(0, 4).copy_from(std::span(data).first(4)); },
                              "read-only");
}

TEST_P(Launch, RefusesWrongVariables) {
  Kernel kernel = compile(symbolic_ast(), device_);
  Buffer in = Buffer::copy_of(device_, std::vector<float>(8, 1)),
         out = Buffer::copy_of(device_, std::vector<float>(8, 7));
  auto launch = [&](std::initializer_list<VarValue> vars) {
    return [&kernel, &in, &out, list = std::vector<VarValue>(vars)] {
      kernel.launch(std::array{out, in}, list);
    };
  };
  expect_error<ArgumentError>(launch({}), "variable 'n' has no value; expected one from 1 to 8");
  expect_error<ArgumentError>(launch({{"n", 0}}),
                              "variable 'n' is 0; expected a value from 1 to 8");
  expect_error<ArgumentError>(launch({{"n", 9}}), "variable 'n' is 9");
  expect_error<ArgumentError>(launch({{"n", 3}, {"n", 3}}), "given twice");
  expect_error<ArgumentError>(launch({{"n", 3}, {"m", 3}}), "no variable 'm'");
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(8, 7)) << "something ran";
  launch({{"n", 3}})();
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{2, 2, 2, 7, 7, 7, 7, 7}));
}

TEST_P(Launch, BuffersRefuseWhatDoesNotFit) {
  Buffer buffer(device_, Scalar::Float32, 8);
  std::array<float, 7> seven{};
  expect_error<ArgumentError>([&] { buffer.to_vector<int32_t>(); },
                              "holds no elements of type int32");
  expect_error<ArgumentError>([&] { buffer.slice(4, 5); }, "leaves float32[8]");
  expect_error<ArgumentError>([&] { buffer.slice(-1, 5); }, "leaves float32[8]");
  expect_error<ArgumentError>([&] { buffer.copy_from(seven); }, "28 bytes");
  expect_error<ArgumentError>([&] { Buffer(device_, Scalar::Float32, -1); }, "-1 elements");
  expect_error<ArgumentError>([&] { Buffer(device_, Scalar::Float64, INT64_MAX / 4); }, "elements");
  expect_error<DeviceError>([&] { Buffer(device_, Scalar::Float64, int64_t{1} << 58); }, "bytes");
  alignas(4) std::array<std::byte, 8> bytes{};
  expect_error<ArgumentError>([&] { Buffer::wrap(device_, Scalar::Float32, bytes.data() + 1, 1); },
                              "aligned to 4 bytes");
}

TEST_P(Launch, FromManyThreads) {
  constexpr int kThreads = 8, kRounds = 20;
  Kernel shared = compile(add_ast(1000), device_);
  std::vector<std::thread> threads;
  std::array<int, kThreads> wrong{};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Buffer a = Buffer::copy_of(device_, std::vector<float>(1000, static_cast<float>(t)));
      Buffer out(device_, Scalar::Float32, 1000);
      for (int round = 0; round < kRounds; ++round) {
        // Each compiles sizes of its own and one that all have.
        int64_t size = round % 2 == 0 ? 16 : 17 + t * kRounds + round;
        Kernel own = compile(add_ast(size), device_);
        own.launch({out, a, a});
        wrong[static_cast<size_t>(t)] +=
            out.slice(size - 1, 1).to_vector<float>()[0] != 2.0f * static_cast<float>(t);
        shared.launch({out, a, a});
        for (float value : out.to_vector<float>())
          wrong[static_cast<size_t>(t)] += value != 2.0f * static_cast<float>(t);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) EXPECT_EQ(count, 0);
}

TEST_P(Launch, KernelsOutliveWhatTheyWereMadeFrom) {
  Buffer in = Buffer::copy_of(device_, std::vector<float>(8, 2)), out(device_, Scalar::Float32, 8);
  Kernel kernel = [&] {
    Ast ast = add_ast();
    Kernel first = compile(ast, device_);
    return first;
  }();
  device_.reset();
  kernel.launch({out, in, in});
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(8, 4));
}

TEST_P(Launch, ManyArguments) {
  constexpr int kInputs = 600;
  KernelBuilder k;
  std::vector<Array> inputs;
  for (int i = 0; i < kInputs; ++i) inputs.push_back(k.input(Scalar::Int32, {3}));
  Array sum = inputs[0];
  for (int i = 1; i < kInputs; ++i) sum = sum + inputs[static_cast<size_t>(i)];
  k.output(sum);
  Kernel kernel = compile(k.build(), device_);
  std::vector<Buffer> buffers = {Buffer(device_, Scalar::Int32, 3)};
  for (int i = 0; i < kInputs; ++i)
    buffers.push_back(Buffer::copy_of(device_, std::vector<int32_t>{i, 1, -i}));
  kernel.launch(buffers);
  int32_t total = kInputs * (kInputs - 1) / 2;
  EXPECT_EQ(buffers[0].to_vector<int32_t>(), (std::vector<int32_t>{total, kInputs, -total}));
}

TEST(Devices, UnknownNamesListTheKnown) {
  expect_error<ArgumentError>([] { open_device("tpu"); }, "known are cpu, interpreter");
  expect_error<ArgumentError>([] { parse_target("tpu"); }, "expected cpu");
}

TEST(Devices, AreListed) {
  std::vector<DeviceInfo> list = list_devices();
  ASSERT_EQ(list.size(), 3u);
  for (const DeviceInfo& d : list) EXPECT_NE(d.available, d.description.empty());
}

}  // namespace
}  // namespace quern
