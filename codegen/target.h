#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quern/codegen/api.h"
#include "quern/codegen/uop/dtype.h"

namespace quern {

// What code is generated for: a plain value that a test can make up. Everything that codegen may
// depend on stands here; two targets that compare equal give the same program text.
struct QUERN_API Target {
  // Uops: the printed form of the linearized uops (uop/text.h), which the interpreter executes.
  enum class Language : uint8_t { Uops, Llvm, Cuda, OpenCl };

  std::string name = "cpu";  // the device that runs it: "cpu", "cuda", "opencl"
  std::string arch;          // cpu name, "sm_90", ...
  std::string features;      // LLVM feature string of the cpu, e.g. "+avx2,+f16c"; empty elsewhere
  Language language = Language::Llvm;

  int vector_bytes = 64;         // an Alu op is split to at most this many bytes; 0: scalar Alu
  int memory_bytes = 64;         // widest vector load or store
  bool aligned_vectors = false;  // vector accesses must be aligned to their size (CUDA, OpenCL)
  bool masked_memory = true;     // a vector access can be gated lane by lane

  bool has_local = false;             // work items within a group, and local ids
  bool has_shared = false;            // local memory with barriers
  int64_t shared_max = 0;             // bytes of local memory a group may use
  int64_t scratch_max = 256 << 10;    // without groups: bytes of scratch memory of a task
  int64_t global_max[3] = {0, 0, 0};  // launch limits in each dimension; 0: none
  int64_t local_max[3] = {0, 0, 0};
  int64_t group_max = 0;  // work items in a group
  int vector_registers = 32;

  bool has_fma = true;              // MULACC of floats is one instruction
  bool contract = true;             // reduces of products may use it (one rounding fewer)
  bool native_float16_cast = true;  // conversion to and from half is an instruction
  bool native_float64 = true;

  bool operator==(const Target&) const = default;

  // Lanes of `dtype` that one Alu op takes: at least 1.
  int alu_lanes(DType dtype) const;
  // Widest load or store of `dtype`, in lanes: at least 1.
  int memory_lanes(DType dtype) const;
  // Every field as text: part of the program cache's key.
  std::string describe() const;
};

// An x86-64 target with AVX-512 and FMA, whatever the host: for tests that print code.
QUERN_API Target generic_cpu_target();

}  // namespace quern
