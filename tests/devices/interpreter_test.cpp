#include "quern/devices/interpreter/interpreter.h"

#include <array>

#include <gtest/gtest.h>

#include "quern/codegen/error.h"
#include "quern/devices/buffer.h"

namespace quern {
namespace {

struct Launch {
  std::vector<Buffer> buffers;
  int64_t groups = 1;
  int64_t locals = 1;
  std::vector<int32_t> vars = {};
};

class Interpreter : public testing::Test {
 protected:
  Program program(std::string text, int64_t locals = 1) const {
    Program p;
    p.name = "test";
    p.source = std::move(text);
    p.target = device_->target();
    p.local_size[0] = locals;
    return p;
  }

  void run(const std::string& text, const Launch& launch) {
    Program p = program(text, launch.locals);
    std::shared_ptr<Executable> executable = device_->load(p, device_->compile(p));
    std::vector<MemoryRef> refs;
    for (const Buffer& buffer : launch.buffers) refs.push_back(buffer.memory());
    LaunchArgs args;
    args.buffers = refs;
    args.vars = launch.vars;
    args.global_size[0] = launch.groups;
    executable->launch(args);
  }

  // The launch is stopped by an error with all of these parts.
  void expect_stopped(const std::string& text, const Launch& launch,
                      std::initializer_list<std::string_view> parts) {
    try {
      run(text, launch);
      ADD_FAILURE() << "not stopped";
    } catch (const DeviceError& e) {
      for (std::string_view part : parts)
        EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
    }
  }

  Buffer ints(const std::vector<int32_t>& values) { return Buffer::copy_of(device_, values); }

  std::shared_ptr<Device> device_ = make_interpreter_device();
};

// out[i] = in[i] * 2 for i in 0 .. n-1, n a variable.
constexpr const char* kDouble = R"(
  %out = DEFINE_GLOBAL int32 buffer=0 elements=8 written
  %in = DEFINE_GLOBAL int32 buffer=1 elements=8
  %n = DEFINE_VAR int32 var=0 min=0 max=9
  %two = CONST int32 2
  %i = RANGE int32 (%n) #0 axis=0
    %x = LOAD int32 (%in, %i)
    %y = MUL int32 (%x, %two)
    STORE (%out, %i, %y)
  END (%i)
)";

TEST_F(Interpreter, RunsLoops) {
  Buffer out = ints({9, 9, 9, 9, 9, 9, 9, 9}), in = ints({1, 2, 3, 4, 5, 6, 7, 8});
  run(kDouble, {{out, in}, 1, 1, {0}});
  EXPECT_EQ(out.to_vector<int32_t>(), std::vector<int32_t>(8, 9)) << "a loop of no steps";
  run(kDouble, {{out, in}, 1, 1, {3}});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{2, 4, 6, 9, 9, 9, 9, 9}));
}

TEST_F(Interpreter, FindsAccessesOutOfBounds) {
  Buffer out = ints(std::vector<int32_t>(8)), in = ints(std::vector<int32_t>(8));
  expect_stopped(kDouble, {{out, in}, 1, 1, {9}},
                 {"kernel test", "uop %5 (LOAD)", "buffer 1", "element 8 is out of bounds"});
  // The buffer that is there counts, not only what the code says.
  expect_stopped(kDouble, {{out.slice(0, 8), ints({1, 2})}, 1, 1, {3}},
                 {"(LOAD)", "element 2 is out of bounds of the 2"});
  expect_stopped(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=8 written
    %i = CONST int32 -1
    STORE (%out, %i, %i)
  )",
                 {{out}}, {"(STORE) in buffer 0", "element -1"});
  // The last lane of a vector.
  expect_stopped(R"(
    %in = DEFINE_GLOBAL int32 buffer=0 elements=8
    %i = CONST int32 5
    %x = LOAD int32x4 (%in, %i)
  )",
                 {{in}}, {"element 8"});
}

TEST_F(Interpreter, FindsReadsOfUninitializedMemory) {
  Buffer out = ints(std::vector<int32_t>(8)), fresh(device_, Scalar::Int32, 8);
  expect_stopped(kDouble, {{out, fresh}, 1, 1, {1}},
                 {"uop %5 (LOAD)", "element 0 is read before anything was written"});
  fresh.slice(0, 2).copy_from(std::array<int32_t, 2>{4, 5});
  run(kDouble, {{out, fresh}, 1, 1, {2}});
  expect_stopped(kDouble, {{out, fresh}, 1, 1, {3}}, {"element 2"});
  // What a kernel has written counts as written.
  Buffer made(device_, Scalar::Int32, 8);
  run(kDouble, {{made, out}, 1, 1, {8}});
  run(kDouble, {{out, made}, 1, 1, {8}});
}

