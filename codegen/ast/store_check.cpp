#include "quern/codegen/ast/store_check.h"

#include <algorithm>
#include <vector>

#include "quern/codegen/error.h"

namespace quern {
namespace {

constexpr int64_t kMaxEnumerated = 1'000'000;

// Strides nest if each is beyond all that the smaller ones reach together.
bool strides_nest(const View& view, std::span<const VarBounds> vars) {
  struct Dim {
    SInt stride;
    SInt last;  // the greatest coordinate, counted from the first
  };
  std::vector<Dim> dims;
  for (size_t d = 0; d < view.rank(); ++d) {
    SInt count = view.is_masked() ? view.mask()[d].end - view.mask()[d].begin : view.shape()[d];
    if (count.bounds(vars).max <= 1) continue;
    VarBounds stride = view.strides()[d].bounds(vars);
    if (stride.min <= 0 && stride.max >= 0) return false;
    dims.push_back({stride.max < 0 ? -view.strides()[d] : view.strides()[d], count - 1});
  }
  std::ranges::stable_sort(dims, {}, [&](const Dim& d) { return d.stride.bounds(vars).max; });
  SInt reach = 0;
  for (const Dim& d : dims) {
    if (!proves_le(reach + 1, d.stride, vars)) return false;
    reach += d.stride * d.last;
  }
  return true;
}

bool enumerated_distinct(const ShapeTracker& tracker, std::span<const int64_t> values) {
  std::vector<int64_t> shape, coords(tracker.rank(), 0), seen;
  for (const SInt& size : tracker.shape()) shape.push_back(size.eval(values));
  if (std::ranges::any_of(shape, [](int64_t size) { return size <= 0; })) return true;
  for (;;) {
    IndexValue at = tracker.expr_index(coords, values);
    if (at.valid) seen.push_back(at.index);
    size_t d = coords.size();
    while (d > 0 && ++coords[d - 1] == shape[d - 1]) coords[--d] = 0;
    if (d == 0) break;
  }
  std::ranges::sort(seen);
  return std::ranges::adjacent_find(seen) == seen.end();
}

}  // namespace

void check_distinct(const ShapeTracker& tracker, std::span<const VarBounds> vars) {
  bool nests =
      std::ranges::all_of(tracker.views(), [&](const View& v) { return strides_nest(v, vars); });
  if (nests) return;
  if (tracker.size().bounds(vars).max > kMaxEnumerated)
    raise<AstError>("STORE: cannot tell that no two positions of {} are one element",
                    tracker.to_string());
  std::vector<int64_t> greatest;
  for (const VarBounds& v : vars) greatest.push_back(v.max);
  if (!enumerated_distinct(tracker, greatest))
    raise<AstError>("STORE: two positions of {} are one element; each may be written once",
                    tracker.to_string());
}

}  // namespace quern
