#include "quern/codegen/uop/verify.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace quern {
namespace {

class Verifier {
 public:
  void run(const LinearUOps& uops) {
    for (UOp u : uops) {
      current_ = u;
      check_stage();
      for (UOp s : u->src()) check_source(s);
      if (u->op == Op::END || u->op == Op::ENDIF) {
        close();
        continue;
      }
      define();
      if (u->op == Op::RANGE || u->op == Op::IF) scopes_.push_back({u, {}});
      if (u->op == Op::BARRIER) check_barrier();
      if (u->op == Op::LOAD || u->op == Op::STORE) check_access();
    }
    if (scopes_.size() != 1) fail("a scope that is never closed");
  }

 private:
  struct Scope {
    UOp head;
    std::vector<UOp> defined;
  };

  [[noreturn]] void fail(const std::string& why) const {
    throw std::logic_error("verify: " + std::string(name(current_->op)) + " " +
                           to_string(current_->dtype) + " (uop " + std::to_string(current_->id) +
                           "): " + why);
  }

  void check_stage() const {
    if (!(info(current_->op).stages & OpInfo::kL)) fail("not an op of linearized uops");
    if (current_->dtype.is_index()) fail("the Index type should be gone");
  }

  // That a store has happened, or a loop is over, stays true outside of the loop around it.
  void check_source(UOp s) const {
    bool happened = current_->op == Op::BARRIER && happened_.contains(s);
    if (!happened && !defined_.contains(s))
      fail("uses " + std::string(name(s->op)) + " before it is defined or out of its scope");
  }

  void define() {
    if (!defined_.emplace(current_, scopes_.size()).second) fail("stands twice");
    scopes_.back().defined.push_back(current_);
    Op op = current_->op;
    if (op == Op::STORE || op == Op::BARRIER || op == Op::RANGE) happened_.insert(current_);
  }

  // What was computed in a scope cannot be used after it, but for an accumulator's value.
  void close() {
    UOp head = current_->src(0);
    if (scopes_.size() == 1 || scopes_.back().head != head)
      fail("closes a scope that is not the innermost");
    std::vector<UOp> closed = std::move(scopes_.back().defined);
    scopes_.pop_back();
    for (UOp u : closed) {
      defined_.erase(u);
      if (u->op == Op::ASSIGN && defined_.contains(u->src(0))) {
        defined_.emplace(u, scopes_.size());
        scopes_.back().defined.push_back(u);
      }
    }
  }

  // A condition is uniform in a group if no local id reaches it; loops over loaded values are not
  // told apart, so a load counts as divergent.
  void check_barrier() const {
    for (const Scope& scope : scopes_) {
      if (!scope.head || scope.head->op != Op::IF) continue;
      for (UOp u : reachable(scope.head->src().first(1)))
        if (u->op == Op::LOAD ||
            (u->op == Op::SPECIAL && u->args[0] == static_cast<int64_t>(SpecialKind::Local)))
          fail("a barrier under a condition that may differ between work items");
    }
  }

  void check_access() const {
    UOp index = current_->src(1);
    if (current_->gate()) return;
    UOp buffer = current_->src(0);
    int lanes = current_->op == Op::LOAD ? current_->lanes() : current_->src(2)->lanes();
    int64_t size = buffer->args[0];
    if (index->vmin < 0 || index->vmax > size - lanes)
      fail("index in [" + std::to_string(index->vmin) + ", " + std::to_string(index->vmax) +
           "] of " + std::to_string(lanes) + " lanes is not provably within " +
           std::to_string(size) + " elements");
  }

  UOp current_ = nullptr;
  std::unordered_map<UOp, size_t> defined_;
  std::unordered_set<UOp> happened_;
  std::vector<Scope> scopes_ = {{nullptr, {}}};
};

}  // namespace

void verify(const LinearUOps& uops) { Verifier().run(uops); }

}  // namespace quern
