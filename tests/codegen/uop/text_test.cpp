#include "quern/codegen/uop/text.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/eval.h"
#include "tests/random_ast.h"

namespace quern {
namespace {

void expect_round_trip(const std::string& text) {
  Graph graph;
  EXPECT_EQ(print_uops(parse_uops(text, graph)), text);
}

TEST(UopText, WhatCodegenMakesReadsBack) {
  Target target = generic_cpu_target();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    test::RandomKernel kernel = test::random_kernel(seed);
    GenerateHooks hooks;
    hooks.after_pass = [](std::string_view, UOp sink) {
      std::string text = print_graph(sink);
      Graph graph;
      EXPECT_EQ(print_graph(parse_graph(text, graph)), text);
    };
    hooks.after_linearize = [](const LinearUOps& uops) { expect_round_trip(print_uops(uops)); };
    generate(kernel.ast, default_opts(kernel.ast, target), target, hooks);
  }
}

// The constant of `dtype` with these lane bits, there and back.
void expect_constant(DType dtype, int64_t bits, std::string_view printed) {
  Graph graph;
  LinearUOps uops = {graph.constant(dtype, bits)};
  std::string text = print_uops(uops);
  EXPECT_EQ(text, "%0 = CONST " + to_string(dtype) + " " + std::string(printed) + "\n");
  Graph again;
  EXPECT_EQ(parse_uops(text, again)[0]->arg, uops[0]->arg);
}

TEST(UopText, ConstantsReadBackBitForBit) {
  expect_constant(Scalar::Float32, float_bits(-0.0), "-0.0");
  expect_constant(Scalar::Float32, float_bits(double{0.1f}), "0.1");
  expect_constant(Scalar::Float64, float_bits(0.1), "0.1");
  expect_constant(Scalar::Float32, float_bits(0x1p-149), "1e-45");
  expect_constant(Scalar::Float64, float_bits(5e-324), "5e-324");
  expect_constant(Scalar::Float32, float_bits(HUGE_VAL), "inf");
  expect_constant(Scalar::Float16, float_bits(-HUGE_VAL), "-inf");
  expect_constant(Scalar::Float64, float_bits(std::numeric_limits<double>::quiet_NaN()), "nan");
  expect_constant(Scalar::Float64, int64_t{0x7ff8000000000001}, "0x7ff8000000000001");
  expect_constant(Scalar::UInt64, -1, "18446744073709551615");
  expect_constant(Scalar::Int64, INT64_MIN, "-9223372036854775808");
  expect_constant(Scalar::Bool, 1, "true");
  expect_constant(DType(Scalar::BFloat16, 4), float_bits(1.5), "1.5");
}

RC_GTEST_PROP(UopText, AnyFloatReadsBack, (int64_t bits)) {
  for (Scalar scalar : {Scalar::Float16, Scalar::BFloat16, Scalar::Float32, Scalar::Float64}) {
    int64_t lane = float_bits(round_to(scalar, bits_float(bits)));
    Graph graph, again;
    LinearUOps uops = {graph.constant(scalar, lane)};
    RC_ASSERT(parse_uops(print_uops(uops), again)[0]->arg == uops[0]->arg);
  }
}

struct Malformed {
  const char* text;
  const char* message;
};

class UopTextErrors : public testing::TestWithParam<Malformed> {};

TEST_P(UopTextErrors, SayWhereAndWhat) {
  Graph graph;
  try {
    parse_uops(GetParam().text, graph);
    ADD_FAILURE() << "accepted";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string_view(e.what()).find(GetParam().message), std::string_view::npos)
        << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, UopTextErrors,
    testing::Values(
        Malformed{"%0 = JUMP", "line 1, column 6: there is no op 'JUMP'"},
        Malformed{"%0 = CONST int32 4\n%0 = CONST int32 5",
                  "line 2, column 2: %0 stands further up"},
        Malformed{"%0 = CONST int32 4 5", "line 1, column 20: expected the end of the line"},
        Malformed{"%0 = CONST int32 4.5", "'4.5' is not a value of type int32"},
        Malformed{"%0 = CONST uint8 256", "'256' is not a value of type uint8"},
        Malformed{"%0 = CONST float32 infinity", "'infinity' is not a value"},
        Malformed{"%0 = ADD int32 (%1, %2)", "%1 does not stand above"},
        Malformed{"%0 = CONST int32 4\n%1 = NEG int32 (%0, %0)", "expected 1 sources, not 2"},
        Malformed{"%0 = CONST int32 4\n%1 = NEG (%0)", "expected a type"},
        Malformed{"%0 = CONST int32 4\n%1 = NEG float32 (%0)", "line 2"},
        Malformed{"%0 = CONST int32 4\n%1 = SQRT int32 (%0)", "line 2"},
        Malformed{"%0 = SINK", "does not occur at this stage"},
        Malformed{"%0 = CONST index 4", "index type"},
        Malformed{"%0 = DEFINE_GLOBAL float32 buffer=0", "elements"},
        Malformed{"%0 = DEFINE_GLOBAL float32 buffer=0 elements=-1", "negative"},
        Malformed{"%0 = DEFINE_GLOBAL float32 buffer=0 elements=1 elements=1",
                  "a second 'elements'"},
        Malformed{"%0 = DEFINE_GLOBAL float32 buffer=0 colour=1", "no field 'colour'"},
        Malformed{"%0 = CONST int32 2\n%1 = RANGE int32 (%0) #0 axis=0", "not closed at the end"},
        Malformed{"%0 = CONST int32 2\n%1 = RANGE int32 (%0) #0 axis=0\n%2 = RANGE int32 (%0) #1 "
                  "axis=0\nEND (%1)\nEND (%2)",
                  "does not close the innermost scope"},
        Malformed{
            "%0 = CONST int32 2\n%1 = RANGE int32 (%0) #0 axis=0\n%2 = ADD int32 (%1, %0)\nEND "
            "(%1)\n%3 = NEG int32 (%2)",
            "a scope that is closed"},
        Malformed{"%0 = CONST int32 4\n%1 = LOAD int32 (%0, %0)",
                  "a DEFINE_GLOBAL or DEFINE_LOCAL"},
        Malformed{"%0 = VCONST int32x2 [1, 2, 3]", "a value for each lane"},
        Malformed{"%0 = CONST int32x0 1", "line 1"}, Malformed{"%", "a label"},
        Malformed{"%0 =", "an op"}, Malformed{"(", "an op"}));

TEST(UopText, BlanksAndCommentsDoNotMatter) {
  Graph graph;
  LinearUOps uops =
      parse_uops("// a comment\n\n  %x=CONST int32   4 // four\r\n\t%y = NEG int32(%x)\n", graph);
  EXPECT_EQ(print_uops(uops), "%0 = CONST int32 4\n%1 = NEG int32 (%0)\n");
}

// Whatever is done to a text, it is read or refused.
RC_GTEST_PROP(UopText, MutationsAreReadOrRefused, (uint64_t seed)) {
  static const std::string kText = [] {
    KernelBuilder k;
    Array x = k.input(Scalar::Float32, {7, 30});
    k.output((x * x).sum(1));
    Target target = generic_cpu_target();
    std::string text;
    GenerateHooks hooks;
    hooks.after_linearize = [&](const LinearUOps& uops) { text = print_uops(uops); };
    Ast ast = k.build();
    generate(ast, default_opts(ast, target), target, hooks);
    return text;
  }();
  std::string text = kText;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3; ++i) {
    size_t at = random() % text.size();
    switch (random() % 4) {
      case 0: text.erase(at, random() % 5); break;
      case 1: text.insert(at, 1, static_cast<char>(random() % 128)); break;
      case 2: text[at] = text[random() % text.size()]; break;
      default: text.insert(at, text.substr(random() % text.size(), random() % 60)); break;
    }
    if (text.empty()) return;
  }
  Graph graph;
  try {
    std::string printed = print_uops(parse_uops(text, graph));
    Graph again;
    RC_ASSERT(print_uops(parse_uops(printed, again)) == printed);
  } catch (const CompileError&) {
  }
}

TEST(UopText, DotHasScopesAsClusters) {
  Graph graph;
  LinearUOps uops = parse_uops(
      "%0 = CONST int32 4\n%1 = RANGE int32 (%0) #0 axis=0\n%2 = NEG int32 (%1)\n%3 = END (%1)\n",
      graph);
  EXPECT_EQ(graph_dot(uops),
            "digraph uops {\n"
            "  node [shape=box, style=filled, fontname=monospace];\n"
            "  u0 [label=\"%0 CONST int32 4\", fillcolor=palegreen];\n"
            "  subgraph cluster_1 { label=\"%1 RANGE\";\n"
            "    u1 [label=\"%1 RANGE int32 (%0) #0 axis=0\", fillcolor=lightgrey];\n"
            "    u2 [label=\"%2 NEG int32 (%1)\", fillcolor=lightblue];\n"
            "    u3 [label=\"%3 END (%1)\", fillcolor=lightgrey];\n"
            "  }\n"
            "  u0 -> u1;\n"
            "  u1 -> u2;\n"
            "  u1 -> u3;\n"
            "}\n");
}

}  // namespace
}  // namespace quern
