#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "quern/codegen/ast/ast.h"
#include "quern/codegen/ast/store_check.h"
#include "quern/codegen/error.h"
#include "quern/codegen/uop/eval.h"
#include "quern/codegen/uop/float_environment.h"

namespace quern {
namespace {

constexpr size_t kMaxRank = 32;
// A kernel of more nodes would take minutes to compile; it is no kernel but a program.
constexpr size_t kMaxNodes = 100'000;

uint64_t hash_of(const Shape& shape) {
  uint64_t h = shape.size();
  for (const SInt& size : shape) h = hash_mix(h, size.hash());
  return h;
}

uint64_t hash_of(const AstNode& n) {
  uint64_t h = hash_mix(static_cast<uint64_t>(n.op), static_cast<uint64_t>(n.dtype.scalar));
  for (NodeId x : n.sources()) h = hash_mix(h, x);
  for (uint64_t v : {uint64_t{n.shape}, uint64_t{n.tracker}, uint64_t{n.buffer}, uint64_t{n.var},
                     static_cast<uint64_t>(n.value), n.axes})
    h = hash_mix(h, v);
  return h;
}

std::string text(const Shape& shape) {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) names.push_back(fmt::format("v{}", i));
  std::string out = "[";
  for (const SInt& size : shape) out += (out.size() > 1 ? "," : "") + size.to_string(names);
  return out + "]";
}

// The element type that an Alu op on this type may have; says what it wants instead.
const char* wrong_type(Op op, DType t) {
  switch (op) {
    case Op::EXP2:
    case Op::LOG2:
    case Op::SIN:
    case Op::SQRT: return t.is_float() ? nullptr : "a float type";
    case Op::XOR: return t.is_float() ? "an integer type or bool" : nullptr;
    default: return nullptr;
  }
}

}  // namespace

uint32_t AstBuilder::add_buffer(BufferParam b) {
  size_t number = ast_.buffers_.size();
  if (b.size < 0) raise<AstError>("buffer {}: size {} is negative", number, b.size);
  int64_t bytes;
  if (__builtin_mul_overflow(b.size, int64_t{b.dtype.itemsize()}, &bytes))
    raise<AstError>("buffer {}: {} elements of {} are more than 2^63 bytes", number, b.size,
                    to_string(b.dtype));
  if (b.image_height != 0 || b.image_width != 0) {
    bool storable = b.dtype.scalar == Scalar::Float16 || b.dtype.scalar == Scalar::Float32;
    if (!storable)
      raise<AstError>("buffer {}: an image holds float16 or float32, not {}", number,
                      to_string(b.dtype));
    if (b.image_height <= 0 || b.image_width <= 0 ||
        int64_t{b.image_height} * b.image_width * 4 != b.size)
      raise<AstError>("buffer {}: an image of {} x {} texels has {} elements, not {}", number,
                      b.image_height, b.image_width, int64_t{b.image_height} * b.image_width * 4,
                      b.size);
  }
  ast_.buffers_.push_back(b);
  return static_cast<uint32_t>(number);
}

uint32_t AstBuilder::add_var(VarParam v) {
  if (v.name.empty()) raise<AstError>("a variable has no name");
  for (const VarParam& other : ast_.vars_)
    if (other.name == v.name) raise<AstError>("variable {} is declared twice", v.name);
  if (v.min > v.max || v.min < std::numeric_limits<int32_t>::min() ||
      v.max > std::numeric_limits<int32_t>::max())
    raise<AstError>("variable {}: [{}, {}] is no range of int32", v.name, v.min, v.max);
  ast_.var_bounds_.push_back({v.min, v.max});
  ast_.vars_.push_back(std::move(v));
  return static_cast<uint32_t>(ast_.vars_.size() - 1);
}

uint32_t AstBuilder::intern(const Shape& shape) {
  uint64_t h = hash_of(shape);
  auto [at, end] = shape_by_hash_.equal_range(h);
  for (; at != end; ++at)
    if (ast_.shapes_[at->second] == shape) return at->second;
  ast_.shapes_.push_back(shape);
  shape_by_hash_.emplace(h, static_cast<uint32_t>(ast_.shapes_.size() - 1));
  return static_cast<uint32_t>(ast_.shapes_.size() - 1);
}

