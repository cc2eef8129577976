#include "quern/codegen/render/llvm/render_llvm.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quern/codegen/error.h"
#include "quern/codegen/render/llvm/alu.h"
#include "quern/codegen/render/llvm/memory.h"
#include "quern/codegen/render/llvm/text.h"

namespace quern {
namespace {

using llvm_ir::Addresses;
using llvm_ir::AliasScopes;
using llvm_ir::Dummies;
using llvm_ir::Label;
using llvm_ir::Text;
using llvm_ir::Typed;
using llvm_ir::Value;
using llvm_ir::Values;

// Scratch lies on the stack, of which a thread may have little.
constexpr int64_t kMaxScratchBytes = 256 << 10;
constexpr size_t kBytesPerUOp = 96;
// LLVM's schedulers take time quadratic in the size of a block.
constexpr int kMaxBlockUOps = 1000;

// A RANGE or IF, with the accumulators from around it that are assigned in it.
struct Scope {
  UOp head;
  size_t position;  // of the head in the list
  std::vector<UOp> accumulators;
};

// What a scope that is being written needs at its end.
struct OpenScope {
  std::span<const UOp> accumulators;
  int number;
  Label before;        // the block that enters it
  bool may_skip;       // control may go from `before` to the end
  size_t phis_at = 0;  // offset in the text
  Value counter, first, limit;
  std::vector<Value> initial, phis;  // of each accumulator
};

class Renderer {
 public:
  Renderer(const std::string& name, const LinearUOps& uops, const Target& target)
      : name_(name),
        uops_(uops),
        target_(target),
        alias_scopes_(uops),
        text_(1024 + kBytesPerUOp * uops.size()),
        values_(uops),
        addresses_(uops, text_, values_) {
    find_scopes();
  }

  std::string run() {
    text_.put_all("define void @", name_,
                  "(ptr noalias %bufs, ptr noalias %vars, i64 %begin, i64 %end) #0 {\nentry:\n");
    define_memory();
    for (UOp u : uops_) {
      if (++uops_in_block_ > kMaxBlockUOps) split_block();
      render(u);
    }
    if (task_) end_loop();
    text_.line("ret void");
    if (is_split_) {
      text_.start_block({"never"});
      text_.line("unreachable");
    }
    text_.put("}\n\n");
    put_attributes();
    alias_scopes_.define(text_);
    return text_.take();
  }

 private:
  // An accumulator needs a phi in each scope between its DEFINE_ACC and its ASSIGN.
  void find_scopes() {
    std::vector<size_t> open;
    for (size_t i = 0; i < uops_.size(); ++i) {
      UOp u = uops_[i];
      if (u->op == Op::RANGE || u->op == Op::IF) {
        open.push_back(scopes_.size());
        scopes_.push_back({u, i, {}});
      } else if (u->op == Op::END || u->op == Op::ENDIF) {
        open.pop_back();
      } else if (u->op == Op::ASSIGN) {
        for (size_t j = open.size(); j-- > 0;) {
          Scope& scope = scopes_[open[j]];
          if (scope.position < values_.position(u->src(0))) break;
          if (std::ranges::find(scope.accumulators, u->src(0)) == scope.accumulators.end())
            scope.accumulators.push_back(u->src(0));
        }
      }
    }
  }

  // Everything that has an address, in the entry block.
  void define_memory() {
    Dummies dummies;
    int64_t scratch = 0;
    for (UOp u : uops_) {
      if (u->op == Op::LOAD || u->op == Op::STORE) dummies.require(u);
      if (u->op == Op::DEFINE_LOCAL) scratch += define_scratch(u);
      if (u->op == Op::DEFINE_GLOBAL)
        values_[u] = define_argument(u, Value::Kind::Buffer, "bufs", "ptr", 8);
      if (u->op == Op::DEFINE_VAR)
        values_[u] = define_argument(u, Value::Kind::Variable, "vars", "i32", 4);
    }
    if (scratch > kMaxScratchBytes)
      raise<CompileError>("kernel {}: {} bytes of scratch; at most {} are supported", name_,
                          scratch, kMaxScratchBytes);
    dummies.define(text_);
  }