TEST_F(Interpreter, GatedLanesTouchNothing) {
  Buffer out = ints({9, 9, 9, 9}), in = ints({1, 2});
  run(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=4 written
    %in = DEFINE_GLOBAL int32 buffer=1 elements=2
    %0 = CONST int32 0
    %m = CONST int32 -1
    %seven = CONST int32x4 7
    %gate = VCONST boolx4 [false, true, true, false]
    %x = LOAD int32x4 (%in, %m, %gate, %seven)
    STORE (%out, %0, %x, %gate)
  )",
      {{out, in}});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{9, 1, 2, 9}));
  run(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=4 written
    %far = CONST int32 1000
    %x = CONST int32x4 3
    %no = CONST bool false
    STORE (%out, %far, %x, %no)
  )",
      {{out}});
}

TEST_F(Interpreter, AccumulatorsRestartInOuterLoops) {
  // out[i] = sum of in[i * 4 + j]
  Buffer out(device_, Scalar::Int32, 2), in = ints({1, 2, 3, 4, 10, 20, 30, 40});
  run(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=2 written
    %in = DEFINE_GLOBAL int32 buffer=1 elements=8
    %zero = CONST int32 0
    %two = CONST int32 2
    %four = CONST int32 4
    %i = RANGE int32 (%two) #0 axis=0
      %acc = DEFINE_ACC int32 (%zero) #1
      %row = MUL int32 (%i, %four)
      %j = RANGE int32 (%four) #2 axis=1
        %at = ADD int32 (%row, %j)
        %x = LOAD int32 (%in, %at)
        %sum = ADD int32 (%acc, %x)
        %set = ASSIGN int32 (%acc, %sum)
      END (%j)
      STORE (%out, %i, %set)
    END (%i)
  )",
      {{out, in}});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{10, 100}));
}

TEST_F(Interpreter, MovesLanes) {
  Buffer out = ints(std::vector<int32_t>(8, 9));
  run(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=8 written
    %zero = CONST int32 0
    %four = CONST int32 4
    %a = VCONST int32x2 [1, 2]
    %v = VECTORIZE int32x3 (%a, %four)
    %g = GEP int32x4 (%v) [2, 0, 0, 1]
    STORE (%out, %zero, %g)
    %s = VECTORIZE int32x3 (%four)
    STORE (%out, %four, %s)
  )",
      {{out}});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{4, 1, 1, 2, 4, 4, 4, 9}));
}

TEST_F(Interpreter, SkipsWhatAConditionRulesOut) {
  Buffer out = ints({9, 9});
  run(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=2 written
    %zero = CONST int32 0
    %one = CONST int32 1
    %yes = CMPLT bool (%zero, %one)
    %no = CMPLT bool (%one, %zero)
    %a = IF (%yes)
      STORE (%out, %zero, %zero)
    ENDIF (%a)
    %b = IF (%no)
      STORE (%out, %one, %zero)
    ENDIF (%b)
  )",
      {{out}});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{0, 9}));
}

// Each of 4 items adds up its column, then the first one adds the sums through local memory.
std::string group_sum(std::string_view barrier) {
  return fmt::format(R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=2 written
    %in = DEFINE_GLOBAL int32 buffer=1 elements=16
    %tile = DEFINE_LOCAL int32 #0 elements=4
    %zero = CONST int32 0
    %one = CONST int32 1
    %two = CONST int32 2
    %four = CONST int32 4
    %eight = CONST int32 8
    %group = SPECIAL int32 (%two) dim=0 kind=group
    %item = SPECIAL int32 (%four) dim=0 kind=local
    %base = MUL int32 (%group, %eight)
    %first = ADD int32 (%base, %item)
    %second = ADD int32 (%first, %four)
    %x = LOAD int32 (%in, %first)
    %y = LOAD int32 (%in, %second)
    %xy = ADD int32 (%x, %y)
    %stored = STORE (%tile, %item, %xy)
    {}
    %leads = CMPLT bool (%item, %one)
    %if = IF (%leads)
      %acc = DEFINE_ACC int32 (%zero) #1
      %k = RANGE int32 (%four) #2 axis=0
        %part = LOAD int32 (%tile, %k)
        %sum = ADD int32 (%acc, %part)
        %set = ASSIGN int32 (%acc, %sum)
      END (%k)
      STORE (%out, %group, %set)
    ENDIF (%if)
  )",
                     barrier);
}

TEST_F(Interpreter, GroupsReduceThroughLocalMemory) {
  std::vector<int32_t> values;
  for (int i = 0; i < 16; ++i) values.push_back(i);
  Buffer out(device_, Scalar::Int32, 2), in = ints(values);
  run(group_sum("BARRIER (%stored)"), {{out, in}, 2, 4});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{28, 92}));
}

TEST_F(Interpreter, FindsAMissingBarrier) {
  Buffer out(device_, Scalar::Int32, 2), in = ints(std::vector<int32_t>(16));
  // The first item reads what others have yet to write.
  expect_stopped(group_sum(""), {{out, in}, 2, 4}, {"(LOAD) in local memory", "work item 0"});
}

