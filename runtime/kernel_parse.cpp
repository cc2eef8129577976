#include <algorithm>
#include <string>
#include <utility>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/float_environment.h"
#include "quern/runtime/json_reader.h"
#include "quern/runtime/kernel_file.h"

namespace quern {
namespace {

// AstBuilder refuses more nodes as well, but only after the work of reading them.
constexpr size_t kMaxNodes = 100'000;
// Every message names it.
constexpr size_t kMaxId = 200;

// Errors of the builder know the ops, but not where these stand in the JSON.
template <class F>
auto in(const JsonValue& where, F&& make) {
  try {
    return make();
  } catch (const JsonError&) {
    throw;
  } catch (const AstError& e) {
    where.fail(e.what());
  }
}

class RecordParser {
 public:
  explicit RecordParser(const JsonValue& json) : json_(json) {}

  KernelRecord parse() {
    if (json_.has("id")) {
      record_.id = json_.field("id").string();
      if (record_.id.size() > kMaxId)
        json_.field("id").fail(
            fmt::format("{} bytes; at most {} are supported", record_.id.size(), kMaxId));
    }
    if (json_.has("vars")) parse_vars(json_.field("vars"));
    parse_buffers(json_.field("buffers"));
    parse_nodes(json_.field("nodes"));
    std::vector<NodeId> outputs;
    JsonValue list = json_.field("outputs");
    for (size_t i = 0, n = list.size(); i < n; ++i)
      outputs.push_back(node_at(list.at(i), nodes_.size()));
    record_.ast = in(json_, [&] { return builder_.finish(outputs); });
    if (json_.has("input")) parse_input(json_.field("input"));
    if (json_.has("expect")) parse_expect(json_.field("expect"));
    return std::move(record_);
  }

 private:
  void parse_vars(const JsonValue& list) {
    for (size_t i = 0, n = list.size(); i < n; ++i) {
      JsonValue var = list.at(i);
      VarParam param{var.field("name").string(), var.field("min").integer(),
                     var.field("max").integer()};
      in(var, [&] { return builder_.add_var(param); });
      int64_t middle = param.min + (param.max - param.min) / 2;
      record_.var_values.push_back(
          var.has("value") ? var.field("value").integer(param.min, param.max) : middle);
    }
  }

  void parse_buffers(const JsonValue& list) {
    for (size_t i = 0, n = list.size(); i < n; ++i) {
      JsonValue buffer = list.at(i);
      BufferParam param;
      param.dtype = buffer.field("dtype").dtype();
      param.size = buffer.field("size").integer(0, INT64_MAX);
      if (buffer.has("image") && !buffer.field("image").is_null()) {
        JsonValue image = buffer.field("image");
        if (image.size() != 3) image.fail("expected [height, width, 4]");
        param.image_height = static_cast<int>(image.at(0).integer(1, INT32_MAX));
        param.image_width = static_cast<int>(image.at(1).integer(1, INT32_MAX));
        image.at(2).integer(4, 4);
      }
      in(buffer, [&] { return builder_.add_buffer(param); });
    }
  }

  void parse_nodes(const JsonValue& list) {
    size_t n = list.size();
    if (n > kMaxNodes) list.fail(fmt::format("{} nodes; at most {} are supported", n, kMaxNodes));
    for (size_t i = 0; i < n; ++i) {
      JsonValue node = list.at(i);
      std::string name = node.field("op").string();
      JsonValue named = node.called(fmt::format("{}: node {} ({})", json_.where(), i, name));
      std::optional<Op> op = parse_op(name);
      if (!op || !(info(*op).stages & OpInfo::kA)) named.fail("there is no such op in a kernel");
      nodes_.push_back(in(named, [&] { return parse_node(*op, named); }));
    }
  }

  NodeId parse_node(Op op, const JsonValue& node) {
    switch (op) {
      case Op::LOAD:
        return builder_.load(buffer_of(node), node.field("dtype").dtype(), tracker_of(node));
      case Op::CONST: return parse_const(node);
      case Op::STORE:
        return builder_.store(buffer_of(node), node.field("dtype").dtype(), tracker_of(node),
                              sources(node, 1)[0]);
      case Op::CAST:
      case Op::BITCAST: return builder_.cast(op, sources(node, 1)[0], node.field("dtype").dtype());
      case Op::SUM:
      case Op::MAX_REDUCE: {
        std::vector<int64_t> axes;
        JsonValue list = node.field("axis");
        for (size_t i = 0, n = list.size(); i < n; ++i) axes.push_back(list.at(i).integer());
        return builder_.reduce(op, sources(node, 1)[0], axes);
      }
      case Op::EXPAND: return builder_.expand(sources(node, 1)[0], shape_of(node.field("shape")));
      default: return builder_.alu(op, sources(node, static_cast<size_t>(info(op).arity)));
    }
  }

