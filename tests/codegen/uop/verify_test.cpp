// verify() refuses each breach of what verify.h promises to renderers.

#include "quern/codegen/uop/verify.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "quern/codegen/uop/uop.h"

namespace quern {
namespace {

class Verify : public testing::Test {
 protected:
  UOp add(UOp u) {
    list_.push_back(u);
    return u;
  }
  UOp make(Op op, DType dtype, std::initializer_list<UOp> src, int64_t arg = 0,
           std::initializer_list<int64_t> args = {}) {
    return add(g_.make(op, dtype, src, arg, args));
  }
  UOp number(int64_t n) { return add(g_.constant(Scalar::Int32, n)); }
  UOp buffer(int64_t elements) {
    return make(Op::DEFINE_GLOBAL, Scalar::Int32, {}, 0, {elements, 1, 0, 0});
  }
  UOp range(UOp size) { return make(Op::RANGE, Scalar::Int32, {size}, g_.fresh(), {0}); }
  UOp end(UOp r) { return make(Op::END, Scalar::Void, {r}); }

  void expect_accepted() { EXPECT_NO_THROW(verify(list_)); }
  void expect_refused(std::string_view part) {
    try {
      verify(list_);
      ADD_FAILURE() << "accepted";
    } catch (const std::logic_error& e) {
      EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
    }
  }

  Graph g_;
  LinearUOps list_;
};

TEST_F(Verify, AccessesInBounds) {
  UOp b = buffer(8), r = range(number(8));
  make(Op::STORE, Scalar::Void, {b, r, r});
  end(r);
  expect_accepted();
}

TEST_F(Verify, AccessBeyondTheEnd) {
  UOp b = buffer(7), r = range(number(8));
  make(Op::STORE, Scalar::Void, {b, r, r});
  end(r);
  expect_refused("not provably within 7 elements");
}

TEST_F(Verify, AccessBelowTheStart) {
  UOp b = buffer(8), r = range(number(8)), i = make(Op::SUB, Scalar::Int32, {r, number(1)});
  make(Op::LOAD, Scalar::Int32, {b, i});
  end(r);
  expect_refused("not provably within");
}

TEST_F(Verify, LastLaneOfAVector) {
  UOp b = buffer(8), r = range(number(8));
  make(Op::LOAD, DType(Scalar::Int32, 2), {b, r});
  end(r);
  expect_refused("2 lanes");
}

TEST_F(Verify, GatedAccessesMayPointAnywhere) {
  UOp b = buffer(8), r = range(number(100)), c = make(Op::CMPLT, Scalar::Bool, {r, number(8)});
  make(Op::STORE, Scalar::Void, {b, r, r, c});
  end(r);
  expect_accepted();
}

TEST_F(Verify, SourcesStandBefore) {
  UOp late = g_.constant(Scalar::Int32, 3);
  make(Op::NEG, Scalar::Int32, {late});
  add(late);
  expect_refused("uses CONST before it is defined");
}

TEST_F(Verify, NothingStandsTwice) {
  UOp n = number(3);
  add(n);
  expect_refused("stands twice");
}

TEST_F(Verify, ValuesStayInTheirScope) {
  UOp r = range(number(8)), x = make(Op::NEG, Scalar::Int32, {r});
  end(r);
  make(Op::NEG, Scalar::Int32, {x});
  expect_refused("out of its scope");
}

TEST_F(Verify, AnAssignOutlivesItsLoop) {
  UOp acc = make(Op::DEFINE_ACC, Scalar::Int32, {number(0)}, 0), r = range(number(8));
  UOp sum = make(Op::ADD, Scalar::Int32, {acc, r});
  UOp assign = make(Op::ASSIGN, Scalar::Int32, {acc, sum});
  end(r);
  make(Op::NEG, Scalar::Int32, {assign});
  expect_accepted();
}

TEST_F(Verify, ScopesNest) {
  UOp n = number(8), a = range(n), b = range(n);
  end(a);
  end(b);
  expect_refused("not the innermost");
}

TEST_F(Verify, ScopesAreClosed) {
  range(number(8));
  expect_refused("never closed");
}

TEST_F(Verify, NoIndexIsLeft) {
  add(g_.index(3));
  expect_refused("the Index type should be gone");
}

TEST_F(Verify, OnlyLinearizedOps) {
  make(Op::LANE, Scalar::Int32, {}, 0, {4});
  expect_refused("not an op of linearized uops");
}

TEST_F(Verify, BarriersAreUniform) {
  UOp size = number(8);
  auto special = [&](SpecialKind kind) {
    return make(Op::SPECIAL, Scalar::Int32, {size}, 0, {static_cast<int64_t>(kind)});
  };
  UOp group = special(SpecialKind::Group), local = special(SpecialKind::Local), three = number(3);
  UOp uniform = make(Op::IF, Scalar::Void, {make(Op::CMPLT, Scalar::Bool, {group, three})});
  make(Op::BARRIER, Scalar::Void, {});
  make(Op::ENDIF, Scalar::Void, {uniform});
  expect_accepted();
  UOp divergent = make(Op::IF, Scalar::Void, {make(Op::CMPLT, Scalar::Bool, {local, three})});
  make(Op::BARRIER, Scalar::Void, {divergent});
  make(Op::ENDIF, Scalar::Void, {divergent});
  expect_refused("barrier");
}

}  // namespace
}  // namespace quern
