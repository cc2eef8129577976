#pragma once

// A tensor in its plainest form, to compare ShapeTrackers with, and random movement ops for both.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <rapidcheck.h>
#include <utility>
#include <vector>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"

namespace quern::model {

using Numbers = std::vector<int64_t>;

inline constexpr int64_t kMaxPositions = 400;

// From low to high in every case, not only in RapidCheck's late ones.
inline int64_t number(int64_t low, int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(low, high + 1));
}

inline size_t pick(size_t count) {
  return static_cast<size_t>(number(0, static_cast<int64_t>(count) - 1));
}

inline int64_t product_of(const Numbers& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

inline Numbers unravel_number(int64_t index, const Numbers& shape) {
  Numbers coords(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    coords[i] = index % shape[i];
    index /= shape[i];
  }
  return coords;
}

inline int64_t ravel(const Numbers& coords, const Numbers& shape) {
  int64_t index = 0;
  for (size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + coords[i];
  return index;
}

// What a tracker says at each position, in row-major order.
inline std::vector<IndexValue> contents(const ShapeTracker& tracker, const Numbers& values = {}) {
  Numbers shape;
  for (const SInt& size : tracker.shape()) shape.push_back(size.eval(values));
  std::vector<IndexValue> result;
  for (int64_t i = 0; i < product_of(shape); ++i)
    result.push_back(tracker.expr_index(unravel_number(i, shape), values));
  return result;
}

// The plainest tensor: the element number at every position, nothing where there is none.
struct Model {
  Numbers shape;
  std::vector<std::optional<int64_t>> data;

  static Model make(const Numbers& shape) {
    Model model{shape, {}};
    for (int64_t i = 0; i < product_of(shape); ++i) model.data.emplace_back(i);
    return model;
  }

  // By a tracker's own words.
  static Model of(const ShapeTracker& tracker, const Numbers& values) {
    Model model;
    for (const SInt& size : tracker.shape()) model.shape.push_back(size.eval(values));
    for (IndexValue at : contents(tracker, values))
      model.data.push_back(at.valid ? std::optional<int64_t>(at.index) : std::nullopt);
    return model;
  }

  // A tensor whose position `coords` is what this one has at source(coords), if there is such a
  // place.
  template <class Source>
  Model gather(const Numbers& new_shape, const Source& source) const {
    Model model{new_shape, {}};
    for (int64_t i = 0; i < product_of(new_shape); ++i) {
      Numbers at = source(unravel_number(i, new_shape));
      bool inside = true;
      for (size_t d = 0; d < at.size(); ++d) inside = inside && at[d] >= 0 && at[d] < shape[d];
      model.data.push_back(inside ? data[static_cast<size_t>(ravel(at, shape))] : std::nullopt);
    }
    return model;
  }
};

// A movement op with symbolic arguments; numbers come out of `eval`.
struct Movement {
  enum Kind { kPermute, kExpand, kPad, kShrink, kStride, kReshape } kind;
  std::vector<size_t> axes;
  Shape shape;
  std::vector<PadDim> pads;
  Mask parts;
  Numbers steps;
};

inline ShapeTracker apply(const ShapeTracker& tracker, const Movement& op,
                          const std::vector<VarBounds>& vars) {
  switch (op.kind) {
    case Movement::kPermute: return tracker.permute(op.axes);
    case Movement::kExpand: return tracker.expand(op.shape);
    case Movement::kPad: return tracker.pad(op.pads, vars);
    case Movement::kShrink: return tracker.shrink(op.parts, vars);
    case Movement::kStride: return tracker.stride(op.steps, vars);
    case Movement::kReshape: return tracker.reshape(op.shape, vars);
  }
  return tracker;
}

inline Model apply(const Model& model, const Movement& op, const Numbers& values) {
  Numbers shape = model.shape;
  Numbers at(shape.size());
  auto eval = [&](const SInt& x) { return x.eval(values); };
  switch (op.kind) {
    case Movement::kPermute:
      for (size_t i = 0; i < shape.size(); ++i) shape[i] = model.shape[op.axes[i]];
      return model.gather(shape, [&](const Numbers& coords) {
        for (size_t i = 0; i < at.size(); ++i) at[op.axes[i]] = coords[i];
        return at;
      });
    case Movement::kExpand:
      for (size_t i = 0; i < shape.size(); ++i) shape[i] = eval(op.shape[i]);
      return model.gather(shape, [&](const Numbers& coords) {
        for (size_t i = 0; i < at.size(); ++i) at[i] = model.shape[i] == 1 ? 0 : coords[i];
        return at;
      });
    case Movement::kPad:
      for (size_t i = 0; i < shape.size(); ++i)
        shape[i] += eval(op.pads[i].before + op.pads[i].after);
      return model.gather(shape, [&](const Numbers& coords) {
        for (size_t i = 0; i < at.size(); ++i) at[i] = coords[i] - eval(op.pads[i].before);
        return at;
      });
    case Movement::kShrink:
      for (size_t i = 0; i < shape.size(); ++i)
        shape[i] = eval(op.parts[i].end - op.parts[i].begin);
      return model.gather(shape, [&](const Numbers& coords) {
        for (size_t i = 0; i < at.size(); ++i) at[i] = coords[i] + eval(op.parts[i].begin);
        return at;
      });
    case Movement::kStride:
      for (size_t i = 0; i < shape.size(); ++i) {
        int64_t distance = std::abs(op.steps[i]);
        shape[i] = (shape[i] + distance - 1) / distance;
      }
      return model.gather(shape, [&](const Numbers& coords) {
        for (size_t i = 0; i < at.size(); ++i)
          at[i] = op.steps[i] > 0 ? coords[i] * op.steps[i]
                                  : model.shape[i] - 1 + coords[i] * op.steps[i];
        return at;
      });
    case Movement::kReshape:
      for (size_t i = 0; i < op.shape.size(); ++i) {
        if (i < shape.size()) shape[i] = eval(op.shape[i]);
        else shape.push_back(eval(op.shape[i]));
      }
      shape.resize(op.shape.size());
      return {shape, model.data};
  }
  return model;
}

// Another shape of the same size.
inline Shape reshaped(const Shape& shape) {
  Shape result = shape;
  switch (number(0, 3)) {
    case 0:  // one dimension less
      if (result.size() < 2) break;
      {
        size_t i = pick(result.size() - 1);
        result[i] *= result[i + 1];
        result.erase(result.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
      break;
    case 1:  // a dimension cut in two
      if (result.empty() || result.size() > 4) break;
      {
        size_t i = pick(result.size());
        int64_t factor = number(2, 4);
        std::optional<SInt> rest = divide_exact(result[i], factor);
        if (!rest) break;
        bool outer = number(0, 1) == 0;
        result[i] = outer ? SInt(factor) : *rest;
        result.insert(result.begin() + static_cast<ptrdiff_t>(i) + 1, outer ? *rest : SInt(factor));
      }
      break;
    case 2:  // other cuts altogether
      std::ranges::reverse(result);
      break;
    default:
      if (!result.empty() && result[0] == SInt(1)) result.erase(result.begin());
      else if (result.size() < 5)
        result.insert(result.begin() + static_cast<ptrdiff_t>(pick(result.size() + 1)), 1);
  }
  return result;
}

// `small` gives sizes that may be symbolic.
inline Movement some_movement(const Shape& shape, const std::function<SInt()>& small) {
  Movement op{static_cast<Movement::Kind>(number(0, 5)), {}, shape, {}, {}, {}};
  const size_t rank = shape.size();
  op.axes.resize(rank);
  std::iota(op.axes.begin(), op.axes.end(), size_t{0});
  for (size_t i = rank; i-- > 1;) std::swap(op.axes[i], op.axes[pick(i + 1)]);
  for (SInt& size : op.shape)
    if (size == SInt(1) && number(0, 1) == 0) size = small();
  for (const SInt& size : shape) {
    bool pad = number(0, 2) == 0;
    op.pads.push_back({pad ? small() : SInt(0), pad ? SInt(number(0, 2)) : SInt(0)});
    SInt begin = number(0, 2) == 0 ? small() : SInt(0);
    SInt end = number(0, 2) == 0 ? size - number(0, 2) : size;
    op.parts.push_back({begin, end});
    op.steps.push_back(number(0, 2) == 0 ? number(1, 3) * (number(0, 1) == 0 ? -1 : 1) : 1);
  }
  if (op.kind == Movement::kReshape) op.shape = reshaped(shape);
  return op;
}

struct Case {
  Shape shape;
  std::vector<Movement> ops;
  ShapeTracker tracker;
};

// A few movements of a small tensor. An op that is refused, or grows the tensor too much, is left
// out.
inline Case some_case(const std::function<SInt()>& small, const std::vector<VarBounds>& vars) {
  Shape shape;
  const int64_t rank = number(0, 4);
  for (int64_t i = 0; i < rank; ++i) shape.push_back(number(0, 3) == 0 ? SInt(1) : small());
  Case result{shape, {}, ShapeTracker::make(shape)};
  const int64_t length = number(0, 7);
  for (int64_t i = 0; i < length; ++i) {
    Movement op = some_movement(result.tracker.shape(), small);
    try {
      ShapeTracker next = apply(result.tracker, op, vars);
      if (next.size().bounds(vars).max > kMaxPositions) continue;
      result.tracker = std::move(next);
      result.ops.push_back(std::move(op));
    } catch (const AstError&) {
      continue;
    }
  }
  return result;
}

inline Case some_number_case() {
  return some_case([] { return SInt(number(0, 9) == 0 ? 0 : number(1, 5)); }, {});
}

inline Model model_of(const Case& tested, const Numbers& values) {
  Numbers shape;
  for (const SInt& size : tested.shape) shape.push_back(size.eval(values));
  Model model = Model::make(shape);
  for (const Movement& op : tested.ops) model = apply(model, op, values);
  return model;
}

inline void check_same(const ShapeTracker& tracker, const Model& model, const Numbers& values) {
  RC_ASSERT(tracker.rank() == model.shape.size());
  for (size_t i = 0; i < model.shape.size(); ++i)
    RC_ASSERT(tracker.shape()[i].eval(values) == model.shape[i]);
  for (size_t i = 0; i < model.data.size(); ++i) {
    IndexValue found =
        tracker.expr_index(unravel_number(static_cast<int64_t>(i), model.shape), values);
    RC_ASSERT(found.valid == model.data[i].has_value());
    if (found.valid) RC_ASSERT(found.index == *model.data[i]);
  }
}

inline IndexRange range_of(const Model& model) {
  IndexRange range{0, -1, true};
  for (const std::optional<int64_t>& element : model.data) {
    if (!element) continue;
    if (range.empty) range = {*element, *element, false};
    range.min = std::min(range.min, *element);
    range.max = std::max(range.max, *element);
  }
  return range;
}

// What real_strides and axis_is_masked say of an axis holds between all neighbours along it.
inline void check_strides(const ShapeTracker& tracker, const Model& model, const Numbers& values,
                          const std::vector<VarBounds>& vars) {
  const auto strides = tracker.real_strides(false, vars);
  const auto valid_strides = tracker.real_strides(true, vars);
  for (size_t axis = 0; axis < model.shape.size(); ++axis) {
    const bool masked = tracker.axis_is_masked(axis, vars);
    RC_ASSERT(!masked || !strides[axis]);
    for (size_t i = 0; i < model.data.size(); ++i) {
      Numbers coords = unravel_number(static_cast<int64_t>(i), model.shape);
      if (++coords[axis] >= model.shape[axis]) continue;
      std::optional<int64_t> here = model.data[i];
      std::optional<int64_t> there = model.data[static_cast<size_t>(ravel(coords, model.shape))];
      if (!masked) RC_ASSERT(here.has_value() == there.has_value());
      if (!here || !there) continue;
      if (strides[axis]) RC_ASSERT(*there - *here == strides[axis]->eval(values));
      if (valid_strides[axis]) RC_ASSERT(*there - *here == valid_strides[axis]->eval(values));
    }
  }
}

}  // namespace quern::model