uint32_t AstBuilder::intern(ShapeTracker tracker) {
  uint64_t h = tracker.hash();
  auto [at, end] = tracker_by_hash_.equal_range(h);
  for (; at != end; ++at)
    if (ast_.trackers_[at->second] == tracker) return at->second;
  ast_.trackers_.push_back(std::move(tracker));
  tracker_by_hash_.emplace(h, static_cast<uint32_t>(ast_.trackers_.size() - 1));
  return static_cast<uint32_t>(ast_.trackers_.size() - 1);
}

NodeId AstBuilder::add(AstNode n) {
  uint64_t h = hash_of(n);
  auto [at, end] = by_hash_.equal_range(h);
  for (; at != end; ++at)
    if (ast_.nodes_[at->second] == n) return at->second;
  if (ast_.nodes_.size() == kMaxNodes)
    raise<AstError>("the kernel has more than {} nodes", kMaxNodes);
  ast_.nodes_.push_back(n);
  by_hash_.emplace(h, static_cast<NodeId>(ast_.nodes_.size() - 1));
  return static_cast<NodeId>(ast_.nodes_.size() - 1);
}

void AstBuilder::check_source(NodeId src) const {
  if (src >= ast_.nodes_.size())
    raise<AstError>("source {} does not exist; there are {} nodes before this one", src,
                    ast_.nodes_.size());
  if (ast_.nodes_[src].op == Op::STORE)
    raise<AstError>("source {} is a STORE, which has no value", src);
}

AstNode AstBuilder::with_tracker(Op op, DType dtype, ShapeTracker tracker) {
  if (dtype.scalar == Scalar::Void || dtype.is_index() || dtype.lanes != 1)
    raise<AstError>("{}: {} is no element type of a kernel", name(op), to_string(dtype));
  Shape shape(tracker.shape().begin(), tracker.shape().end());
  if (shape.size() > kMaxRank)
    raise<AstError>("{}: {} axes; at most {} are supported", name(op), shape.size(), kMaxRank);
  AstNode n;
  n.op = op;
  n.dtype = dtype;
  n.shape = intern(shape);
  n.tracker = intern(std::move(tracker));
  return n;
}

// A plain buffer is accessed in its own type; an image in float32, or in its own.
void AstBuilder::check_access(Op op, uint32_t buffer, DType dtype) const {
  if (buffer >= ast_.buffers_.size())
    raise<AstError>("{} of buffer {}; the kernel has {}", name(op), buffer, ast_.buffers_.size());
  const BufferParam& param = ast_.buffers_[buffer];
  bool widens = param.image_height > 0 && dtype == DType(Scalar::Float32);
  if (dtype != param.dtype && !widens)
    raise<AstError>("{} of {} from or to buffer {}, which holds {}; use a CAST", name(op),
                    to_string(dtype), buffer, to_string(param.dtype));
}

NodeId AstBuilder::load(uint32_t buffer, DType dtype, ShapeTracker tracker) {
  check_access(Op::LOAD, buffer, dtype);
  tracker.check(ast_.buffers_[buffer].size, ast_.var_bounds_);
  tracker = tracker.simplify(ast_.var_bounds_);
  AstNode n = with_tracker(Op::LOAD, dtype, std::move(tracker));
  n.buffer = buffer;
  return add(n);
}

NodeId AstBuilder::constant(DType dtype, int64_t bits, ShapeTracker tracker) {
  FloatEnvironment environment;
  tracker.check(std::nullopt, ast_.var_bounds_);
  tracker = tracker.simplify(ast_.var_bounds_);
  AstNode n = with_tracker(Op::CONST, dtype, std::move(tracker));
  n.value = dtype.is_float() ? float_bits(round_to(dtype, bits_float(bits))) : wrap_to(dtype, bits);
  return add(n);
}

