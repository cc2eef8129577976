#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quern/devices/cpu/cpu.h"
#include "tests/devices/cpu_kernel.h"

// Every op on every type over values at the edges, against eval.h: scalar and in vectors, for this
// processor and for lesser ones.
namespace quern {
namespace {

using test::Data;
using test::Kernel;

const std::vector<Scalar> kIntegers = {Scalar::Int8,   Scalar::UInt8, Scalar::Int16,
                                       Scalar::UInt16, Scalar::Int32, Scalar::UInt32,
                                       Scalar::Int64,  Scalar::UInt64};

std::vector<Scalar> computed_types() {
  std::vector<Scalar> types = kIntegers;
  types.insert(types.end(), {Scalar::Bool, Scalar::Float32, Scalar::Float64});
  return types;
}

std::vector<int64_t> edges(DType t) {
  std::vector<int64_t> out;
  if (t.is_bool()) return {0, 1};
  if (t.is_float()) {
    double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,       0.5,          1.0,
                     1.5,       2.5,          3.0,
                     7.0,       100.7,        127.5,
                     128.0,     255.9,        256.0,
                     32768.0,   65504.0,      65519.9,
                     65520.0,   65536.5,      0x1p23 + 1,
                     0x1p31,    0x1p32,       0x1.fffffep62,
                     0x1p63,    0x1p64,       1e-40,
                     5e-8,      1e-5,         1e10,
                     1e30,      3.4e38,       1e300,
                     0x1p-1074, 2049.0000001, 0x1.002000001p0,
                     inf,       std::nan("")})
      for (double x : {v, -v}) out.push_back(float_bits(round_to(t, x)));
    return out;
  }
  for (int64_t v : {0,  1,  2,   3,   5,   7,   8,     100,   -1,         -2,      -3,
                    -7, -8, 127, 128, 255, 256, 65535, 65536, 2147483647, 16777217})
    out.push_back(wrap_to(t, v));
  for (int64_t v : {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, int64_t{1} << 32,
                    int64_t{-2147483648}, int64_t{9007199254740993}, int64_t{0x4000000000000401}})
    out.push_back(wrap_to(t, v));
  out.push_back(t.min_int());
  out.push_back(t.max_int());
  return out;
}

std::vector<Op> ops_of(DType t) {
  std::vector<Op> ops = {Op::NEG, Op::ADD,   Op::SUB,   Op::MUL,   Op::DIV,   Op::MOD,
                         Op::MAX, Op::CMPLT, Op::CMPEQ, Op::WHERE, Op::MULACC};
  if (t.is_float()) ops.insert(ops.end(), {Op::SQRT, Op::TRUNC});
  else ops.insert(ops.end(), {Op::XOR, Op::AND, Op::OR, Op::FLOORDIV, Op::FLOORMOD});
  return ops;
}

std::string show(DType t, int64_t lane) {
  return t.is_float() ? std::to_string(bits_float(lane)) : std::to_string(lane);
}

bool same(DType t, int64_t a, int64_t b) {
  if (!t.is_float()) return a == b;
  double x = bits_float(a), y = bits_float(b);
  return a == b || (std::isnan(x) && std::isnan(y));
}

// The op's definition leaves two results open.
bool is_allowed(Op op, DType t, int64_t got, std::span<const int64_t> src) {
  if (same(t, got, eval(op, src.size() > 1 && is_compare(op) ? t : t, t, src))) return true;
  if (!t.is_float()) return false;
  double a = bits_float(src[0]);
  if (op == Op::MAX) return a == 0 && bits_float(src[1]) == 0 && bits_float(got) == 0;
  if (op != Op::MULACC) return false;
  double product = round_to(t, a * bits_float(src[1]));
  return same(t, got, float_bits(round_to(t, product + bits_float(src[2]))));
}

std::map<std::string, Target> targets() {
  std::map<std::string, Target> out;
  Target host = host_cpu_target();
  out["host"] = host;
#ifdef __x86_64__
  out["baseline"] = cpu_target("x86-64", "");
  if (host.vector_bytes >= 32) out["avx2"] = cpu_target("haswell", "+avx,+avx2,+fma,+f16c");
#endif
  return out;
}

class CpuOps : public testing::TestWithParam<std::pair<std::string, int>> {
 protected:
  int lanes() const { return GetParam().second; }
  std::shared_ptr<Device> device() const {
    static std::map<std::string, std::shared_ptr<Device>> devices;
    std::shared_ptr<Device>& d = devices[GetParam().first];
    if (!d) d = make_cpu_device({.threads = 1, .target = targets().at(GetParam().first)});
    return d;
  }

