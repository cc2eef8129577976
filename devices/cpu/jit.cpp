#include "quern/devices/cpu/jit.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unistd.h>

#include <sys/mman.h>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/float_environment.h"
#include "quern/devices/cpu/llvm.h"
#include "quern/devices/process_exit.h"

namespace quern::cpu {
namespace {

using llvm::orc::ExecutorAddr;
using llvm::orc::JITDylib;

// Unloaded kernels' names stay in LLVM's string pool until it is asked to drop them.
constexpr unsigned kUnloadsPerCleanup = 256;

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

llvm::JITSymbolFlags callable() {
  return llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable;
}

// ORC reports the cause of a failure to the session, and only the fact to who asked for the symbol.
thread_local std::string* causes = nullptr;

void note_cause(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  if (causes) *causes += (causes->empty() ? "" : "; ") + text;
}

// Appends to /tmp/perf-PID.map.
void note_for_perf(const std::string& name, uint64_t begin, std::span<const std::byte> object) {
  llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, name));
  if (!file) return llvm::consumeError(file.takeError());
  uint64_t size = 0;
  for (const auto& symbol : (*file)->symbols()) {
    auto symbol_name = symbol.getName();
    if (!symbol_name) llvm::consumeError(symbol_name.takeError());
    else if (*symbol_name == name) size = llvm::object::ELFSymbolRef(symbol).getSize();
  }
  std::string path = fmt::format("/tmp/perf-{}.map", ::getpid());
  if (std::FILE* map = std::fopen(path.c_str(), "a")) {
    std::string line = fmt::format("{:x} {:x} {}\n", begin, size, name);
    std::fputs(line.c_str(), map);
    std::fclose(map);
  }
}

// Hardened systems may refuse to make any memory executable; it is better to hear that now than
// from the first kernel.
void check_executable_memory() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool ok = memory != MAP_FAILED && ::mprotect(memory, page, PROT_READ | PROT_EXEC) == 0;
  int error = errno;
  if (memory != MAP_FAILED) ::munmap(memory, page);
  if (!ok)
    raise<DeviceError>("device cpu: executable memory is forbidden here: {}", std::strerror(error));
}

class OrcJit final : public Jit {
 public:
  OrcJit(std::unique_ptr<llvm::orc::ExecutionSession> session,
         std::unique_ptr<llvm::jitlink::JITLinkMemoryManager> memory, const JitOptions& options)
      : options_(options),
        memory_(std::move(memory)),
        session_(std::move(session)),
        layer_(*session_, *memory_),
        runtime_(session_->createBareJITDylib("runtime")) {
    session_->setErrorReporter(note_cause);
    if (options.gdb) {
      auto registrar = std::make_unique<llvm::orc::EPCDebugObjectRegistrar>(
          *session_, ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderGDBWrapper));
      layer_.addPlugin(std::make_shared<llvm::orc::DebugObjectManagerPlugin>(
          *session_, std::move(registrar), /*RequireDebugSections=*/false,
          /*AutoRegisterCode=*/true));
    }
    llvm::orc::SymbolMap symbols;
    for (const auto& [name, function] : runtime_symbols())
      symbols[session_->intern(llvm::StringRef(name.data(), name.size()))] = {
          ExecutorAddr::fromPtr(function), callable()};
    llvm::cantFail(runtime_.define(llvm::orc::absoluteSymbols(std::move(symbols))));
  }

  ~OrcJit() override { llvm::consumeError(session_->endSession()); }

  // Each kernel has a namespace of its own, which sees only the runtime's.
  std::unique_ptr<LoadedCode> load(const std::string& name,
                                   std::span<const std::byte> object) override {
    ExitGuard guard;
    guard.require_libraries("loading a kernel");
    FloatEnvironment environment;
    std::string cause;
    causes = &cause;
    JITDylib& dylib = session_->createBareJITDylib("kernel" + std::to_string(next_++));
    dylib.addToLinkOrder(runtime_);
    llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
    llvm::Error error = layer_.add(dylib, llvm::MemoryBuffer::getMemBufferCopy(bytes, name));
    ExecutorAddr place;
    if (!error) {
      auto symbol = session_->lookup({&dylib}, session_->intern(name));
      if (symbol) place = symbol->getAddress();
      else error = symbol.takeError();
    }
    causes = nullptr;
    if (error) {
      std::string text = llvm::toString(std::move(error));
      unload(&dylib);
      raise<DeviceError>("kernel {}: its code cannot be loaded: {}", name,
                         cause.empty() ? text : cause);
    }
    if (options_.perf_map) {
      std::lock_guard lock(perf_mutex_);
      note_for_perf(name, place.getValue(), object);
    }
    return std::make_unique<LoadedCode>(shared_from_this(), &dylib, place.toPtr<KernelFunction>());
  }

  void unload(void* dylib) noexcept override {
    ExitGuard guard;
    if (!ExitGuard::has_libraries()) return;
    llvm::consumeError(session_->removeJITDylib(*static_cast<JITDylib*>(dylib)));
    if (++unloads_ % kUnloadsPerCleanup == 0) session_->getSymbolStringPool()->clearDeadEntries();
  }

 private:
  JitOptions options_;
  std::unique_ptr<llvm::jitlink::JITLinkMemoryManager> memory_;
  std::unique_ptr<llvm::orc::ExecutionSession> session_;
  llvm::orc::ObjectLinkingLayer layer_;
  JITDylib& runtime_;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<unsigned> unloads_ = 0;
  std::mutex perf_mutex_;
};

void destroy(OrcJit* jit) {
  ExitGuard guard;
  std::shared_ptr<void> owner(jit);
  if (!ExitGuard::has_libraries()) ExitGuard::keep(std::move(owner));
}

}  // namespace

std::span<const std::pair<std::string_view, void*>> runtime_symbols() {
  static const std::array<std::pair<std::string_view, void*>, 5> symbols = {{
      {"fmod", address<double(double, double)>(std::fmod)},
      {"fmodf", address<float(float, float)>(std::fmod)},
      {"memcpy", address<void*(void*, const void*, size_t)>(std::memcpy)},
      {"memmove", address<void*(void*, const void*, size_t)>(std::memmove)},
      {"memset", address<void*(void*, int, size_t)>(std::memset)},
  }};
  return symbols;
}

LoadedCode::~LoadedCode() { jit_->unload(dylib_); }

std::shared_ptr<Jit> Jit::create(const JitOptions& options) {
  ExitGuard guard;
  guard.require_libraries("opening a device");
  check_executable_memory();
  auto process = llvm::orc::SelfExecutorProcessControl::Create(
      nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>());
  if (!process)
    raise<DeviceError>("device cpu: LLVM has no JIT here: {}", llvm::toString(process.takeError()));
  auto memory = llvm::jitlink::InProcessMemoryManager::Create();
  if (!memory)
    raise<DeviceError>("device cpu: no memory for code: {}", llvm::toString(memory.takeError()));
  auto session = std::make_unique<llvm::orc::ExecutionSession>(std::move(*process));
  return {new OrcJit(std::move(session), std::move(*memory), options), destroy};
}

}  // namespace quern::cpu
