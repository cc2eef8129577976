// What the builders of kernels refuse, and how deep a kernel may be.

#include "quern/codegen/ast/ast.h"

#include <functional>
#include <pthread.h>

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/ast/text.h"
#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/eval.h"
#include "tests/expect_error.h"
#include "tests/sanitizers.h"

namespace quern {
namespace {

constexpr Scalar kFloat = Scalar::Float32;

template <class F>
void expect_refused(F&& f, std::string_view part) {
  test::expect_error<AstError>(f, part);
}

class Builder : public testing::Test {
 protected:
  Builder() {
    b_.add_buffer({kFloat, 8, 0, 0, false, false});
    b_.add_buffer({kFloat, 8, 0, 0, false, false});
    x_ = load({8});
  }

  NodeId load(Shape shape) { return b_.load(1, kFloat, ShapeTracker::make(std::move(shape))); }
  NodeId constant(Shape shape, DType dtype) {
    Shape zeros(shape.size(), 0);
    return b_.constant(dtype, 0, ShapeTracker({View::make(std::move(shape), zeros, 0)}));
  }
  NodeId alu(Op op, std::initializer_list<NodeId> src) {
    return b_.alu(op, std::span(src.begin(), src.size()));
  }
  NodeId sum(NodeId src, std::initializer_list<int64_t> axes) {
    return b_.reduce(Op::SUM, src, std::span(axes.begin(), axes.size()));
  }
  NodeId store(uint32_t buffer, Shape shape, NodeId src) {
    return b_.store(buffer, kFloat, ShapeTracker::make(std::move(shape)), src);
  }
  void expect_buffer_refused(BufferParam buffer, std::string_view part) {
    expect_refused([&] { b_.add_buffer(buffer); }, part);
  }

