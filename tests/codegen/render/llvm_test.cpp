#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "quern/codegen/error.h"
#include "quern/codegen/render/llvm/render_llvm.h"
#include "tests/devices/cpu_kernel.h"

namespace quern {
namespace {

using test::Kernel;

const DType kF32{Scalar::Float32};
const DType kI32{Scalar::Int32};

Target small_target() {
  Target target;
  target.arch = "x86-64-v4";
  target.features = "+avx512f";
  return target;
}

std::string render(const Kernel& k) { return render_llvm("kernel", k.list(), small_target()); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const kEnd = R"(
attributes #0 = { nounwind "target-cpu"="x86-64-v4" "target-features"="+avx512f" "prefer-vector-width"="512" "no-trapping-math"="true" "denormal-fp-math"="ieee,ieee" "probe-stack"="inline-asm" }
)";

TEST(RenderLlvm, MaskedVectorsInTasks) {
  DType v(Scalar::Float32, 4), vi(Scalar::Int32, 4);
  Kernel k;
  UOp out = k.output(kF32, 6), in = k.input(kF32, 6);
  UOp at = k(Op::MUL, k.task(2), k.number(4));
  UOp lanes = k.add(Op::VCONST, vi, {}, 0, {0, 1, 2, 3});
  UOp gate = k(Op::CMPLT, k(Op::ADD, k.add(Op::VECTORIZE, vi, {at}), lanes), k.constant(vi, 6));
  UOp x = k.load(in, at, gate, k.real(v, 0));
  k.store(out, at, k(Op::ADD, x, k.real(v, 1)), gate);
  EXPECT_EQ(
      render(k),
      std::string(
          R"(define void @kernel(ptr noalias %bufs, ptr noalias %vars, i64 %begin, i64 %end) #0 {
entry:
  %buf0 = load ptr, ptr %bufs, align 8
  %0 = getelementptr inbounds ptr, ptr %bufs, i64 1
  %buf1 = load ptr, ptr %0, align 8
  br label %loop0
loop0:
  %1 = phi i64 [ %begin, %entry ], [ %14, %loop0 ]
  %2 = trunc i64 %1 to i32
  %3 = mul nuw nsw i32 %2, 4
  %4 = insertelement <4 x i32> poison, i32 %3, i64 0
  %5 = shufflevector <4 x i32> %4, <4 x i32> poison, <4 x i32> zeroinitializer
  %6 = add nuw nsw <4 x i32> %5, <i32 0, i32 1, i32 2, i32 3>
  %7 = icmp slt <4 x i32> %6, splat (i32 6)
  %8 = zext nneg i32 %3 to i64
  %9 = getelementptr float, ptr %buf1, i64 %8
  %10 = call <4 x float> @llvm.masked.load(ptr %9, i32 4, <4 x i1> %7, <4 x float> zeroinitializer), !noalias !4
  %11 = fadd <4 x float> %10, splat (float 0x3FF0000000000000)
  %12 = zext nneg i32 %3 to i64
  %13 = getelementptr float, ptr %buf0, i64 %12
  call void @llvm.masked.store(<4 x float> %11, ptr %13, i32 4, <4 x i1> %7), !alias.scope !2
  %14 = add nuw nsw i64 %1, 1
  %15 = icmp eq i64 %14, %end
  br i1 %15, label %end0, label %loop0
end0:
  ret void
}
)") + kEnd +
          R"(
!0 = distinct !{!0}
!1 = distinct !{!1, !0}
!2 = !{!1}
!4 = !{!1}
)");
}

// A loop that may run zero times around one that does not: the accumulator has a phi in each, and
// one where the outer loop may have been skipped.
TEST(RenderLlvm, AccumulatorsAreHeaderPhis) {
  Kernel k;
  UOp data = k.output(kI32, 9);
  UOp var = k.add(Op::DEFINE_VAR, kI32, {}, 0, {0, 2});
  UOp acc = k.accumulator(k.number(5));
  UOp outer = k.range(var);
  UOp row = k(Op::MUL, outer, k.number(4));
  UOp inner = k.range(4);
  UOp index = k(Op::ADD, row, inner);
  UOp sum = k.assign(acc, k(Op::ADD, acc, k.load(data, index)));
  k.end(inner);
  k.end(outer);
  k.store(data, k.number(8), sum);
  EXPECT_EQ(
      render(k),
      std::string(
          R"(define void @kernel(ptr noalias %bufs, ptr noalias %vars, i64 %begin, i64 %end) #0 {
entry:
  %buf0 = load ptr, ptr %bufs, align 8
  %var0 = load i32, ptr %vars, align 4
  %0 = icmp sgt i32 %var0, 0
  br i1 %0, label %loop0, label %end0
loop0:
  %1 = phi i32 [ 0, %entry ], [ %13, %end1 ]
  %2 = phi i32 [ 5, %entry ], [ %10, %end1 ]
  %3 = mul nuw nsw i32 %1, 4
  br label %loop1
loop1:
  %4 = phi i32 [ 0, %loop0 ], [ %11, %loop1 ]
  %5 = phi i32 [ %2, %loop0 ], [ %10, %loop1 ]
  %6 = add nuw nsw i32 %3, %4
  %7 = zext nneg i32 %6 to i64
  %8 = getelementptr inbounds i32, ptr %buf0, i64 %7
  %9 = load i32, ptr %8, align 4
  %10 = add i32 %5, %9
  %11 = add nuw nsw i32 %4, 1
  %12 = icmp eq i32 %11, 4
  br i1 %12, label %end1, label %loop1
end1:
  %13 = add nuw nsw i32 %1, 1
  %14 = icmp eq i32 %13, %var0
  br i1 %14, label %end0, label %loop0
end0:
  %15 = phi i32 [ 5, %entry ], [ %10, %end1 ]
  %16 = getelementptr inbounds i32, ptr %buf0, i64 8
  store i32 %15, ptr %16, align 4
  ret void
}
)") + kEnd);
}

TEST(RenderLlvm, EqualGraphsGiveEqualText) {
  auto text = [](int garbage) {
    Kernel k;
    for (int i = 0; i < garbage; ++i) k.graph().index(1000 + i);
    UOp out = k.output(kF32, 8);
    UOp i = k.range(8);
    k.store(out, i, k.add(Op::CAST, kF32, {i}));
    k.end(i);
    return render(k);
  };
  EXPECT_EQ(text(0), text(500));
}

std::string stored_constant(DType t, double value) {
  Kernel k;
  UOp out = k.output(t, 1);
  k.store(out, k.number(0), k.real(t, value));
  std::string text = render(k);
  size_t start = text.find("store ") + 6;
  return text.substr(start, text.find(',', start) - start);
}

TEST(RenderLlvm, FloatConstantsAreTheirBits) {
  EXPECT_EQ(stored_constant(Scalar::Float32, 0.1), "float 0x3FB99999A0000000");
  EXPECT_EQ(stored_constant(Scalar::Float32, -0.0), "float 0x8000000000000000");
  EXPECT_EQ(stored_constant(Scalar::Float32, 1e-45), "float 0x36A0000000000000");
  EXPECT_EQ(stored_constant(Scalar::Float64, 0.1), "double 0x3FB999999999999A");
  EXPECT_EQ(stored_constant(Scalar::Float64, -INFINITY), "double 0xFFF0000000000000");
  EXPECT_EQ(stored_constant(Scalar::Float16, 1.0), "half 0xH3C00");
}

// Sums with constants are offsets from one pointer, which later loads of the same scope share.
TEST(RenderLlvm, AddressesShareTheirPointer) {
  Kernel k;
  UOp out = k.output(kF32, 64), in = k.input(kF32, 64);
  UOp r = k.range(7);
  UOp base = k(Op::MUL, r, k.number(8));
  UOp a = k.load(in, k(Op::ADD, base, k.number(1))), b = k.load(in, k(Op::ADD, base, k.number(2)));
  k.store(out, base, k(Op::ADD, a, b));
  k.end(r);
  std::string text = render(k);
  EXPECT_TRUE(contains(text, "%4 = getelementptr inbounds float, ptr %buf1, i64 %3")) << text;
  EXPECT_TRUE(contains(text, "%5 = getelementptr inbounds float, ptr %4, i64 1")) << text;
  EXPECT_TRUE(contains(text, "%7 = getelementptr inbounds float, ptr %4, i64 2")) << text;
  EXPECT_FALSE(contains(text, "add nuw nsw i32 %2, 1\n")) << text;
}

// The pointer of an access that its gate may exclude can lie anywhere.
TEST(RenderLlvm, OnlyUngatedAddressesAreInBounds) {
  Kernel k;
  UOp out = k.output(kF32, 8), in = k.input(kF32, 8);
  UOp r = k.range(9);
  UOp gate = k(Op::CMPLT, r, k.number(8));
  UOp x = k.load(in, k(Op::ADD, r, k.number(-1)), gate, k.real(kF32, 2));
  k.store(out, r, x, gate);
  k.end(r);
  std::string text = render(k);
  EXPECT_TRUE(contains(text, "getelementptr float, ptr %buf1")) << text;
  EXPECT_TRUE(contains(text, ", i64 -1")) << text;
  EXPECT_FALSE(contains(text, "inbounds float")) << text;
  EXPECT_TRUE(contains(text, "select i1 %2, ptr %5, ptr %zeros")) << text;
  EXPECT_TRUE(contains(text, "ptr %sink")) << text;
}

TEST(RenderLlvm, WrapFlagsFollowTheBounds) {
  Kernel k;
  UOp out = k.output(kI32, 4), in = k.input(kI32, 1);
  UOp any = k.load(in, k.number(0));
  UOp r = k.range(4);
  k.store(out, k.number(0), k(Op::ADD, any, r));
  k.store(out, k.number(1), k(Op::SUB, r, k.number(9)));
  k.store(out, k.number(2), k(Op::MUL, r, k(Op::ADD, r, k.number(1))));
  k.end(r);
  std::string text = render(k);
  EXPECT_TRUE(contains(text, " = add i32 %")) << text;
  EXPECT_TRUE(contains(text, " = sub nsw i32 %")) << text;
  EXPECT_TRUE(contains(text, " = mul nuw nsw i32 %")) << text;
}

TEST(RenderLlvm, GuardsOfDivisionsThatNeedNone) {
  Kernel k;
  UOp out = k.output(kI32, 4);
  UOp r = k.range(100);
  k.store(out, k.number(0), k(Op::FLOORDIV, r, k.number(8)));
  k.store(out, k.number(1), k(Op::FLOORMOD, r, k.number(8)));
  k.store(out, k.number(2), k(Op::FLOORDIV, r, k.number(7)));
  k.store(out, k.number(3), k(Op::MOD, k.number(50), k(Op::ADD, r, k.number(1))));
  k.end(r);
  std::string text = render(k);
  EXPECT_TRUE(contains(text, "lshr i32 %0, 3")) << text;
  EXPECT_TRUE(contains(text, "and i32 %0, 7")) << text;
  EXPECT_TRUE(contains(text, "udiv i32 %0, 7")) << text;
  EXPECT_TRUE(contains(text, "urem i32 50, %")) << text;
  EXPECT_FALSE(contains(text, "select")) << text;
}

TEST(RenderLlvm, FusedOnlyWhereTheTargetIs) {
  Kernel k;
  UOp out = k.output(kF32, 1);
  UOp x = k.load(out, k.number(0));
  k.store(out, k.number(0), k.add(Op::MULACC, kF32, {x, x, x}));
  EXPECT_TRUE(contains(render(k), "@llvm.fma("));
  Target target = small_target();
  target.has_fma = false;
  std::string text = render_llvm("kernel", k.list(), target);
  EXPECT_TRUE(contains(text, "fmul float %0, %0\n")) << text;
  EXPECT_FALSE(contains(text, "fast") || contains(text, "contract"));
}

TEST(RenderLlvm, LongBlocksAreSplit) {
  Kernel k;
  UOp out = k.output(kF32, 1);
  UOp x = k.load(out, k.number(0));
  for (int i = 0; i < 2500; ++i) x = k(Op::ADD, x, x);
  k.store(out, k.number(0), x);
  std::string text = render(k);
  EXPECT_TRUE(contains(text, "\npart1:\n")) << text;
  EXPECT_FALSE(contains(text, "\npart2:\n")) << text;
}

TEST(RenderLlvm, WhatEarlierPassesReplaceIsRefused) {
  auto refuses = [](auto&& fill) {
    Kernel k;
    fill(k);
    EXPECT_THROW(render(k), std::logic_error);
  };
  refuses([](Kernel& k) { k.add(Op::EXP2, kF32, {k.load(k.output(kF32, 1), k.number(0))}); });
  refuses([](Kernel& k) {
    UOp half = k.load(k.output(Scalar::Float16, 1), k.number(0));
    k(Op::ADD, half, half);
  });
  refuses([](Kernel& k) {
    k.add(Op::SPECIAL, kI32, {k.number(2)}, 0, {static_cast<int64_t>(SpecialKind::Local)});
  });
  refuses([](Kernel& k) {
    UOp x = k.load(k.output(kI32, 1), k.number(0));
    k(Op::SHL, x, x);
  });
}

TEST(RenderLlvm, ScratchIsLimited) {
  Kernel k;
  k.add(Op::DEFINE_LOCAL, kF32, {}, 0, {1 << 20});
  EXPECT_THROW(render(k), CompileError);
}

}  // namespace
}  // namespace quern
