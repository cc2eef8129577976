#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/api.h"

namespace quern {

// From where an opt counts its axis in the printed schedule.
enum class OptAxis : uint8_t {
  Result,     // the first axis, up to the reduce axes
  Any,        // the first axis
  Reduce,     // the first group, block or reduce axis
  Ungrouped,  // the first block or reduce axis
  None,       // there is no axis
};

// Transformations of a schedule, X(Op, what its axis counts from). Each splits the axis by
// `amount`, where 0 means its whole size; what is split off is the inner part, unless it says
// outer.
//   UPCAST     that many results at once, as vector lanes
//   UPCASTMID  the same for the results, but while a grouped reduce runs each of them has a work
//              item of its own
//   UNROLL     that many steps of a reduce at once
//   LOCAL      that many work items of one group
//   GROUP      a reduce in two stages: that many work items of a group sum parts of it, which then
//              meet in local memory
//   GROUPTOP   the same; outer
//   NOLOCALS   leaves the size of work groups to the launch; has no axis and no amount
//   PADTO      rounds the axis up to a multiple of `amount`; the steps beyond its end do nothing
//   TILE       of a result: that many results are kept in scratch memory while the blocks of a
//              reduce go by (cpu only). Of a reduce: its steps become blocks of that many steps,
//              outside of the tile's loop
//   THREAD     that many tasks for the cpu's pool; outer
#define QUERN_OPT_OPS(X) \
  X(UPCAST, Result)      \
  X(UPCASTMID, Result)   \
  X(UNROLL, Reduce)      \
  X(LOCAL, Result)       \
  X(GROUP, Ungrouped)    \
  X(GROUPTOP, Ungrouped) \
  X(NOLOCALS, None)      \
  X(PADTO, Any)          \
  X(TILE, Any)           \
  X(THREAD, Result)

enum class OptOp : uint8_t {
#define QUERN_X(name, axis) name,
  QUERN_OPT_OPS(QUERN_X)
#undef QUERN_X
};

inline constexpr OptAxis kOptAxis[] = {
#define QUERN_X(name, axis) OptAxis::axis,
    QUERN_OPT_OPS(QUERN_X)
#undef QUERN_X
};
inline constexpr int kOptOpCount = static_cast<int>(sizeof kOptAxis / sizeof *kOptAxis);
constexpr OptAxis axis_of(OptOp op) { return kOptAxis[static_cast<int>(op)]; }

struct Opt {
  OptOp op = OptOp::UPCAST;
  int axis = 0;
  int64_t amount = 0;
  bool operator==(const Opt&) const = default;
};

// "UPCAST:0:4", "NOLOCALS", and a list of them with commas. parse_opts throws ScheduleError and
// names the item that it cannot read; an empty text is an empty list.
QUERN_API std::string to_string(const Opt& opt);
QUERN_API std::string to_string(const std::vector<Opt>& opts);
QUERN_API std::vector<Opt> parse_opts(std::string_view text);

}  // namespace quern
