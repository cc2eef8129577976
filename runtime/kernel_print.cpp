#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "quern/codegen/uop/eval.h"
#include "quern/runtime/kernel_file.h"

namespace quern {
namespace {

using Json = nlohmann::ordered_json;

class RecordPrinter {
 public:
  explicit RecordPrinter(const KernelRecord& kernel) : kernel_(kernel), ast_(kernel.ast) {
    for (const VarParam& var : ast_.vars()) names_.push_back(var.name);
  }

  std::string print() const {
    Json json;
    json["id"] = kernel_.id;
    json["nodes"] = Json::array();
    for (const AstNode& n : ast_.nodes()) json["nodes"].push_back(node(n));
    json["outputs"] = Json::array();
    for (NodeId id : ast_.outputs()) json["outputs"].push_back(id);
    json["buffers"] = Json::array();
    for (const BufferParam& param : ast_.buffers()) json["buffers"].push_back(buffer(param));
    json["vars"] = Json::array();
    for (size_t i = 0; i < ast_.vars().size(); ++i) {
      const VarParam& var = ast_.vars()[i];
      json["vars"].push_back({{"name", var.name},
                              {"min", var.min},
                              {"max", var.max},
                              {"value", kernel_.var_values[i]}});
    }
    json["input"] = kernel_.input == InputKind::Signed ? "signed" : "positive";
    json["flops"] = kernel_.flops();
    json["bytes"] = kernel_.bytes();
    json["expect"] = Json::array();
    for (const Expectation& e : kernel_.expect) json["expect"].push_back(expectation(e));
    return json.dump();
  }

 private:
  Json sint(const SInt& value) const {
    if (value.is_constant()) return value.constant();
    return value.to_string(names_);
  }

  Json shape(const Shape& shape) const {
    Json list = Json::array();
    for (const SInt& size : shape) list.push_back(sint(size));
    return list;
  }

  Json views(const ShapeTracker& tracker) const {
    Json list = Json::array();
    for (const View& view : tracker.views()) {
      Json mask = nullptr;
      if (view.is_masked()) {
        mask = Json::array();
        for (const MaskDim& dim : view.mask())
          mask.push_back(Json::array({sint(dim.begin), sint(dim.end)}));
      }
      list.push_back({{"shape", shape(view.shape())},
                      {"strides", shape(view.strides())},
                      {"offset", sint(view.offset())},
                      {"mask", std::move(mask)}});
    }
    return list;
  }

  static Json lane(DType dtype, int64_t bits) {
    if (dtype.scalar == Scalar::UInt64) return static_cast<uint64_t>(bits);
    if (!dtype.is_float()) return bits;
    double value = bits_float(bits);
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    return value;
  }

  Json node(const AstNode& n) const {
    Json json;
    json["op"] = name(n.op);
    bool has_dtype = n.tracker != AstNode::kNone || n.op == Op::CAST || n.op == Op::BITCAST;
    if (n.op == Op::CONST)
      json["value"] =
          n.var == AstNode::kNone ? lane(n.dtype, n.value) : Json{{"var", names_[n.var]}};
    if (n.nsrc > 0) json["src"] = n.sources();
    if (n.is_reduce()) {
      json["axis"] = Json::array();
      for (int axis = 0; axis < 64; ++axis)
        if (n.axes >> axis & 1) json["axis"].push_back(axis);
    }
    if (n.op == Op::EXPAND) json["shape"] = shape(ast_.shape(n));
    if (n.buffer != AstNode::kNone) json["buffer"] = n.buffer;
    if (has_dtype) json["dtype"] = to_string(n.dtype);
    if (n.tracker != AstNode::kNone) json["views"] = views(ast_.tracker(n));
    return json;
  }

  static Json buffer(const BufferParam& param) {
    Json json;
    json["dtype"] = to_string(param.dtype);
    if (param.image_height > 0)
      json["image"] = Json::array({param.image_height, param.image_width, 4});
    json["size"] = param.size;
    return json;
  }

  Json expectation(const Expectation& e) const {
    Json at = Json::array(), value = Json::array(), tol = Json::array();
    for (const Expectation::Sample& sample : e.samples) {
      at.push_back(sample.at);
      value.push_back(lane(ast_.buffers()[e.buffer].dtype, sample.value));
      tol.push_back(sample.tolerance);
    }
    return {{"buffer", e.buffer}, {"at", at}, {"value", value}, {"tol", tol}};
  }

  const KernelRecord& kernel_;
  const Ast& ast_;
  std::vector<std::string> names_;
};

}  // namespace

std::string print_kernel(const KernelRecord& kernel) { return RecordPrinter(kernel).print(); }

}  // namespace quern
