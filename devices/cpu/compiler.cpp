#include "quern/devices/cpu/compiler.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/float_environment.h"
#include "quern/devices/cpu/cpu.h"
#include "quern/devices/cpu/fatal_errors.h"
#include "quern/devices/cpu/jit.h"
#include "quern/devices/cpu/llvm.h"
#include "quern/devices/process_exit.h"

namespace quern::cpu {
namespace {

// Constants and types live as long as their context, so each serves a limited number of compiles.
constexpr int kCompilesPerContext = 64;
constexpr size_t kMaxIdle = 64;

// Compiled before anything else, so that LLVM's static objects are there before threads use them:
// vectors of a length that no register has are among what makes some.
constexpr const char* kFirstProgram = R"(
define void @first(ptr %p) {
  %x = load <7 x float>, ptr %p
  %y = fadd <7 x float> %x, %x
  store <7 x float> %y, ptr %p
  ret void
}
)";

// Compiling makes static objects in LLVM, nearly all of them the first time.
void watch_exit(uint64_t compiles) {
  if (std::has_single_bit(compiles)) ExitGuard::watch();
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

llvm::TargetOptions target_options() {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // MULACC says where it is wanted
  options.MCOptions.AsmVerbose = false;
  return options;
}

// LLVM would print a complaint about an unknown name and go on.
void check_names(const llvm::TargetMachine& machine, const Target& target) {
  const llvm::MCSubtargetInfo& info = *machine.getMCSubtargetInfo();
  if (!info.isCPUStringValid(target.arch))
    raise<CompileError>("device cpu: LLVM knows no processor \"{}\"", target.arch);
  for (size_t start = 0; start < target.features.size();) {
    size_t end = std::min(target.features.find(',', start), target.features.size());
    std::string feature = target.features.substr(start, end - start);
    start = end + 1;
    bool is_signed = feature.starts_with('+') || feature.starts_with('-');
    bool known = is_signed && std::ranges::any_of(info.getAllProcessorFeatures(), [&](auto& f) {
                   return std::string_view(feature).substr(1) == f.Key;
                 });
    if (!known) raise<CompileError>("device cpu: LLVM knows no feature \"{}\"", feature);
  }
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  initialize_llvm();
  std::string triple = llvm::sys::getProcessTriple(), error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) raise<CompileError>("device cpu: {}", error);
  // Names are checked before they are used.
  auto plain = [&](llvm::StringRef cpu, llvm::StringRef features) {
    return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
        triple, cpu, features, target_options(), llvm::Reloc::PIC_, llvm::CodeModel::Small,
        llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  };
  check_names(*plain("", ""), target);
  return plain(target.arch, target.features);
}

}  // namespace

// Compiles one program after another for one target.
class Compiler {
 public:
  Compiler(const Target& target, llvm::CodeGenFileType type)
      : arch_(target.arch), features_(target.features), machine_(make_machine(target)) {
    if (machine_->addPassesToEmitFile(passes_, stream_, nullptr, type, /*DisableVerify=*/true))
      raise<CompileError>("device cpu: LLVM cannot write code for \"{}\"", target.arch);
  }

  bool is_for(const Target& target) const {
    return arch_ == target.arch && features_ == target.features;
  }

  // What was written, valid until the next call. After a FatalLlvmError the compiler is unusable,
  // and destroying it would touch what LLVM left behind.
  llvm::StringRef compile(const Program& program) {
    renew_context();
    log_.clear();
    std::unique_ptr<llvm::Module> module = parse(program);
    output_.clear();
    try {
      FatalErrorTrap trap;
      passes_.run(*module);
    } catch (const FatalLlvmError&) {
      module.release();
      throw;
    }
    if (failed_) reject(program, "LLVM cannot compile it");
    return {output_.data(), output_.size()};
  }

  [[noreturn]] void reject(const Program& program, const std::string& why) const {
    std::string message = fmt::format("kernel {}: {}", program.name, why);
    if (!log_.empty()) message += ": " + log_;
    throw CompileError(message, log_, program.source);
  }