TEST_F(Interpreter, FindsATileThatIsOverwrittenTooEarly) {
  // Each item reads its neighbour's element and then writes its own, again and again; a second
  // barrier in the loop is missing.
  auto text = [](std::string_view second) {
    return fmt::format(R"(
      %out = DEFINE_GLOBAL int32 buffer=0 elements=2 written
      %tile = DEFINE_LOCAL int32 #0 elements=2
      %one = CONST int32 1
      %two = CONST int32 2
      %item = SPECIAL int32 (%two) dim=0 kind=local
      %other = SUB int32 (%one, %item)
      %k = RANGE int32 (%two) #1 axis=0
        %s = STORE (%tile, %item, %k)
        BARRIER (%s)
        %x = LOAD int32 (%tile, %other)
        %t = STORE (%out, %item, %x)
        {}
      END (%k)
    )",
                       second);
  };
  Buffer out(device_, Scalar::Int32, 2);
  run(text("BARRIER (%t)"), {{out}, 1, 2});
  EXPECT_EQ(out.to_vector<int32_t>(), (std::vector<int32_t>{1, 1}));
  expect_stopped(text(""), {{out}, 1, 2}, {"race", "local memory"});
}

TEST_F(Interpreter, FindsRacesBetweenTasks) {
  const char* text = R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=4 written
    %four = CONST int32 4
    %two = CONST int32 2
    %task = SPECIAL int32 (%four) dim=0 kind=task
    %half = FLOORDIV int32 (%task, %two)
    STORE (%out, %half, %task)
  )";
  Buffer out(device_, Scalar::Int32, 4);
  run(text, {{out}, 1});
  expect_stopped(text, {{out}, 2}, {"race", "element 0", "work item 1", "work item 0"});
}

TEST_F(Interpreter, FindsARaceOfReaderAndWriter) {
  const char* text = R"(
    %out = DEFINE_GLOBAL int32 buffer=0 elements=4 written
    %one = CONST int32 1
    %three = CONST int32 3
    %task = SPECIAL int32 (%three) dim=0 kind=task
    %next = ADD int32 (%task, %one)
    %x = LOAD int32 (%out, %next)
    STORE (%out, %task, %x)
  )";
  Buffer out = ints({0, 1, 2, 3});
  run(text, {{out}, 1});
  expect_stopped(text, {{out}, 2}, {"race", "element 1"});
}

TEST_F(Interpreter, FindsDivergentBarriers) {
  const char* text = R"(
    %two = CONST int32 2
    %one = CONST int32 1
    %item = SPECIAL int32 (%two) dim=0 kind=local
    %c = CMPLT bool (%item, %one)
    %if = IF (%c)
      BARRIER
    ENDIF (%if)
  )";
  run(text, {{}, 1, 1});
  expect_stopped(text, {{}, 1, 2}, {"divergent barrier"});
  // The same barrier, but in another iteration.
  expect_stopped(R"(
    %two = CONST int32 2
    %item = SPECIAL int32 (%two) dim=0 kind=local
    %k = RANGE int32 (%two) #0 axis=0
      %c = CMPEQ bool (%k, %item)
      %if = IF (%c)
        BARRIER
      ENDIF (%if)
    END (%k)
  )",
                 {{}, 1, 2}, {"divergent barrier"});
}

TEST_F(Interpreter, EmptyLaunchesRunNothing) {
  Buffer out = ints(std::vector<int32_t>(8)), in = ints(std::vector<int32_t>(8));
  run(kDouble, {{out, in}, 0, 1, {9}});
  run(kDouble, {{out, in}, -1, 1, {9}});
}

TEST_F(Interpreter, RefusesTextThatIsNoUops) {
  for (const char* text : {"%0 = JUMP", "%0 = LOAD int32 (%1, %2)", "STORE", "END (%0)",
                           "%0 = CONST int32 4\n%1 = RANGE int32 (%0) #0 axis=0\n", "garbage ("}) {
    Program p = program(text);
    try {
      device_->compile(p);
      ADD_FAILURE() << text;
    } catch (const CompileError& e) {
      EXPECT_TRUE(std::string_view(e.what()).starts_with("kernel test: uop text, line "))
          << e.what();
      EXPECT_EQ(e.source(), text);
    }
  }
}

TEST_F(Interpreter, ExecutablesStandAlone) {
  std::shared_ptr<Executable> executable;
  {
    auto device = make_interpreter_device();
    Program p = program(kDouble);
    executable = device->load(p, device->compile(p));
  }
  Buffer out = ints(std::vector<int32_t>(8)), in = ints({1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<MemoryRef> refs = {out.memory(), in.memory()};
  std::array<int32_t, 1> vars = {8};
  LaunchArgs args;
  args.buffers = refs;
  args.vars = vars;
  executable->launch(args);
  EXPECT_EQ(out.to_vector<int32_t>().back(), 16);
}

}  // namespace
}  // namespace quern
