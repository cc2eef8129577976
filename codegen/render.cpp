#include "codegen/render.h"

#include "codegen/error.h"
#include "codegen/render_llvm.h"
#include "codegen/uop_text.h"

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