 private:
  void renew_context() {
    if (context_ && compiles_++ % kCompilesPerContext != 0) return;
    context_ = std::make_unique<llvm::LLVMContext>();
    context_->setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo* info, void* self) {
          static_cast<Compiler*>(self)->diagnose(*info);
        },
        this);
  }

  void diagnose(const llvm::DiagnosticInfo& info) {
    if (info.getSeverity() > llvm::DS_Warning) return;
    llvm::raw_string_ostream stream(log_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << '\n';
    failed_ |= info.getSeverity() == llvm::DS_Error;
  }

  std::unique_ptr<llvm::Module> parse(const Program& program) {
    failed_ = false;
    llvm::SMDiagnostic diagnostic;
    llvm::MemoryBufferRef buffer(program.source, program.name);
    std::unique_ptr<llvm::Module> module = llvm::parseAssembly(buffer, diagnostic, *context_);
    llvm::raw_string_ostream stream(log_);
    if (!module) {
      diagnostic.print(nullptr, stream, /*ShowColors=*/false);
      reject(program, "LLVM cannot read its text");
    }
    if (llvm::verifyModule(*module, &stream)) reject(program, "LLVM rejects its text");
    const llvm::Function* function = module->getFunction(program.name);
    if (!function || function->isDeclaration()) reject(program, "its text has no such function");
    module->setTargetTriple(machine_->getTargetTriple().str());
    module->setDataLayout(machine_->createDataLayout());
    return module;
  }

  std::string arch_, features_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::LLVMContext> context_;
  llvm::SmallVector<char, 0> output_;
  llvm::raw_svector_ostream stream_{output_};
  // Setting up the passes takes a fifth of a small kernel's compile, so they are kept.
  llvm::legacy::PassManager passes_;
  int compiles_ = 0;
  std::string log_;
  bool failed_ = false;
};

namespace {

[[noreturn]] void reject_fatal(std::unique_ptr<Compiler> compiler, const Program& program,
                               const FatalLlvmError& error) {
  compiler.release();
  throw CompileError(fmt::format("kernel {}: LLVM gave up: {}", program.name, error.what()),
                     error.what(), program.source);
}

bool is_allowed(llvm::StringRef symbol) {
  return symbol.empty() || symbol == "_GLOBAL_OFFSET_TABLE_" ||
         std::ranges::any_of(runtime_symbols(), [&](const auto& known) {
           return std::string_view(symbol) == known.first;
         });
}

// A name that is missing would only turn up when the code is loaded, perhaps in another process.
void check_symbols(const Compiler& compiler, const Program& program, llvm::StringRef object) {
  auto file =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, program.name));
  if (!file) return compiler.reject(program, llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags) return compiler.reject(program, llvm::toString(flags.takeError()));
    if (!name) return compiler.reject(program, llvm::toString(name.takeError()));
    if (*flags & llvm::object::SymbolRef::SF_Undefined && !is_allowed(*name))
      compiler.reject(program, "it needs the function " + name->str() + ", which is not provided");
  }
}

}  // namespace

CompilerPool::CompilerPool() {
  static std::once_flag once;
  std::call_once(once, [this] {
    ExitGuard::watch();
    Program program;
    program.name = "first";
    program.source = kFirstProgram;
    program.target = host_cpu_target();
    compile(program);
  });
}

CompilerPool::~CompilerPool() {
  ExitGuard guard;
  auto idle = std::make_shared<decltype(idle_)>(std::move(idle_));
  if (!ExitGuard::has_libraries()) ExitGuard::keep(std::move(idle));
}

std::unique_ptr<Compiler> CompilerPool::take(const Target& target) {
  {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find_if(idle_, [&](const auto& c) { return c->is_for(target); });
    if (found != idle_.end()) {
      std::unique_ptr<Compiler> compiler = std::move(*found);
      idle_.erase(found);
      return compiler;
    }
  }
  return std::make_unique<Compiler>(target, llvm::CodeGenFileType::ObjectFile);
}

void CompilerPool::put_back(std::unique_ptr<Compiler> compiler) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(compiler));
}

std::vector<std::byte> CompilerPool::compile(const Program& program) {
  static std::atomic<uint64_t> compiles = 0;
  ExitGuard guard;
  guard.require_libraries("compiling a kernel");
  FloatEnvironment environment;
  std::unique_ptr<Compiler> compiler = take(program.target);
  try {
    llvm::StringRef object = compiler->compile(program);
    check_symbols(*compiler, program, object);
    auto bytes = std::as_bytes(std::span(object.data(), object.size()));
    std::vector<std::byte> result(bytes.begin(), bytes.end());
    put_back(std::move(compiler));
    watch_exit(++compiles);
    return result;
  } catch (const FatalLlvmError& error) {
    reject_fatal(std::move(compiler), program, error);
  }
}

std::string assembly(const Program& program) {
  ExitGuard guard;
  guard.require_libraries("compiling a kernel");
  FloatEnvironment environment;
  auto compiler = std::make_unique<Compiler>(program.target, llvm::CodeGenFileType::AssemblyFile);
  try {
    return compiler->compile(program).str();
  } catch (const FatalLlvmError& error) {
    reject_fatal(std::move(compiler), program, error);
  }
}

}  // namespace quern::cpu
