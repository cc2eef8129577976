#include "tests/ast_eval.h"

#include "quern/codegen/uop/eval.h"

namespace quern::test {
namespace {

using Sizes = std::vector<int64_t>;

class Evaluator {
 public:
  Evaluator(const Ast& ast, std::vector<Values> buffers, const std::vector<int64_t>& vars)
      : ast_(ast), buffers_(std::move(buffers)), original_(buffers_), vars_(vars) {}

  std::vector<Values> run() {
    for (const AstNode& n : ast_.nodes()) values_.push_back(node(n));
    return std::move(buffers_);
  }

 private:
  Sizes sizes(const AstNode& n) const {
    Sizes result;
    for (const SInt& size : ast_.shape(n)) result.push_back(size.eval(vars_));
    return result;
  }

  // Calls f(position in row-major order, coordinates).
  template <class F>
  static void walk(const Sizes& sizes, F&& f) {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    Sizes coords(sizes.size());
    for (int64_t i = 0; i < count; ++i) {
      f(static_cast<size_t>(i), coords);
      for (size_t d = sizes.size(); d-- > 0 && ++coords[d] == sizes[d];) coords[d] = 0;
    }
  }

  static int64_t count(const Sizes& sizes) {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }

  // Of coordinates in a shape in which some axes have size 1.
  static size_t position(const Sizes& sizes, const Sizes& coords) {
    int64_t at = 0;
    for (size_t d = 0; d < sizes.size(); ++d) at = at * sizes[d] + (sizes[d] == 1 ? 0 : coords[d]);
    return static_cast<size_t>(at);
  }

  std::vector<int64_t> node(const AstNode& n) {
    Sizes shape = sizes(n);
    std::vector<int64_t> out(static_cast<size_t>(count(shape)));
    switch (n.op) {
      case Op::LOAD:
      case Op::CONST: walk(shape, [&](size_t i, const Sizes& c) { out[i] = leaf(n, c); }); break;
      case Op::STORE: walk(shape, [&](size_t i, const Sizes& c) { store(n, i, c); }); break;
      case Op::SUM:
      case Op::MAX_REDUCE: reduce(n, shape, out); break;
      case Op::EXPAND: {
        Sizes from = sizes(ast_.node(n.src[0]));
        walk(shape,
             [&](size_t i, const Sizes& c) { out[i] = values_[n.src[0]][position(from, c)]; });
        break;
      }
      default:
        for (size_t i = 0; i < out.size(); ++i) out[i] = alu(n, i);
    }
    return out;
  }

  int64_t leaf(const AstNode& n, const Sizes& coords) const {
    IndexValue at = ast_.tracker(n).expr_index(coords, vars_);
    if (!at.valid) return 0;
    if (n.op == Op::CONST)
      return n.var == AstNode::kNone ? n.value : cast(Scalar::Int32, n.dtype, vars_[n.var]);
    const Values& buffer = original_[n.buffer];
    return cast(buffer.dtype, n.dtype, buffer.lanes.at(static_cast<size_t>(at.index)));
  }

  void store(const AstNode& n, size_t i, const Sizes& coords) {
    IndexValue at = ast_.tracker(n).expr_index(coords, vars_);
    if (!at.valid) return;
    Values& buffer = buffers_[n.buffer];
    int64_t value = cast(ast_.node(n.src[0]).dtype, n.dtype, values_[n.src[0]][i]);
    buffer.lanes.at(static_cast<size_t>(at.index)) = cast(n.dtype, buffer.dtype, value);
  }

  void reduce(const AstNode& n, const Sizes& shape, std::vector<int64_t>& out) {
    Op op = n.op == Op::SUM ? Op::ADD : Op::MAX;
    bool is_half = n.dtype.is_float() && n.dtype.bits() == 16;
    DType wide = is_half && op == Op::ADD ? DType(Scalar::Float32) : n.dtype;
    std::fill(out.begin(), out.end(), reduce_identity(op, wide));
    std::vector<bool> started(out.size());
    walk(sizes(ast_.node(n.src[0])), [&](size_t i, const Sizes& c) {
      size_t to = position(shape, c);
      int64_t operands[] = {out[to], cast(n.dtype, wide, values_[n.src[0]][i])};
      out[to] = started[to] ? eval(op, wide, wide, operands) : operands[1];
      started[to] = true;
    });
    for (int64_t& value : out) value = cast(wide, n.dtype, value);
  }

  int64_t alu(const AstNode& n, size_t i) const {
    int64_t src[3] = {};
    for (size_t k = 0; k < n.nsrc; ++k) src[k] = values_[n.src[k]][i];
    return eval(n.op, ast_.node(n.src[n.nsrc - 1u]).dtype, n.dtype, {src, n.nsrc});
  }

  static int64_t cast(DType from, DType to, int64_t lane) {
    return from == to ? lane : eval(Op::CAST, from, to, {&lane, 1});
  }

  const Ast& ast_;
  std::vector<Values> buffers_, original_;
  const std::vector<int64_t>& vars_;
  std::vector<std::vector<int64_t>> values_;
};

}  // namespace

std::vector<Values> evaluate(const Ast& ast, std::vector<Values> buffers,
                             const std::vector<int64_t>& vars) {
  return Evaluator(ast, std::move(buffers), vars).run();
}

}  // namespace quern::test
