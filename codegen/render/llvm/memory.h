#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "quern/codegen/render/llvm/text.h"
#include "quern/codegen/uop/linear.h"
#include "quern/codegen/uop/uop.h"

// Parts of the LLVM renderer: memory accesses and lanes.
namespace quern::llvm_ir {

// Metadata by which LLVM knows that a buffer that is written overlaps no other one: a scope for
// each such buffer, and for every access the scopes that it is not in.
class AliasScopes {
 public:
  explicit AliasScopes(const LinearUOps& uops);

  // What is appended to an access of a DEFINE_GLOBAL; empty for others.
  std::string suffix(UOp buffer) const;
  // The definitions, for the end of the text.
  void define(Text& text) const;

 private:
  // Numbers of metadata nodes: the domain, the scopes, a list for each scope alone, a list of the
  // others for each scope, the list of all.
  size_t scope(size_t i) const { return 1 + i; }
  size_t alone(size_t i) const { return 1 + written_.size() + i; }
  size_t others(size_t i) const { return 1 + 2 * written_.size() + i; }
  size_t all() const { return 1 + 3 * written_.size(); }

  std::vector<int64_t> written_;  // buffer indices; none if there is nothing to tell
};

// Where an access whose scalar gate is false goes instead of its buffer: loads to `%zeros`, stores
// to `%sink`. Bytes needed of each, 0 for none.
struct Dummies {
  int64_t zeros = 0;
  int64_t sink = 0;

  void require(UOp access);
  void define(Text& text) const;
};

// The value of each uop that has been rendered. An accumulator, by itself or by its ASSIGN, is
// whatever it was last set to.
class Values {
 public:
  explicit Values(const LinearUOps& uops);

  // Where the uop stands in the list.
  size_t position(UOp u) const { return position_[u->id]; }
  Value& operator[](UOp u) { return values_[position(u->op == Op::ASSIGN ? u->src(0) : u)]; }

 private:
  std::vector<uint32_t> position_;  // by id
  std::vector<Value> values_;       // by position
};

// The address of each access. An address x + c becomes a pointer to element x, which accesses with
// other constants share, and a constant offset from it, which costs nothing in the machine's code:
// that is what LLVM would make of it with more passes, and it leaves less for those that run.
class Addresses {
 public:
  Addresses(const LinearUOps& uops, Text& text, Values& values);

  // The sum is part of addresses only and needs no value of its own.
  bool is_folded(UOp u) const { return folded_[values_.position(u)]; }
  Value of(UOp access, DType element);
  // Pointers made in a scope are forgotten at its end.
  void open_scope() { marks_.push_back(made_.size()); }
  void close_scope();

 private:
  static bool is_offset(UOp u);
  Value to_int64(UOp index);
  Value element(UOp buffer, UOp index, DType type, bool in_bounds);
  Value advance(Value pointer, Value offset, DType type, bool in_bounds);

  Text& text_;
  Values& values_;
  std::vector<bool> folded_;                      // by position
  std::unordered_map<uint64_t, Value> pointers_;  // by buffer, index and element type
  std::vector<uint64_t> made_;
  std::vector<size_t> marks_;
};

// `src` are the values of the sources, `pointer` is where the access would go without a gate,
// `suffix` ends the line.
Value render_load(Text& text, UOp u, std::span<const Value> src, Value pointer,
                  const std::string& suffix);
void render_store(Text& text, UOp u, std::span<const Value> src, Value pointer,
                  const std::string& suffix);

Value render_vectorize(Text& text, UOp u, std::span<const Value> src);
Value render_gep(Text& text, UOp u, Value v);
// One scalar in all lanes.
Value broadcast(Text& text, Value v, int lanes);

}  // namespace quern::llvm_ir