NodeId AstBuilder::variable(DType dtype, uint32_t var, ShapeTracker tracker) {
  if (var >= ast_.vars_.size())
    raise<AstError>("CONST of variable {}; the kernel has {}", var, ast_.vars_.size());
  tracker.check(std::nullopt, ast_.var_bounds_);
  tracker = tracker.simplify(ast_.var_bounds_);
  AstNode n = with_tracker(Op::CONST, dtype, std::move(tracker));
  n.var = var;
  return add(n);
}

NodeId AstBuilder::alu(Op op, std::span<const NodeId> src) {
  if (!is_alu(op) || !(info(op).stages & OpInfo::kA) ||
      info(op).arity != static_cast<int>(src.size()))
    raise<AstError>("{} of {} sources is no op of a kernel", name(op), src.size());
  for (NodeId x : src) check_source(x);
  const AstNode& last = ast_.nodes_[src.back()];
  AstNode n;
  n.op = op;
  n.dtype = is_compare(op) ? DType(Scalar::Bool) : last.dtype;
  n.shape = last.shape;
  n.nsrc = static_cast<uint8_t>(src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    const AstNode& x = ast_.nodes_[src[i]];
    n.src[i] = src[i];
    DType expected = op == Op::WHERE && i == 0 ? DType(Scalar::Bool) : last.dtype;
    if (x.dtype != expected)
      raise<AstError>("{}: source {} has dtype {}, expected {}", name(op), i, to_string(x.dtype),
                      to_string(expected));
    if (x.shape != last.shape)
      raise<AstError>("{}: source {} has shape {}, the last one {}; they must agree", name(op), i,
                      text(ast_.shapes_[x.shape]), text(ast_.shapes_[last.shape]));
  }
  if (const char* expected = wrong_type(op, last.dtype))
    raise<AstError>("{} of {}; expected {}", name(op), to_string(last.dtype), expected);
  return add(n);
}

NodeId AstBuilder::cast(Op op, NodeId src, DType dtype) {
  check_source(src);
  AstNode n = ast_.nodes_[src];
  if (dtype.scalar == Scalar::Void || dtype.is_index() || dtype.lanes != 1)
    raise<AstError>("{} to {}: no element type of a kernel", name(op), to_string(dtype));
  if (op == Op::BITCAST && dtype.bits() != n.dtype.bits())
    raise<AstError>("BITCAST of {} to {}: the sizes differ", to_string(n.dtype), to_string(dtype));
  if (op == Op::BITCAST && (dtype.is_bool() != n.dtype.is_bool()))
    raise<AstError>("BITCAST of {} to {}: a bool has no defined bits", to_string(n.dtype),
                    to_string(dtype));
  AstNode made;
  made.op = op;
  made.dtype = dtype;
  made.shape = n.shape;
  made.nsrc = 1;
  made.src[0] = src;
  return add(made);
}

NodeId AstBuilder::reduce(Op op, NodeId src, std::span<const int64_t> axes) {
  check_source(src);
  Shape shape = this->shape(src);
  AstNode n;
  n.op = op;
  n.dtype = dtype(src);
  n.nsrc = 1;
  n.src[0] = src;
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      raise<AstError>("{}: axis {} is out of range for shape {}", name(op), axis, text(shape));
    if (axis <= last)
      raise<AstError>("{}: the axes must ascend, and {} follows {}", name(op), axis, last);
    last = axis;
    n.axes |= uint64_t{1} << axis;
    shape[static_cast<size_t>(axis)] = 1;
  }
  n.shape = intern(shape);
  return add(n);
}