  AstBuilder b_;
  NodeId x_;
};

TEST_F(Builder, BuffersAndVariables) {
  expect_buffer_refused({kFloat, -1, 0, 0, false, false}, "size -1 is negative");
  expect_buffer_refused({kFloat, INT64_MAX, 0, 0, false, false}, "more than 2^63 bytes");
  expect_buffer_refused({Scalar::Int32, 16, 2, 2, false, false},
                        "an image holds float16 or float32");
  expect_buffer_refused({kFloat, 15, 2, 2, false, false}, "has 16 elements, not 15");
  expect_refused([&] { b_.add_var({"", 0, 1}); }, "no name");
  expect_refused([&] { b_.add_var({"n", 2, 1}); }, "no range of int32");
  expect_refused([&] { b_.add_var({"n", 0, int64_t{1} << 31}); }, "no range of int32");
  b_.add_var({"n", 0, 1});
  expect_refused([&] { b_.add_var({"n", 0, 1}); }, "declared twice");
}

TEST_F(Builder, Accesses) {
  expect_refused([&] { b_.load(7, kFloat, ShapeTracker::make({8})); },
                 "LOAD of buffer 7; the kernel has 2");
  expect_refused([&] { b_.load(1, Scalar::Int32, ShapeTracker::make({8})); },
                 "holds float32; use a CAST");
  expect_refused([&] { load({9}); }, "the buffer has 8");
  expect_refused([&] { load({INT64_MAX, 3}); }, "overflow");
  expect_refused(
      [&] {
        b_.load(1, kFloat, ShapeTracker({View::make({8, 8}, {INT64_MAX / 2, 1}, 0)}));
      },
      "overflow");
  expect_refused([&] { b_.load(1, kFloat, ShapeTracker({View::make({2}, {1}, -1)})); }, "-1");
  EXPECT_NO_THROW(b_.load(1, kFloat, ShapeTracker({View::make({2}, {1}, -1, {{1, 2}})})));
  expect_refused([&] { b_.load(1, kFloat, ShapeTracker::make(Shape(33, 1))); },
                 "33 axes; at most 32");
}

TEST_F(Builder, Ops) {
  NodeId i = constant({8}, Scalar::Int32), condition = constant({8}, Scalar::Bool);
  expect_refused([&] { alu(Op::ADD, {x_, i}); }, "source 0 has dtype float32, expected int32");
  expect_refused([&] { alu(Op::ADD, {x_, load({4})}); }, "[8], the last one [4]; they must agree");
  expect_refused([&] { alu(Op::ADD, {x_}); }, "ADD of 1 sources");
  expect_refused([&] { alu(Op::ADD, {x_, 99}); }, "source 99 does not exist");
  expect_refused([&] { alu(Op::WHERE, {x_, x_, x_}); }, "expected bool");
  expect_refused([&] { alu(Op::SQRT, {i}); }, "expected a float type");
  expect_refused([&] { alu(Op::XOR, {x_, x_}); }, "XOR of float32");
  expect_refused([&] { alu(Op::LOAD, {x_}); }, "no op of a kernel");
  expect_refused([&] { alu(Op::SHL, {i, i}); }, "no op of a kernel");
  expect_refused([&] { b_.cast(Op::BITCAST, x_, Scalar::Int16); }, "the sizes differ");
  expect_refused([&] { b_.cast(Op::BITCAST, condition, Scalar::Int8); }, "no defined bits");
  expect_refused([&] { b_.cast(Op::CAST, x_, Scalar::Index); }, "no element type");
  expect_refused([&] { b_.cast(Op::CAST, x_, DType(kFloat, 4)); }, "no element type");
}

TEST_F(Builder, ReducesAndExpand) {
  NodeId m = load({2, 4});
  expect_refused([&] { sum(m, {2}); }, "axis 2 is out of range");
  expect_refused([&] { sum(m, {-1}); }, "axis -1 is out of range");
  expect_refused([&] { sum(m, {1, 0}); }, "must ascend");
  expect_refused([&] { sum(m, {1, 1}); }, "must ascend");
  NodeId s = sum(m, {1});
  expect_refused([&] { b_.expand(m, {2, 8}); }, "only axes of size 1 can be repeated");
  expect_refused([&] { b_.expand(s, {2, 4, 1}); }, "EXPAND");
  expect_refused([&] { b_.expand(s, {2, -4}); }, "negative");
}

TEST_F(Builder, StoresAndOutputs) {
  expect_refused([&] { store(0, {4}, x_); }, "the view has shape [4], the value [8]");
  // Two positions of one element.
  expect_refused([&] { b_.store(0, kFloat, ShapeTracker({View::make({8}, {0}, 0)}), x_); }, "");
  NodeId first = store(0, {8}, x_);
  expect_refused([&] { alu(Op::NEG, {first}); }, "a STORE, which has no value");
  auto finish = [&](std::vector<NodeId> outputs) {
    return [this, outputs] { b_.finish(outputs); };
  };
  expect_refused(finish({}), "no outputs");
  expect_refused(finish({x_}), "is no STORE");
  NodeId second = store(1, {8}, x_);
  expect_refused(finish({second, first}), "output i must store to buffer i");
  expect_refused(finish({first}), "is a STORE but not an output");
}

TEST_F(Builder, AFailedCallChangesNothing) {
  size_t size = b_.size();
  EXPECT_THROW(alu(Op::ADD, {x_, 99}), AstError);
  EXPECT_THROW(load({9}), AstError);
  EXPECT_EQ(b_.size(), size);
  NodeId out = store(0, {8}, alu(Op::NEG, {x_}));
  EXPECT_EQ(b_.finish(std::span(&out, 1)).nodes().size(), 3u);
}

TEST_F(Builder, EqualNodesAreOne) {
  EXPECT_EQ(load({8}), x_);
  EXPECT_EQ(alu(Op::NEG, {x_}), alu(Op::NEG, {x_}));
}

TEST_F(Builder, NodesAreLimited) {
  auto grow = [&] {
    NodeId x = x_;
    for (int i = 0; i < 100'000; ++i) x = alu(Op::NEG, {x});
  };
  expect_refused(grow, "more than 100000 nodes");
}

// Read at another place than it is written, a buffer's content would depend on the order.
TEST(Ast, InPlaceReadsElsewhereAreRefused) {
  KernelBuilder k;
  Array x = k.input(kFloat, {8});
  k.assign(x, x + x.stride({-1}));
  Ast ast = k.build();
  expect_refused([&] { generate(ast, {}, generic_cpu_target()); }, "");
}

TEST(Ast, FluentBuilder) {
  KernelBuilder k, other;
  Array x = k.input(kFloat, {4, 8}), i = k.input(Scalar::Int32, {4, 8});
  expect_refused([&] { x + i; }, "dtype");
  expect_refused([&] { x + k.input(kFloat, {4}); }, "2 and 1 axes");
  expect_refused([&] { x + k.input(kFloat, {4, 7}); }, "dimension 1 from 7 to 8");
  expect_refused([&] { x + other.input(kFloat, {4, 8}); }, "different kernels");
  expect_refused([&] { i + 0.5; }, "0.5 is no value of int32");
  expect_refused([&] { i + 1e30; }, "is no value of int32");
  expect_refused([&] { x.reshape({5, 7}); }, "");
  expect_refused([&] { x.sum(1).reshape({4}); }, "depends on a SUM");
  expect_refused([&] { x.permute({0}); }, "");
  expect_refused([&] { x.shrink({{0, 9}, {0, 8}}); }, "");
  expect_refused([&] { x.stride({0, 1}); }, "");
  expect_refused([&] { k.build(); }, "no outputs");
  expect_refused([&] { k.assign(x + 1.0, x); }, "no input");
}

TEST(Ast, PrintsForReaders) {
  KernelBuilder k;
  SInt n = k.variable("n", 1, 4);
  Array x = k.input(kFloat, {n, 8});
  k.output((x * 2.0).sum(1));
  EXPECT_EQ(print_ast(k.build()),
            "variable n: 1 .. 4\n"
            "buffer 0: float32[4] written\n"
            "buffer 1: float32[32]\n"
            "%0 = LOAD float32 [n,8] buffer 1 V([n,8]; [8,1]; 0; -)\n"
            "%1 = CONST float32 [n,8] 2.0 V([n,8]; [0,0]; 0; -)\n"
            "%2 = MUL float32 [n,8] (%0, %1)\n"
            "%3 = SUM float32 [n,1] (%2) axes 1\n"
            "%4 = STORE float32 [n,1] (%3) buffer 0 V([n,1]; [1,0]; 0; -)\n");
}

// Runs on a thread that has little stack, as an audio or a robot's thread may.
void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  size_t size = test::kSanitized ? 2 << 20 : 256 << 10;
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size), 0);
  pthread_t thread;
  auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

constexpr int kDeep = 20'000;

TEST(DeepKernels, ChainsAndDiamonds) {
  on_small_stack([] {
    KernelBuilder negations;
    Array x = negations.input(kFloat, {4});
    for (int i = 0; i < kDeep; ++i) x = -x;
    negations.output(x);
    Ast ast = negations.build();
    EXPECT_FALSE(print_ast(ast).empty());
    EXPECT_EQ(generate(ast, {}, generic_cpu_target()).source.find("fneg"), std::string::npos)
        << "an even number of negations is none";

    KernelBuilder conditions;
    Array y = conditions.input(Scalar::Int32, {4});
    for (int i = 0; i < kDeep; ++i) y = where(less(y, static_cast<double>(i)), y + 1.0, y);
    conditions.output(y);
    EXPECT_FALSE(generate(conditions.build(), {}, generic_cpu_target()).source.empty());

    KernelBuilder doubles;
    Array z = doubles.input(kFloat, {4});
    for (int i = 0; i < 40; ++i) z = z + z;
    doubles.output(z);
    Ast diamond = doubles.build();
    EXPECT_LT(diamond.nodes().size(), 50u);
    EXPECT_LT(generate(diamond, {}, generic_cpu_target()).source.size(), 20'000u);
  });
}

}  // namespace
}  // namespace quern
