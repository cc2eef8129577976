#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/error.h"
#include "quern/devices/cpu/cpu.h"
#include "quern/devices/cpu/llvm.h"

namespace quern {
namespace {

class Features {
 public:
  explicit Features(std::string_view text) : text_("," + std::string(text) + ",") {}
  bool has(std::string_view name) const {
    return text_.find(",+" + std::string(name) + ",") != std::string::npos;
  }
  bool has_all(std::initializer_list<std::string_view> names) const {
    return std::ranges::all_of(names, [this](std::string_view n) { return has(n); });
  }

 private:
  std::string text_;
};

}  // namespace

Target cpu_target(const std::string& arch, const std::string& features) {
  Features f(features);
  // 64 bytes only if every element type can be computed and masked in them.
  bool avx512 = f.has_all({"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  bool avx = f.has_all({"avx", "avx2"});
  bool arm = f.has("neon");
  Target target;
  target.name = "cpu";
  target.arch = arch;
  target.features = features;
  target.language = Target::Language::Llvm;
  target.vector_bytes = avx512 ? 64 : avx ? 32 : 16;
  target.memory_bytes = target.vector_bytes;
  target.masked_memory = avx512 || avx;
  target.vector_registers = avx512 || arm ? 32 : 16;
  target.has_fma = f.has("fma") || arm;
  target.native_float16_cast = f.has("f16c") || arm;
  return target;
}

Target named_cpu_target(const std::string& arch) {
#ifdef __x86_64__
  constexpr bool k64Bit = true;
  if (llvm::X86::parseArchX86(arch, k64Bit) == llvm::X86::CK_None)
    raise<DeviceError>("device cpu: LLVM knows no 64-bit x86 processor of the name '{}'", arch);
  llvm::SmallVector<llvm::StringRef> features;
  llvm::X86::getFeaturesForCPU(arch, features);
  std::string text;
  for (llvm::StringRef f : features) text += (text.empty() ? "+" : ",+") + f.str();
  return cpu_target(arch, text);
#else
  raise<DeviceError>("device cpu: give the features of '{}', as in cpu:{}:+feature", arch, arch);
#endif
}

Target host_cpu_target() {
  std::vector<std::string> features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::ranges::sort(features, {}, [](const std::string& f) { return f.substr(1); });
  std::string text;
  for (const std::string& f : features) text += (text.empty() ? "" : ",") + f;
  return cpu_target(llvm::sys::getHostCPUName().str(), text);
}

}  // namespace quern