NodeId AstBuilder::expand(NodeId src, Shape shape) {
  check_source(src);
  const Shape& from = this->shape(src);
  bool fits = from.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = from[i] == shape[i] || from[i] == SInt(1);
  if (!fits)
    raise<AstError>("EXPAND of {} to {}: only axes of size 1 can be repeated", text(from),
                    text(shape));
  for (const SInt& size : shape)
    if (size.bounds(ast_.var_bounds_).min < 0)
      raise<AstError>("EXPAND to {}: a negative size", text(shape));
  AstNode n;
  n.op = Op::EXPAND;
  n.dtype = dtype(src);
  n.nsrc = 1;
  n.src[0] = src;
  n.shape = intern(shape);
  return n.shape == ast_.nodes_[src].shape ? src : add(n);
}

NodeId AstBuilder::store(uint32_t buffer, DType dtype, ShapeTracker tracker, NodeId src) {
  check_source(src);
  check_access(Op::STORE, buffer, dtype);
  tracker.check(ast_.buffers_[buffer].size, ast_.var_bounds_);
  tracker = tracker.simplify(ast_.var_bounds_);
  check_distinct(tracker, ast_.var_bounds_);
  AstNode n = with_tracker(Op::STORE, dtype, std::move(tracker));
  if (n.shape != ast_.nodes_[src].shape)
    raise<AstError>("STORE: the view has shape {}, the value {}", text(ast_.shapes_[n.shape]),
                    text(shape(src)));
  n.buffer = buffer;
  n.nsrc = 1;
  n.src[0] = src;
  return add(n);
}

Ast AstBuilder::finish(std::span<const NodeId> outputs) {
  if (outputs.empty()) raise<AstError>("the kernel has no outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] >= ast_.nodes_.size() || ast_.nodes_[outputs[i]].op != Op::STORE)
      raise<AstError>("output {}: node {} is no STORE", i, outputs[i]);
    const AstNode& n = ast_.nodes_[outputs[i]];
    if (n.buffer != i)
      raise<AstError>("output {} stores to buffer {}; output i must store to buffer i", i,
                      n.buffer);
    if (n.shape != ast_.nodes_[outputs[0]].shape)
      raise<AstError>("output {} has shape {}, output 0 has {}; they must agree", i,
                      text(ast_.shapes_[n.shape]),
                      text(ast_.shapes_[ast_.nodes_[outputs[0]].shape]));
    ast_.buffers_[n.buffer].written = true;
  }
  std::vector<bool> needed(ast_.nodes_.size(), false);
  for (NodeId id : outputs) needed[id] = true;
  for (NodeId id = static_cast<NodeId>(needed.size()); id-- > 0;) {
    if (!needed[id]) {
      if (ast_.nodes_[id].op == Op::STORE)
        raise<AstError>("node {} is a STORE but not an output", id);
      continue;
    }
    for (NodeId x : ast_.nodes_[id].sources()) needed[x] = true;
  }
  keep(needed);
  ast_.outputs_.clear();
  for (NodeId id : outputs)
    ast_.outputs_.push_back(
        static_cast<NodeId>(std::count(needed.begin(), needed.begin() + id, true)));
  for (const AstNode& n : ast_.nodes_)
    if (n.op == Op::LOAD) ast_.buffers_[n.buffer].read = true;
  Ast done = std::move(ast_);
  *this = AstBuilder();
  return done;
}

// Drops nodes that no output needs, and the shapes and trackers that only they had.
void AstBuilder::keep(const std::vector<bool>& needed) {
  Ast old = std::move(ast_);
  ast_ = Ast();
  shape_by_hash_.clear();
  tracker_by_hash_.clear();
  ast_.buffers_ = std::move(old.buffers_);
  ast_.vars_ = std::move(old.vars_);
  ast_.var_bounds_ = std::move(old.var_bounds_);
  std::vector<NodeId> renamed(needed.size(), AstNode::kNone);
  for (NodeId id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    AstNode n = old.nodes_[id];
    n.shape = intern(old.shapes_[n.shape]);
    if (n.tracker != AstNode::kNone) n.tracker = intern(old.trackers_[n.tracker]);
    for (NodeId& x : std::span(n.src, n.nsrc)) x = renamed[x];
    renamed[id] = static_cast<NodeId>(ast_.nodes_.size());
    ast_.nodes_.push_back(n);
  }
}

}  // namespace quern
