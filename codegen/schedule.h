#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/ast.h"
#include "codegen/iteration_space.h"
#include "codegen/opt.h"
#include "codegen/target.h"

namespace quern {

// The kinds of axis, X(Kind, letter in the printed schedule, ANSI colour, what an iteration is).
#define QUERN_AXIS_KINDS(X)                                      \
  X(Global, 'g', 34, "an independent result; a loop on the cpu") \
  X(Thread, 't', 36, "a task of the cpu's pool")                 \
  X(Reduce, 'R', 31, "a step of a reduce")                       \
  X(Unroll, 'u', 35, "a step of a reduce, several at once")      \
  X(Upcast, 'U', 33, "an independent result, several at once")

enum class AxisKind : uint8_t {
#define QUERN_X(kind, letter, colour, text) kind,
  QUERN_AXIS_KINDS(QUERN_X)
#undef QUERN_X
};

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
// schedule fully; the AST must outlive it.
//
// The axes are those of the simplified iteration space (iteration_space.h). An axis that some
// reduce sums over is a reduce axis, also where the results of that reduce are used along the same
// axis again (softmax). Axes stand in the order thread, global, reduce, then unrolled and upcast
// ones in the order in which they were made.
class Schedule {
 public:
  Schedule(const Ast& ast, const Target& target);

  // Throws ScheduleError, and leaves the schedule as it is, if the opt is illegal: no such axis, of
  // the wrong kind, symbolic, not divisible by the amount, or beyond the limits of lanes.
  void apply(const Opt& opt);
  void apply(std::span<const Opt> opts);

  const Ast& ast() const { return *ast_; }
  const Target& target() const { return *target_; }
  std::span<const Axis> axes() const { return axes_; }
  const std::vector<Opt>& applied_opts() const { return applied_; }
  // First axis of a kind that is reduced, and first lane axis: positions in axes().
  int first_reduce() const;
  int first_lane() const;
  // Lanes that one result vector has, and with unrolled axes included.
  int64_t upcast_lanes() const;
  int64_t all_lanes() const;

  int rank() const { return static_cast<int>(space_.full_shape.size()); }
  const IterationSpace& space() const { return space_; }
  bool is_reduced(int base) const { return space_.reduced >> base & 1; }
  const ShapeTracker& tracker(const AstNode& n) const { return space_.trackers[n.tracker]; }
  const Shape& shape(const AstNode& n) const { return space_.shapes[n.shape]; }

  // "r_32_16R_4U": E for elementwise, r for reduces, C for a copy, the number of outputs if there
  // are several, then the axes; [A-Za-z0-9_] only.
  std::string name() const;
  // A line for each axis with its kind, size and stride, and the opts; `colour` for a terminal.
  std::string print(bool colour) const;

 private:
  void split(int axis, int64_t amount, AxisKind kind, bool inner);
  Opt checked(const Opt& opt) const;

  const Ast* ast_;
  const Target* target_;
  IterationSpace space_;
  std::vector<Axis> axes_;
  std::vector<Opt> applied_;
};

// The default schedule of the target, as opts to apply in order. Deterministic.
std::vector<Opt> default_opts(const Ast& ast, const Target& target);
// A random walk over legal opts of at most `steps` steps, repeatable from the seed.
std::vector<Opt> random_opts(const Ast& ast, const Target& target, uint64_t seed, int steps = 4);

}  // namespace quern