  int64_t define_scratch(UOp u) {
    Value v = Value::make(Value::Kind::Scratch, u->dtype, u->arg);
    DType element = llvm_ir::storage(u->dtype.element());
    text_.line(v, " = alloca [", u->args[0], " x ", element, "], align 64");
    values_[u] = v;
    return u->args[0] * element.itemsize();
  }

  Value define_argument(UOp u, Value::Kind kind, const char* array, const char* type, int align) {
    Value v = Value::make(kind, u->dtype, u->arg);
    Value place = Value::named(array);
    if (u->arg > 0)
      place =
          text_.define(DType(), "getelementptr inbounds ", type, ", ptr ", place, ", i64 ", u->arg);
    text_.line(v, " = load ", type, ", ptr ", place, ", align ", align);
    return v;
  }

  void render(UOp u) {
    if (addresses_.is_folded(u)) return;
    src_.clear();
    for (UOp s : u->src()) src_.push_back(values_[s]);
    switch (u->op) {
      case Op::CONST: return set(u, Value::constant(u->dtype, u->arg));
      case Op::VCONST: return set(u, Value::constants(u->dtype, u->args));
      case Op::DEFINE_GLOBAL:
      case Op::DEFINE_LOCAL:
      case Op::DEFINE_VAR: return;
      case Op::DEFINE_ACC: return set(u, src_[0]);
      case Op::ASSIGN: return set(u, src_[1]);
      case Op::SPECIAL: return begin_task(u);
      case Op::RANGE: return begin_loop(u);
      case Op::END: return end_loop();
      case Op::IF: return begin_if();
      case Op::ENDIF: return end_if();
      case Op::BARRIER: return;  // a task runs on one thread
      case Op::LOAD:
        return set(u, render_load(text_, u, src_, addresses_.of(u, u->dtype.element()),
                                  alias_scopes_.suffix(u->src(0))));
      case Op::STORE:
        return render_store(text_, u, src_, addresses_.of(u, src_[2].dtype.element()),
                            alias_scopes_.suffix(u->src(0)));
      case Op::VECTORIZE: return set(u, render_vectorize(text_, u, src_));
      case Op::GEP: return set(u, render_gep(text_, u, src_[0]));
      default: break;
    }
    if (!is_alu(u->op)) llvm_ir::unexpected(u, "an op of linearized uops for a cpu");
    set(u, render_alu(text_, u, src_, target_));
  }

  void set(UOp u, const Value& v) { values_[u] = v; }

  // Tasks come first of all loops: what stands before them is the same for each task, so an
  // accumulator set there starts every one of them with its initial value.
  void begin_task(UOp u) {
    if (u->args[0] != static_cast<int64_t>(SpecialKind::Task)) llvm_ir::unexpected(u, "kind Task");
    if (task_ || !open_.empty()) llvm_ir::unexpected(u, "to be the only one, outside of loops");
    task_ = u;
    OpenScope& open = open_scope({}, false);
    open.first = Value::named("begin");
    open.limit = Value::named("end");
    start_loop(open, Scalar::Int64);
    set(u, render_cast(text_, open.counter, u->dtype));
  }

  void begin_loop(UOp u) {
    OpenScope& open = open_scope(scopes_[next_scope_++].accumulators, u->src(0)->vmin < 1);
    open.first = Value::constant(u->dtype, 0);
    open.limit = src_[0];
    start_loop(open, u->dtype);
    set(u, open.counter);
    for (UOp acc : open.accumulators) {
      open.phis.push_back(text_.fresh(acc->dtype));
      set(acc, open.phis.back());
    }
  }

  void begin_if() {
    OpenScope& open = open_scope(scopes_[next_scope_++].accumulators, true);
    enter(open, src_[0], {"then", open.number});
  }

  OpenScope& open_scope(std::span<const UOp> accumulators, bool may_skip) {
    OpenScope open{accumulators, next_number_++, block_, may_skip, 0, {}, {}, {}, {}, {}};
    addresses_.open_scope();
    for (UOp acc : accumulators) open.initial.push_back(values_[acc]);
    return open_.emplace_back(std::move(open));
  }

