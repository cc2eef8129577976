#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quern/codegen/program.h"
#include "quern/codegen/render/llvm/render_llvm.h"
#include "quern/codegen/uop/eval.h"
#include "quern/codegen/uop/linear.h"
#include "quern/codegen/uop/uop.h"
#include "quern/devices/device.h"

// Kernels written by hand as linearized uops, and running them.
namespace quern::test {

// A list of uops under construction.
class Kernel {
 public:
  // Appends a uop; one that stands in the list is not repeated.
  UOp add(Op op, DType dtype, std::initializer_list<UOp> src, int64_t arg = 0,
          std::initializer_list<int64_t> args = {}) {
    return append(graph_->make(op, dtype, src, arg, args));
  }
  UOp append(UOp u) {
    if (std::ranges::find(list_, u) == list_.end()) list_.push_back(u);
    return u;
  }
  UOp constant(DType t, int64_t bits) { return add(Op::CONST, t, {}, bits); }
  UOp number(int64_t n) { return constant(Scalar::Int32, n); }
  UOp real(DType t, double value) { return append(graph_->constant_float(t, value)); }
  UOp input(DType t, int64_t size) { return buffer(t, size, false); }
  UOp output(DType t, int64_t size) { return buffer(t, size, true); }
  UOp task(int64_t size) {
    return add(Op::SPECIAL, Scalar::Int32, {number(size)}, 0,
               {static_cast<int64_t>(SpecialKind::Task)});
  }
  UOp range(UOp size) { return add(Op::RANGE, size->dtype, {size}, graph_->fresh(), {0}); }
  UOp range(int64_t size) { return range(number(size)); }
  void end(UOp range_or_if) {
    Op op = range_or_if->op == Op::IF ? Op::ENDIF : Op::END;
    add(op, Scalar::Void, {range_or_if});
  }
  UOp accumulator(UOp initial) {
    return add(Op::DEFINE_ACC, initial->dtype, {initial}, graph_->fresh());
  }
  UOp assign(UOp acc, UOp value) { return add(Op::ASSIGN, acc->dtype, {acc, value}); }
  UOp load(UOp from, UOp index, int lanes = 1) {
    return add(Op::LOAD, from->dtype.with_lanes(lanes), {from, index});
  }
  UOp load(UOp from, UOp index, UOp gate, UOp alternative) {
    return add(Op::LOAD, alternative->dtype, {from, index, gate, alternative});
  }
  void store(UOp to, UOp index, UOp value) { add(Op::STORE, Scalar::Void, {to, index, value}); }
  void store(UOp to, UOp index, UOp value, UOp gate) {
    add(Op::STORE, Scalar::Void, {to, index, value, gate});
  }
  // A binary op of two values of one type.
  UOp operator()(Op op, UOp a, UOp b) {
    return add(op, is_compare(op) ? DType(Scalar::Bool, a->dtype.lanes) : a->dtype, {a, b});
  }

  Graph& graph() { return *graph_; }
  const LinearUOps& list() const { return list_; }

  Program program(const Target& target, const std::string& name = "kernel") const {
    Program p;
    p.name = name;
    p.source = render_llvm(name, list_, target);
    p.target = target;
    for (UOp u : list_) {
      if (u->op == Op::DEFINE_GLOBAL)
        p.buffers.push_back({u->dtype, u->args[0], 0, 0, u->args[1] != 0, true});
      if (u->op == Op::SPECIAL) p.global_size[0] = u->src(0)->arg;
    }
    return p;
  }

 private:
  UOp buffer(DType t, int64_t size, bool written) {
    return add(Op::DEFINE_GLOBAL, t, {}, buffers_++, {size, written, 0, 0});
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  LinearUOps list_;
  int64_t buffers_ = 0;
};

// Elements of a buffer as lanes (eval.h).
struct Data {
  DType dtype;
  std::vector<int64_t> lanes;

  static Data zeros(DType t, size_t n) { return {t, std::vector<int64_t>(n)}; }
  static Data reals(DType t, std::initializer_list<double> values) {
    Data d{t, {}};
    for (double v : values) d.lanes.push_back(float_bits(round_to(t, v)));
    return d;
  }
  std::vector<double> reals() const {
    std::vector<double> values;
    for (int64_t lane : lanes) values.push_back(bits_float(lane));
    return values;
  }
};

inline void upload(Memory& memory, const Data& data) {
  size_t size = static_cast<size_t>(data.dtype.itemsize());
  for (size_t i = 0; i < data.lanes.size(); ++i) {
    uint64_t bits = to_storage(data.dtype, data.lanes[i]);
    memory.write(i * size, std::as_bytes(std::span(&bits, 1)).first(size));
  }
}

inline void download(Memory& memory, Data& data) {
  size_t size = static_cast<size_t>(data.dtype.itemsize());
  for (size_t i = 0; i < data.lanes.size(); ++i) {
    uint64_t bits = 0;
    memory.read(i * size, std::as_writable_bytes(std::span(&bits, 1)).first(size));
    data.lanes[i] = from_storage(data.dtype, bits);
  }
}

inline std::shared_ptr<Executable> build(Device& device, const Program& program) {
  return device.load(program, device.compile(program));
}

// Launches on copies of `data` and copies them back.
inline void launch(Device& device, Executable& executable, std::span<Data> data, int64_t tasks = 1,
                   std::span<const int32_t> vars = {}) {
  std::vector<MemoryRef> refs;
  for (const Data& d : data) {
    refs.push_back({device.allocate(d.lanes.size() * static_cast<size_t>(d.dtype.itemsize())), 0});
    upload(*refs.back().memory, d);
  }
  LaunchArgs args;
  args.buffers = refs;
  args.vars = vars;
  args.global_size[0] = tasks;
  executable.launch(args);
  for (size_t i = 0; i < refs.size(); ++i) download(*refs[i].memory, data[i]);
}

inline void run(Device& device, const Kernel& kernel, std::span<Data> data,
                std::span<const int32_t> vars = {}) {
  Program program = kernel.program(device.target());
  launch(device, *build(device, program), data, program.global_size[0].constant(), vars);
}

}  // namespace quern::test
