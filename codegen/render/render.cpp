#include "quern/codegen/render/render.h"

#include "quern/codegen/error.h"
#include "quern/codegen/render/llvm/render_llvm.h"
#include "quern/codegen/uop/text.h"

namespace quern {

std::string render(const std::string& name, const LinearUOps& uops, const Target& target) {
  switch (target.language) {
    case Target::Language::Uops: return print_uops(uops);
    case Target::Language::Llvm: return render_llvm(name, uops, target);
    case Target::Language::Cuda: break;
    case Target::Language::OpenCl: break;
  }
  raise<CompileError>("kernel {}: no renderer for device {} is built yet", name, target.name);
}

}  // namespace quern
