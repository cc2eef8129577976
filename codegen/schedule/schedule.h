#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/ast/ast.h"
#include "quern/codegen/schedule/iteration_space.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/codegen/target.h"

namespace quern {

// The kinds of axis in the order in which they stand in a schedule, X(Kind, letter in its name, ANSI
// colour, what an iteration is).
#define QUERN_AXIS_KINDS(X)                                                      \
  X(Thread, 't', 94, "a task of the cpu's pool")                                 \
  X(Global, 'g', 34, "an independent result: a work group, or a step of a loop") \
  X(Local, 'l', 36, "a work item of a group")                                    \
  X(Tile, 'T', 96, "an independent result, kept in scratch memory")              \
  X(Mid, 'm', 37, "a work item while a grouped reduce runs, a lane after it")    \
  X(Group, 'G', 32, "a work item that sums a part of a reduce")                  \
  X(Block, 'B', 91, "a block of steps of a reduce")                              \
  X(Reduce, 'R', 31, "a step of a reduce")                                       \
  X(Unroll, 'u', 35, "a step of a reduce, several at once")                      \
  X(Upcast, 'U', 33, "an independent result, several at once")

enum class AxisKind : uint8_t {
#define QUERN_X(kind, letter, colour, text) kind,
  QUERN_AXIS_KINDS(QUERN_X)
#undef QUERN_X
};

const char* to_string(AxisKind kind);

// One loop of a schedule: `size` steps of `stride` along axis `base` of the simplified iteration
// space.
struct Axis {
  AxisKind kind = AxisKind::Global;
  SInt size = 1;
  int base = 0;
  int64_t stride = 1;

  bool operator==(const Axis&) const = default;
  bool is_lane() const { return kind == AxisKind::Upcast || kind == AxisKind::Unroll; }
};

// An AST's iteration space as a list of axes, changed by opts. (AST, target, applied opts) names a
// schedule fully; the AST and the target must outlive it.
//
// The axes are those of the simplified iteration space (iteration_space.h). An axis that some
// reduce sums over is a reduce axis, also where the results of that reduce are used along the same
// axis again (softmax). Axes stand in the order of their kinds, unrolled and upcast ones in the
// order in which they were made.
class QUERN_API Schedule {
 public:
  Schedule(const Ast& ast, const Target& target);

  // Throws ScheduleError with the reason, and leaves the schedule as it is, if the opt is illegal
  // (check.cpp has the rules).
  void apply(const Opt& opt);
  void apply(std::span<const Opt> opts);

  const Ast& ast() const { return *ast_; }
  const Target& target() const { return *target_; }
  std::span<const Axis> axes() const { return axes_; }
  const std::vector<Opt>& applied_opts() const { return applied_; }
  // NOLOCALS was applied.
  bool has_free_local_size() const { return no_locals_; }

  // Positions in axes(): the first axis of this kind or one that stands later.
  int first(AxisKind kind) const;
  int first_reduce() const { return first(AxisKind::Group); }
  int first_lane() const { return first(AxisKind::Unroll); }
  // Positions in axes() that an op may name, begin and end; its axis 0 is `begin`.
  std::pair<int, int> axes_of(OptOp op) const;
  bool has(AxisKind kind) const;
  // Product of the sizes of the axes of a kind.
  int64_t count(AxisKind kind) const;
  // Lanes that one result vector has, and with unrolled axes included.
  int64_t upcast_lanes() const { return count(AxisKind::Upcast) * count(AxisKind::Mid); }
  int64_t all_lanes() const { return upcast_lanes() * count(AxisKind::Unroll); }
  // Work items of a group.
  int64_t items() const;

  int rank() const { return static_cast<int>(space_.full_shape.size()); }
  const IterationSpace& space() const { return space_; }
  bool is_reduced(int base) const { return space_.reduced >> base & 1; }
  // The axes of the space that PADTO made longer, as bits.
  uint64_t padded() const;
  // Those of which an axis of the schedule is of that kind.
  uint64_t bases(AxisKind kind) const;
  const ShapeTracker& tracker(const AstNode& n) const { return space_.trackers[n.tracker]; }
  const Shape& shape(const AstNode& n) const { return space_.shapes[n.shape]; }
  // Some LOAD reads a buffer that is also written.
  bool is_in_place() const;

  // "r_32_16R_4U": E for elementwise, r for reduces, C for a copy, the number of outputs if there
  // are several, then the axes; [A-Za-z0-9_] only.
  std::string name() const;
  // A line for each axis with its kind, size and stride, and the opts; `colour` for a terminal.
  std::string print(bool colour) const;

 private:
  // The opt with its axis as a position in axes() and its amount spelled out, or ScheduleError.
  Opt checked(const Opt& opt) const;
  void check_op(const Opt& opt, int axis, int64_t amount) const;
  // What limits the schedule as a whole, after `opt`.
  void check_limits(const Opt& opt) const;
  void split(int axis, int64_t amount, AxisKind kind, bool inner);
  void pad(int axis, int64_t amount);

  const Ast* ast_;
  const Target* target_;
  IterationSpace space_;
  std::vector<Axis> axes_;
  bool no_locals_ = false;
  std::vector<Opt> applied_;
};

// The default schedule of the target, as opts to apply in order. Deterministic.
QUERN_API std::vector<Opt> default_opts(const Ast& ast, const Target& target);
// A random walk over legal opts of at most `steps` steps, repeatable from the seed.
QUERN_API std::vector<Opt> random_opts(const Ast& ast, const Target& target, uint64_t seed,
                                       int steps = 4);

}  // namespace quern
