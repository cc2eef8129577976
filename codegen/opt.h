#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern {

// Transformations of a schedule. `axis` counts as in the printed schedule; for UNROLL from the
// first reduce axis. `amount` 0 means the whole axis.
//   UPCAST   splits an axis by `amount` and keeps that many results at once, as vector lanes
//   UNROLL   the same for a reduce axis: `amount` iterations at once
//   THREAD   splits a global axis into `amount` pieces that run as tasks on the cpu's pool
#define QUERN_OPT_OPS(X) X(UPCAST) X(UNROLL) X(THREAD)

enum class OptOp : uint8_t {
#define QUERN_X(name) name,
  QUERN_OPT_OPS(QUERN_X)
#undef QUERN_X
};

struct Opt {
  OptOp op = OptOp::UPCAST;
  int axis = 0;
  int64_t amount = 0;
  bool operator==(const Opt&) const = default;
};

// "UPCAST:0:4", and a list of them with commas. parse_opts throws ScheduleError and names the item
// that it cannot read; an empty text is an empty list.
std::string to_string(const Opt& opt);
std::string to_string(const std::vector<Opt>& opts);
std::vector<Opt> parse_opts(std::string_view text);

}  // namespace quern