  // All combinations of two values, and a third; a multiple of the lanes.
  std::vector<Data> operands(DType t) const {
    std::vector<int64_t> values = edges(t);
    std::vector<Data> out(3, Data{t, {}});
    for (size_t i = 0; i < values.size() * values.size() || i % 16; ++i) {
      out[0].lanes.push_back(values[i % values.size()]);
      out[1].lanes.push_back(values[i / values.size() % values.size()]);
      out[2].lanes.push_back(values[(i * 7 + i / values.size()) % values.size()]);
    }
    return out;
  }
};

UOp make_op(Kernel& k, Op op, std::span<const UOp> x) {
  DType t = x[0]->dtype;
  switch (info(op).arity) {
    case 1: return k.add(op, t, {x[0]});
    case 2: return k(op, x[0], x[1]);
    default: break;
  }
  if (op == Op::WHERE) return k.add(op, t, {k(Op::CMPLT, x[0], x[1]), x[1], x[2]});
  return k.add(op, t, {x[0], x[1], x[2]});
}

TEST_P(CpuOps, Alu) {
  for (Scalar scalar : computed_types()) {
    DType t(scalar);
    std::vector<Data> data = operands(t);
    size_t n = data[0].lanes.size();
    int64_t size = static_cast<int64_t>(n);
    Kernel k;
    UOp in[3] = {k.input(t, size), k.input(t, size), k.input(t, size)};
    std::vector<UOp> out;
    for (Op op : ops_of(t)) {
      out.push_back(k.output(is_compare(op) ? DType(Scalar::Bool) : t, size));
      data.push_back(Data::zeros(out.back()->dtype, n));
    }
    UOp i = k.range(size / lanes());
    UOp at = k(Op::MUL, i, k.number(lanes()));
    UOp x[3];
    for (int j = 0; j < 3; ++j) x[j] = k.load(in[j], at, lanes());
    for (size_t j = 0; j < out.size(); ++j) k.store(out[j], at, make_op(k, ops_of(t)[j], x));
    k.end(i);
    test::run(*device(), k, data);

    for (size_t j = 0; j < out.size(); ++j) {
      Op op = ops_of(t)[j];
      for (size_t e = 0; e < n; ++e) {
        int64_t src[3] = {data[0].lanes[e], data[1].lanes[e], data[2].lanes[e]};
        int64_t got = data[3 + j].lanes[e];
        std::span<const int64_t> used(src, static_cast<size_t>(info(op).arity));
        bool right = is_compare(op) ? got == eval(op, t, Scalar::Bool, used)
                     : op == Op::WHERE
                         ? same(t, got, eval(Op::CMPLT, t, Scalar::Bool, used) ? src[1] : src[2])
                         : is_allowed(op, t, got, used);
        ASSERT_TRUE(right) << name(op) << " " << to_string(t) << " of " << show(t, src[0]) << ", "
                           << show(t, src[1]) << ", " << show(t, src[2]) << " is " << show(t, got);
      }
    }
  }
}

TEST_P(CpuOps, Cast) {
  std::vector<Scalar> types = computed_types();
  if (device()->target().native_float16_cast) types.push_back(Scalar::Float16);
  for (Scalar scalar : types) {
    DType from(scalar);
    std::vector<int64_t> values = edges(from);
    values.resize((values.size() + 15) / 16 * 16);
    std::vector<Data> data = {{from, values}};
    int64_t size = static_cast<int64_t>(values.size());
    Kernel k;
    UOp in = k.input(from, size);
    std::vector<UOp> out;
    for (Scalar to : types) {
      out.push_back(k.output(to, size));
      data.push_back(Data::zeros(to, values.size()));
    }
    UOp i = k.range(size / lanes());
    UOp at = k(Op::MUL, i, k.number(lanes()));
    UOp x = k.load(in, at, lanes());
    for (UOp o : out) k.store(o, at, k.add(Op::CAST, o->dtype.with_lanes(lanes()), {x}));
    k.end(i);
    test::run(*device(), k, data);

    for (size_t j = 0; j < types.size(); ++j) {
      for (size_t e = 0; e < values.size(); ++e) {
        int64_t want = eval(Op::CAST, from, types[j], {&data[0].lanes[e], 1});
        ASSERT_TRUE(same(types[j], data[1 + j].lanes[e], want))
            << "CAST " << to_string(from) << " to " << to_string(types[j]) << " of "
            << show(from, data[0].lanes[e]) << " is " << show(types[j], data[1 + j].lanes[e]);
      }
    }
  }
}