  NodeId parse_const(const JsonValue& node) {
    DType dtype = node.field("dtype").dtype();
    JsonValue value = node.field("value");
    if (!value.is_object())
      return builder_.constant(dtype, value.lane(dtype, true), tracker_of(node));
    std::string name = value.field("var").string();
    std::optional<uint32_t> var = find_var(name);
    if (!var) value.fail(fmt::format("the kernel has no variable '{}'", name));
    return builder_.variable(dtype, *var, tracker_of(node));
  }

  NodeId node_at(const JsonValue& index, size_t count) const {
    int64_t i = index.integer();
    if (i < 0 || i >= static_cast<int64_t>(count))
      index.fail(
          fmt::format("{} is not the index of an earlier node; there are {} of them", i, count));
    return nodes_[static_cast<size_t>(i)];
  }

  std::vector<NodeId> sources(const JsonValue& node, size_t count) const {
    JsonValue list = node.field("src");
    if (list.size() != count)
      list.fail(fmt::format("expected {} sources, found {}", count, list.size()));
    std::vector<NodeId> src;
    for (size_t i = 0; i < count; ++i) src.push_back(node_at(list.at(i), nodes_.size()));
    return src;
  }

  uint32_t buffer_of(const JsonValue& node) const {
    int64_t count = static_cast<int64_t>(builder_.buffers().size());
    JsonValue field = node.field("buffer");
    int64_t i = field.integer();
    if (i < 0 || i >= count)
      field.fail(fmt::format("there is no buffer {}; there are {}", i, count));
    return static_cast<uint32_t>(i);
  }

  std::optional<uint32_t> find_var(std::string_view name) const {
    std::span<const VarParam> vars = builder_.vars();
    for (size_t i = 0; i < vars.size(); ++i)
      if (vars[i].name == name) return static_cast<uint32_t>(i);
    return std::nullopt;
  }

  SInt sint(const JsonValue& value) const {
    if (!value.is_string()) return value.integer();
    return in(value, [&] {
      return SInt::parse(value.string(), [this](std::string_view name) { return find_var(name); });
    });
  }

  Shape shape_of(const JsonValue& list) const {
    Shape shape;
    for (size_t i = 0, n = list.size(); i < n; ++i) shape.push_back(sint(list.at(i)));
    return shape;
  }

  View view_of(const JsonValue& view) const {
    Shape shape = shape_of(view.field("shape")), strides = shape_of(view.field("strides"));
    Mask mask;
    if (view.has("mask") && !view.field("mask").is_null()) {
      JsonValue list = view.field("mask");
      if (list.size() != shape.size())
        list.fail(fmt::format("expected null or {} ranges, found {}", shape.size(), list.size()));
      for (size_t i = 0; i < shape.size(); ++i) {
        JsonValue range = list.at(i);
        if (range.size() != 2) range.fail("expected [begin, end]");
        mask.push_back({sint(range.at(0)), sint(range.at(1))});
      }
    }
    SInt offset = sint(view.field("offset"));
    return in(view, [&] { return View::make(shape, strides, offset, mask); });
  }

  ShapeTracker tracker_of(const JsonValue& node) const {
    JsonValue list = node.field("views");
    std::vector<View> views;
    for (size_t i = 0, n = list.size(); i < n; ++i) views.push_back(view_of(list.at(i)));
    if (views.empty()) list.fail("expected one view or more");
    return ShapeTracker(std::move(views));
  }

  void parse_input(const JsonValue& value) {
    std::string kind = value.string();
    if (kind != "signed" && kind != "positive") value.fail_expected("\"signed\" or \"positive\"");
    record_.input = kind == "signed" ? InputKind::Signed : InputKind::Positive;
  }

  void parse_expect(const JsonValue& list) {
    int64_t outputs = static_cast<int64_t>(record_.ast.outputs().size());
    for (size_t i = 0, n = list.size(); i < n; ++i) {
      JsonValue item = list.at(i);
      Expectation expectation;
      expectation.buffer = static_cast<uint32_t>(item.field("buffer").integer(0, outputs - 1));
      const BufferParam& param = record_.ast.buffers()[expectation.buffer];
      JsonValue at = item.field("at"), value = item.field("value"), tol = item.field("tol");
      if (value.size() != at.size() || tol.size() != at.size())
        item.fail("expected as many values and tolerances as positions");
      for (size_t k = 0, samples = at.size(); k < samples; ++k)
        expectation.samples.push_back({at.at(k).integer(0, param.size - 1),
                                       value.at(k).lane(param.dtype, false), tol.at(k).number()});
      record_.expect.push_back(std::move(expectation));
    }
  }

  JsonValue json_;
  KernelRecord record_;
  AstBuilder builder_;
  std::vector<NodeId> nodes_;
};

}  // namespace

KernelRecord parse_kernel(std::string_view text) {
  FloatEnvironment environment;
  nlohmann::ordered_json json = parse_json(text);
  std::string where = "kernel";
  if (json.is_object())
    if (auto id = json.find("id"); id != json.end() && id->is_string())
      where = fmt::format("kernel {}", id->get<std::string>().substr(0, kMaxId));
  return RecordParser(JsonValue(json, where)).parse();
}

}  // namespace quern