  // In do-while form, which is what LLVM would turn it into. The phis are written at the end, when
  // the values of the last iteration are known.
  void start_loop(OpenScope& open, DType counter) {
    Value enters;
    if (open.may_skip)
      enters = text_.define(Scalar::Bool, "icmp sgt ", Typed{open.limit}, ", ", open.first);
    enter(open, enters, {"loop", open.number});
    open.phis_at = text_.size();
    open.counter = text_.fresh(counter);
  }

  void end_loop() {
    OpenScope open = std::move(open_.back());
    open_.pop_back();
    DType t = open.counter.dtype;
    Value next = text_.define(t, "add nuw nsw ", Typed{open.counter}, ", 1");
    Value done = text_.define(Scalar::Bool, "icmp eq ", Typed{next}, ", ", open.limit);
    text_.line("br i1 ", done, ", label %end", open.number, ", label %loop", open.number);

    Text phis(256);
    put_phi(phis, open.counter, open.first, open.before, next, block_);
    for (size_t i = 0; i < open.phis.size(); ++i)
      put_phi(phis, open.phis[i], open.initial[i], open.before, values_[open.accumulators[i]],
              block_);
    text_.insert(open.phis_at, phis.take());
    leave(open);
  }

  void end_if() {
    OpenScope open = std::move(open_.back());
    open_.pop_back();
    text_.line("br label %end", open.number);
    leave(open);
  }

  void enter(const OpenScope& open, Value condition, Label body) {
    if (open.may_skip)
      text_.line("br i1 ", condition, ", label %", body, ", label %end", open.number);
    else text_.line("br label %", body);
    start_block(body);
  }

  void start_block(Label label) {
    text_.start_block(label);
    block_ = label;
    uops_in_block_ = 0;
  }

  // LLVM would join two blocks if it saw that the branch between them is always taken.
  void split_block() {
    is_split_ = true;
    Label next{"part", next_number_++};
    Value always = text_.define(Scalar::Bool, "icmp slt i64 %begin, %end");
    text_.line("br i1 ", always, ", label %", next, ", label %never");
    start_block(next);
  }

  // Where the scope may have been skipped, its accumulators are the initial or the last ones.
  void leave(const OpenScope& open) {
    addresses_.close_scope();
    Label last = block_;
    start_block({"end", open.number});
    if (!open.may_skip) return;
    for (size_t i = 0; i < open.initial.size(); ++i) {
      UOp acc = open.accumulators[i];
      Value merged = text_.fresh(acc->dtype);
      put_phi(text_, merged, open.initial[i], open.before, values_[acc], last);
      set(acc, merged);
    }
  }

  static void put_phi(Text& text, Value phi, Value a, Label from_a, Value b, Label from_b) {
    text.line(phi, " = phi ", phi.dtype, " [ ", a, ", %", from_a, " ], [ ", b, ", %", from_b, " ]");
  }

  void put_attributes() {
    int bits = std::max(128, 8 * target_.vector_bytes);
    text_.put_all("attributes #0 = { nounwind \"target-cpu\"=\"", target_.arch,
                  "\" \"target-features\"=\"", target_.features, "\" \"prefer-vector-width\"=\"",
                  bits,
                  "\" \"no-trapping-math\"=\"true\" \"denormal-fp-math\"=\"ieee,ieee\" "
                  "\"probe-stack\"=\"inline-asm\" }\n");
  }

  const std::string& name_;
  const LinearUOps& uops_;
  const Target& target_;
  AliasScopes alias_scopes_;
  Text text_;
  Values values_;
  Addresses addresses_;
  std::vector<Value> src_;     // of the uop at hand
  std::vector<Scope> scopes_;  // in order of their heads
  size_t next_scope_ = 0;
  int next_number_ = 0;  // of a scope's labels
  std::vector<OpenScope> open_;
  Label block_;  // that is being written
  int uops_in_block_ = 0;
  bool is_split_ = false;
  UOp task_ = nullptr;
};

}  // namespace

std::string render_llvm(const std::string& name, const LinearUOps& uops, const Target& target) {
  return Renderer(name, uops, target).run();
}

}  // namespace quern
