#include "quern/codegen/target.h"

#include <algorithm>

#include <fmt/format.h>

namespace quern {

int Target::alu_lanes(DType dtype) const {
  return std::max(1, vector_bytes / std::max(1, dtype.itemsize()));
}

int Target::memory_lanes(DType dtype) const {
  return std::max(1, memory_bytes / std::max(1, dtype.itemsize()));
}

std::string Target::describe() const {
  return fmt::format(
      "{} arch={} features={} language={} vector={} memory={} aligned={} masked={} local={} "
      "shared={} "
      "shared_max={} scratch_max={} global_max={},{},{} local_max={},{},{} group_max={} "
      "registers={} fma={} "
      "contract={} "
      "f16cast={} f64={}",
      name, arch, features, static_cast<int>(language), vector_bytes, memory_bytes, aligned_vectors,
      masked_memory, has_local, has_shared, shared_max, scratch_max, global_max[0], global_max[1],
      global_max[2], local_max[0], local_max[1], local_max[2], group_max, vector_registers, has_fma,
      contract, native_float16_cast, native_float64);
}

Target generic_cpu_target() {
  Target target;
  target.arch = "x86-64-v4";
  target.features = "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+fma,+f16c";
  return target;
}

}  // namespace quern
