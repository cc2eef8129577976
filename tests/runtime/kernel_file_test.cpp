#include "quern/runtime/kernel_file.h"

#include <gtest/gtest.h>

#include "quern/codegen/error.h"
#include "tests/random_ast.h"

namespace quern {
namespace {

// A sum of each row of a 4 x 8 matrix.
const std::string kRowSum =
    R"({"id":"rows","nodes":[)"
    R"({"op":"LOAD","buffer":1,"dtype":"float32","views":[{"shape":[4,8],"strides":[8,1],"offset":0,"mask":null}]},)"
    R"({"op":"SUM","src":[0],"axis":[1]},)"
    R"({"op":"STORE","src":[1],"buffer":0,"dtype":"float32","views":[{"shape":[4,1],"strides":[1,0],"offset":0,"mask":null}]}],)"
    R"("outputs":[2],"buffers":[{"dtype":"float32","size":4},{"dtype":"float32","size":32}],"vars":[],)"
    R"("input":"signed","flops":32,"bytes":144,"expect":[{"buffer":0,"at":[0,3],"value":[1.5,"nan"],"tol":[0.25,0.0]}]})";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(KernelFile, ReadsAKernel) {
  KernelRecord kernel = parse_kernel(kRowSum);
  EXPECT_EQ(kernel.id, "rows");
  EXPECT_EQ(kernel.ast.nodes().size(), 3u);
  EXPECT_EQ(kernel.flops(), 32);
  EXPECT_EQ(kernel.bytes(), 144);
  ASSERT_EQ(kernel.expect.size(), 1u);
  EXPECT_EQ(kernel.expect[0].samples[1].at, 3);
  EXPECT_EQ(kernel.expect[0].samples[0].tolerance, 0.25);
}

TEST(KernelFile, PrintsCanonically) {
  std::string printed = print_kernel(parse_kernel(kRowSum));
  EXPECT_EQ(print_kernel(parse_kernel(printed)), printed);
  EXPECT_EQ(printed.find('\n'), std::string::npos);
  // Another order of fields is the same kernel.
  std::string moved =
      replaced(kRowSum, R"("op":"SUM","src":[0],"axis":[1])", R"("axis":[1],"src":[0],"op":"SUM")");
  EXPECT_EQ(print_kernel(parse_kernel(moved)), printed);
}

TEST(KernelFile, PrintedRandomKernelsReadBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    test::RandomKernel random = test::random_kernel(seed);
    KernelRecord record;
    record.id = "random";
    record.ast = std::move(random.ast);
    record.var_values = random.vars;
    std::string printed = print_kernel(record);
    KernelRecord read = parse_kernel(printed);
    EXPECT_EQ(print_kernel(read), printed);
    EXPECT_EQ(read.var_values, record.var_values);
  }
}

struct Fault {
  const char* what;
  const char* from;
  const char* to;
  const char* message;  // a part of it
};

class KernelFileFaults : public testing::TestWithParam<Fault> {};

TEST_P(KernelFileFaults, AreRefusedWithAReason) {
  std::string text = replaced(kRowSum, GetParam().from, GetParam().to);
  try {
    parse_kernel(text);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, KernelFileFaults,
    testing::Values(
        Fault{"Field", R"("outputs":[2],)", "", "field 'outputs' is missing"},
        Fault{"NodeField", R"("buffer":1,)", "", "node 0 (LOAD): field 'buffer' is missing"},
        Fault{"NodeIsNoObject", R"({"op":"SUM","src":[0],"axis":[1]})", "7",
              "expected an object, found 7"},
        Fault{"UnknownOp", R"("op":"SUM")", R"("op":"PRODUCT")",
              "node 1 (PRODUCT): there is no such op"},
        Fault{"InternalOp", R"("op":"SUM")", R"("op":"RANGE")", "there is no such op"},
        Fault{"UnknownDtype", R"("dtype":"float32","views":[{"shape":[4,8])",
              R"("dtype":"float31","views":[{"shape":[4,8])", "found \"float31\""},
        Fault{"SourceOutOfRange", R"("src":[0])", R"("src":[9])",
              "not the index of an earlier node"},
        Fault{"Cycle", R"("src":[0])", R"("src":[1])", "not the index of an earlier node"},
        Fault{"NegativeSource", R"("src":[0])", R"("src":[-1])",
              "not the index of an earlier node"},
        Fault{"SourceCount", R"("src":[0])", R"("src":[0,0])", "expected 1 sources, found 2"},
        Fault{"AxisOutOfRange", R"("axis":[1])", R"("axis":[2])", "axis 2 is out of range"},
        Fault{"AxesDescend", R"("axis":[1])", R"("axis":[1,0])", "must ascend"},
        Fault{"ShapeMismatch", R"("shape":[4,1])", R"("shape":[3,1])",
              "the view has shape [3,1], the value [4,1]"},
        Fault{"StoreOutside", R"({"dtype":"float32","size":4})", R"({"dtype":"float32","size":3})",
              "but the buffer has 3"},
        Fault{"LoadOutside", R"("strides":[8,1])", R"("strides":[9,1])", "but the buffer has 32"},
        Fault{"LoadBefore", R"("strides":[8,1],"offset":0)", R"("strides":[8,1],"offset":-1)",
              "-1"},
        Fault{"IndexOverflows", R"("strides":[8,1])", R"("strides":[9223372036854775807,1])",
              "overflow"},
        Fault{"NegativeSize", R"("shape":[4,8])", R"("shape":[4,-8])", "is -8, expected 0 or more"},
        Fault{"SizeOverflows", R"("shape":[4,8])", R"("shape":[4294967296,4294967296])",
              "overflow"},
        Fault{"StridesRank", R"("strides":[8,1])", R"("strides":[8])", "strides"},
        Fault{"MaskRank", R"("mask":null)", R"("mask":[[0,1]])", "expected null or 2 ranges"},
        Fault{"NoViews", R"("views":[{"shape":[4,8],"strides":[8,1],"offset":0,"mask":null}])",
              R"("views":[])", "expected one view or more"},
        Fault{"BufferMissing", R"("buffer":1)", R"("buffer":2)",
              "there is no buffer 2; there are 2"},
        Fault{"LoadsOtherDtype", R"({"dtype":"float32","size":32})",
              R"({"dtype":"int32","size":32})", "int32"},
        Fault{"NegativeBuffer", R"("size":32)", R"("size":-32)", "an integer from 0"},
        Fault{"HugeNumber", R"("size":32)", R"("size":32e400)", "not JSON"},
        Fault{"FractionalSize", R"("size":32)", R"("size":32.5)", "found 32.5"},
        Fault{"OutputTwice", R"("outputs":[2])", R"("outputs":[2,2])", "output 1"},
        Fault{"OutputIsNoStore", R"("outputs":[2])", R"("outputs":[1])", "no STORE"},
        Fault{"NoOutput", R"("outputs":[2])", R"("outputs":[])", "no outputs"},
        Fault{"CutShort", R"("tol":[0.25,0.0]}]})", R"("tol":[0.25)", "not JSON"},
        Fault{"NotJson", R"({"id")", "hello", "not JSON"},
        Fault{"ImageShape", R"({"dtype":"float32","size":32})",
              R"({"dtype":"float32","size":32,"image":[2,3,4]})", "image"},
        Fault{"Input", R"("input":"signed")", R"("input":"random")", "\"signed\" or \"positive\""},
        Fault{"ExpectedBuffer", R"({"buffer":0,"at")", R"({"buffer":1,"at")", "from 0 to 0"},
        Fault{"ExpectedPosition", R"("at":[0,3])", R"("at":[0,4])", "from 0 to 3"},
        Fault{"ExpectedCount", R"("at":[0,3])", R"("at":[0])", "as many values"},
        Fault{"VariableUnknown", R"("shape":[4,8])", R"("shape":["n",8])", "n"},
        Fault{"VariableRange", R"("vars":[])", R"("vars":[{"name":"n","min":3,"max":1}])", "n"},
        Fault{"VariableValue", R"("vars":[])", R"("vars":[{"name":"n","min":1,"max":3,"value":4}])",
              "from 1 to 3"},
        Fault{"VariableTwice", R"("vars":[])",
              R"("vars":[{"name":"n","min":1,"max":3},{"name":"n","min":1,"max":3}])", "twice"}),
    [](const auto& test) { return std::string(test.param.what); });

TEST(KernelFile, AnyPrefixIsRefused) {
  for (size_t n = 0; n < kRowSum.size(); ++n)
    EXPECT_THROW(parse_kernel(kRowSum.substr(0, n)), FileError) << n;
}

TEST(KernelFile, NothingIsIgnoredBehindANulByte) {
  EXPECT_THROW(parse_kernel(kRowSum + std::string(1, '\0')), FileError);
}

TEST(KernelFile, LongIdsAreRefused) {
  std::string text =
      replaced(kRowSum, R"("id":"rows")", R"("id":")" + std::string(1000, 'x') + '"');
  try {
    parse_kernel(text);
    FAIL();
  } catch (const AstError& e) {
    EXPECT_LT(std::string(e.what()).size(), 500u);
  }
}

TEST(KernelFile, DeeplyNestedJsonIsRefused) {
  EXPECT_THROW(parse_kernel(std::string(1'000'000, '[')), FileError);
  EXPECT_THROW(parse_kernel(std::string(1'000'000, '[') + std::string(1'000'000, ']')), AstError);
}

TEST(KernelFile, AMillionNodesAreRefused) {
  std::string text =
      R"({"nodes":[{"op":"CONST","value":1,"dtype":"float32","views":[{"shape":[],"strides":[],"offset":0,"mask":null}]})";
  for (int i = 0; i < 1'000'000; ++i) text += fmt::format(R"(,{{"op":"NEG","src":[{}]}})", i);
  text += R"(],"outputs":[0],"buffers":[]})";
  EXPECT_THROW(parse_kernel(text), AstError);
}

TEST(KernelFile, LinesAreNamedInErrors) {
  KernelLine line{"some.jsonl", 17, R"({"id":"x","buffers":[],"nodes":[],"outputs":[]})"};
  try {
    line.parse();
    FAIL();
  } catch (const AstError& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("some.jsonl:17: kernel x: ")) << e.what();
  }
}

}  // namespace
}  // namespace quern