TEST_P(CpuOps, Bitcast) {
  const std::pair<Scalar, Scalar> pairs[] = {
      {Scalar::Float32, Scalar::Int32},  {Scalar::UInt32, Scalar::Float32},
      {Scalar::Float64, Scalar::UInt64}, {Scalar::Int64, Scalar::Float64},
      {Scalar::Int16, Scalar::Float16},  {Scalar::Float16, Scalar::UInt16},
      {Scalar::Int8, Scalar::UInt8},     {Scalar::UInt8, Scalar::Bool},
      {Scalar::Bool, Scalar::Int8}};
  for (auto [from, to] : pairs) {
    std::vector<int64_t> values = edges(from);
    values.resize((values.size() + 15) / 16 * 16);
    Data data[] = {{from, values}, Data::zeros(to, values.size())};
    Kernel k;
    UOp in = k.input(from, static_cast<int64_t>(values.size()));
    UOp out = k.output(to, static_cast<int64_t>(values.size()));
    UOp i = k.range(static_cast<int64_t>(values.size()) / lanes());
    UOp at = k(Op::MUL, i, k.number(lanes()));
    k.store(out, at, k.add(Op::BITCAST, DType(to, lanes()), {k.load(in, at, lanes())}));
    k.end(i);
    test::run(*device(), k, data);
    for (size_t e = 0; e < values.size(); ++e)
      ASSERT_TRUE(same(to, data[1].lanes[e], eval(Op::BITCAST, from, to, {&data[0].lanes[e], 1})))
          << to_string(DType(from)) << " to " << to_string(DType(to)) << " " << values[e];
  }
}

// Constant divisors and dividends of one sign take the short cuts.
TEST_P(CpuOps, DivisionByConstants) {
  const Op ops[] = {Op::DIV, Op::MOD, Op::FLOORDIV, Op::FLOORMOD};
  const int64_t divisors[] = {0, 1, 2, 3, 7, 8, 64, -1, -2, -3, -8};
  for (Scalar scalar : kIntegers) {
    DType t(scalar), v(scalar, lanes());
    std::vector<int64_t> values = edges(t);
    values.resize((values.size() + 15) / 16 * 16);
    std::vector<Data> data = {{t, values}};
    int64_t size = static_cast<int64_t>(values.size());
    Kernel k;
    UOp in = k.input(t, size);
    std::vector<UOp> out;
    for (size_t j = 0; j < 2 * std::size(ops) * std::size(divisors); ++j) {
      out.push_back(k.output(t, size));
      data.push_back(Data::zeros(t, values.size()));
    }
    UOp i = k.range(size / lanes());
    UOp at = k(Op::MUL, i, k.number(lanes()));
    UOp x = k.load(in, at, lanes());
    UOp positive = k(Op::AND, x, k.constant(v, t.max_int()));
    size_t next = 0;
    for (UOp dividend : {x, positive})
      for (Op op : ops)
        for (int64_t d : divisors)
          k.store(out[next++], at, k(op, dividend, k.constant(v, wrap_to(t, d))));
    k.end(i);
    test::run(*device(), k, data);

    next = 1;
    for (bool masked : {false, true})
      for (Op op : ops)
        for (int64_t d : divisors) {
          for (size_t e = 0; e < values.size(); ++e) {
            int64_t src[2] = {masked ? values[e] & t.max_int() : values[e], wrap_to(t, d)};
            ASSERT_EQ(data[next].lanes[e], eval(op, t, t, src))
                << name(op) << " " << to_string(t) << " " << src[0] << " by " << src[1];
          }
          ++next;
        }
  }
}

TEST_P(CpuOps, Shifts) {
  for (Scalar scalar : kIntegers) {
    DType t(scalar), v(scalar, lanes());
    std::vector<int64_t> values = edges(t);
    values.resize((values.size() + 15) / 16 * 16);
    std::vector<Data> data = {{t, values}};
    int64_t size = static_cast<int64_t>(values.size());
    const int64_t amounts[] = {0, 1, 3, t.bits() - 1};
    Kernel k;
    UOp in = k.input(t, size);
    std::vector<UOp> out;
    for (int j = 0; j < 8; ++j) {
      out.push_back(k.output(t, size));
      data.push_back(Data::zeros(t, values.size()));
    }
    UOp i = k.range(size / lanes());
    UOp at = k(Op::MUL, i, k.number(lanes()));
    UOp x = k.load(in, at, lanes());
    for (size_t j = 0; j < 8; ++j)
      k.store(out[j], at, k(j < 4 ? Op::SHL : Op::SHR, x, k.constant(v, amounts[j % 4])));
    k.end(i);
    test::run(*device(), k, data);
    for (size_t j = 0; j < 8; ++j)
      for (size_t e = 0; e < values.size(); ++e) {
        int64_t src[2] = {values[e], amounts[j % 4]};
        ASSERT_EQ(data[1 + j].lanes[e], eval(j < 4 ? Op::SHL : Op::SHR, t, t, src))
            << to_string(t) << " " << src[0] << " by " << src[1];
      }
  }
}

std::vector<std::pair<std::string, int>> parameters() {
  std::vector<std::pair<std::string, int>> out;
  for (const auto& [name, target] : targets())
    for (int lanes : {1, 8, 16}) out.emplace_back(name, lanes);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuOps, testing::ValuesIn(parameters()), [](const auto& p) {
  return p.param.first + "_" + std::to_string(p.param.second);
});

}  // namespace
}  // namespace quern
