#include "tests/codegen/ir_kernels.h"

#include <map>
#include <string>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/uop/eval.h"

namespace quern::test {
namespace {

constexpr Scalar kFloat = Scalar::Float32;

Ast add() {
  KernelBuilder k;
  Array a = k.input(kFloat, {6, 8}), b = k.input(kFloat, {6, 8});
  k.output(a + b);
  return k.build();
}

Ast row_sum() {
  KernelBuilder k;
  k.output(k.input(kFloat, {4, 12}).sum(1));
  return k.build();
}

Ast matmul() {
  KernelBuilder k;
  Array a = k.input(kFloat, {8, 1, 16});
  Array b = k.input(kFloat, {16, 8}).permute({1, 0}).reshape({1, 8, 16});
  k.output((a * b).sum(2));
  return k.build();
}

Ast softmax() {
  KernelBuilder k;
  Array x = k.input(kFloat, {4, 6});
  Array e = exp2(x - x.max(1));
  k.output(e / e.sum(1));
  return k.build();
}

Ast pad() {
  KernelBuilder k;
  k.output(-k.input(kFloat, {6}).pad({{1, 3}}));
  return k.build();
}

Ast masked_store() {
  AstBuilder b;
  b.add_buffer({kFloat, 6, 0, 0, false, false});
  b.add_buffer({kFloat, 8, 0, 0, false, false});
  NodeId x = b.load(1, kFloat, ShapeTracker::make({8}));
  ShapeTracker out({View::make({8}, {1}, -1, {{1, 7}})});
  NodeId store = b.store(0, kFloat, out, b.alu(Op::NEG, std::span(&x, 1)));
  return b.finish(std::span(&store, 1));
}

// 0 .. 5, by summing ones under a triangular mask.
Ast arange() {
  KernelBuilder k;
  Array ones = k.constant(Scalar::Int32, 1, {7, 6}).pad({{0, 0}, {5, 0}});
  Array rows = ones.reshape({77}).shrink({{0, 72}}).reshape({6, 12}).shrink({{0, 6}, {0, 6}});
  k.output(rows.sum(1) - 1.0);
  return k.build();
}

// data[idx[i]] as a sum over all j of what equals idx[i].
Ast gather() {
  KernelBuilder k;
  Array index = k.input(Scalar::Int32, {4, 1}), data = k.input(kFloat, {1, 10});
  Array ones = k.constant(Scalar::Int32, 1, {11, 10}).pad({{0, 0}, {9, 0}});
  Array rows = ones.reshape({209}).shrink({{0, 200}}).reshape({10, 20}).shrink({{0, 10}, {0, 10}});
  Array j = (rows.sum(1) - 1.0).permute({1, 0});
  k.output(where(equal(index, j), data, 0.0).sum(1));
  return k.build();
}

Ast flip() {
  KernelBuilder k;
  k.output(-k.input(kFloat, {8}).stride({-1}));
  return k.build();
}

Ast symbolic() {
  KernelBuilder k;
  SInt n = k.variable("n", 1, 8);
  k.output(k.input(kFloat, {n, 4}).sum(0));
  return k.build();
}

Ast half_sum() {
  KernelBuilder k;
  k.output(k.input(Scalar::Float16, {4, 8}).sum(1));
  return k.build();
}

Ast bfloat16_add() {
  KernelBuilder k;
  Array a = k.input(Scalar::BFloat16, {8}), b = k.input(Scalar::BFloat16, {8});
  k.output(a + b);
  return k.build();
}

Ast divide() {
  KernelBuilder k;
  Array x = k.input(Scalar::Int32, {8});
  k.output(x / 3.0);
  k.output(x % 8.0);
  return k.build();
}

Ast exponential() {
  KernelBuilder k;
  k.output(exp2(k.input(kFloat, {4})));
  return k.build();
}

Ast outputs() {
  KernelBuilder k;
  Array x = k.input(kFloat, {4, 8});
  k.output(x.sum(1));
  k.output(x.max(1));
  return k.build();
}

Ast in_place() {
  KernelBuilder k;
  Array x = k.input(kFloat, {8});
  k.assign(x, x * 2.0);
  return k.build();
}

Ast image() {
  AstBuilder b;
  for (int i = 0; i < 2; ++i) b.add_buffer({Scalar::Float16, 16, 2, 2, false, false});
  NodeId x = b.load(1, kFloat, ShapeTracker::make({16}));
  NodeId store = b.store(0, kFloat, ShapeTracker::make({16}), b.alu(Op::NEG, std::span(&x, 1)));
  return b.finish(std::span(&store, 1));
}

Ast logic() {
  KernelBuilder k;
  Array a = k.input(Scalar::Bool, {8}), b = k.input(Scalar::Bool, {8});
  k.output(where(a ^ b, k.constant(Scalar::UInt8, 1, {8}), 2.0));
  return k.build();
}

Ast large() {
  KernelBuilder k;
  k.output(k.input(Scalar::Int8, {(int64_t{1} << 31) + 64}) + 1.0);
  return k.build();
}

Ast empty() {
  KernelBuilder k;
  k.output(k.input(kFloat, {3, 0, 5}) + 1.0);
  return k.build();
}

Ast empty_sum() {
  KernelBuilder k;
  k.output(k.input(kFloat, {3, 0}).sum(1));
  return k.build();
}

Ast transpose() {
  KernelBuilder k;
  k.output(k.input(kFloat, {8, 12}).permute({1, 0}));
  return k.build();
}

const std::map<std::string, Ast (*)(), std::less<>> kKernels = {
    {"add", add},
    {"row_sum", row_sum},
    {"matmul", matmul},
    {"softmax", softmax},
    {"pad", pad},
    {"masked_store", masked_store},
    {"arange", arange},
    {"gather", gather},
    {"flip", flip},
    {"symbolic", symbolic},
    {"half_sum", half_sum},
    {"bfloat16_add", bfloat16_add},
    {"divide", divide},
    {"exponential", exponential},
    {"outputs", outputs},
    {"in_place", in_place},
    {"image", image},
    {"logic", logic},
    {"large", large},
    {"empty", empty},
    {"empty_sum", empty_sum},
    {"transpose", transpose},
};

}  // namespace

Ast ir_kernel(std::string_view name) { return kKernels.at(std::string(name))(); }

}  // namespace quern::test
