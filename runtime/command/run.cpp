#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "quern/codegen/error.h"
#include "quern/runtime/command/command.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/input_data.h"
#include "quern/runtime/kernel.h"
#include "quern/runtime/kernel_file.h"
#include "quern/runtime/npy.h"

namespace quern::command {
namespace {

struct RunArguments {
  std::string file, kernel, device = "cpu", opts = "default";
  std::vector<std::string> inputs, outputs, vars;
  int repeat = 1;
  bool json = false;
};

struct Assignment {
  std::string name, value;
};

Assignment split(const std::string& text, const char* expected) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    raise<ArgumentError>("'{}': expected {}", text, expected);
  return {text.substr(0, at), text.substr(at + 1)};
}

template <class T>
T parse_integer(const std::string& text, const std::string& where) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    raise<ArgumentError>("'{}': '{}' is no integer", where, text);
  return value;
}

// Buffer numbers and the files that they are read from or written to.
std::map<size_t, std::string> parse_files(const std::vector<std::string>& list, size_t count,
                                          const char* expected) {
  std::map<size_t, std::string> files;
  for (const std::string& text : list) {
    Assignment a = split(text, expected);
    auto number = parse_integer<size_t>(a.name, text);
    if (number >= count)
      raise<ArgumentError>("'{}': there is no buffer {}; the kernel has {}", text, number, count);
    if (!files.emplace(number, a.value).second)
      raise<ArgumentError>("'{}': buffer {} is given twice", text, number);
  }
  return files;
}

class Run {
 public:
  explicit Run(const RunArguments& arguments)
      : arguments_(arguments), record_(find_kernel(arguments.file, arguments.kernel)) {
    size_t count = record_.ast.buffers().size();
    inputs_ = parse_files(arguments.inputs, count, "BUFFER=FILE.npy");
    outputs_ = parse_files(arguments.outputs, record_.ast.outputs().size(), "OUTPUT=FILE.npy");
    parse_vars();
  }

  void run() {
    std::map<size_t, NpyArray> arrays;
    for (const auto& [number, path] : inputs_) arrays.emplace(number, read_array(number, path));
    std::shared_ptr<Device> device = open_device(arguments_.device);
    Kernel kernel = compile_on(device);
    std::vector<Buffer> buffers;
    for (const BufferParam& param : record_.ast.buffers()) {
      buffers.emplace_back(device, param.dtype, param.size);
      size_t number = buffers.size() - 1;
      if (auto array = arrays.find(number); array != arrays.end())
        buffers.back().write(array->second.data);
      else fill_input(buffers.back(), static_cast<uint32_t>(number), record_.input);
    }
    time_launch(kernel, buffers);
    for (const auto& [number, path] : outputs_) write_output(number, path, buffers[number]);
    for (int i = 1; i < arguments_.repeat; ++i) time_launch(kernel, buffers);
    report(kernel);
  }

 private:
  void parse_vars() {
    for (const std::string& text : arguments_.vars) {
      Assignment a = split(text, "NAME=VALUE");
      auto vars = record_.ast.vars();
      auto found = std::ranges::find(vars, a.name, &VarParam::name);
      if (found == vars.end())
        raise<ArgumentError>("'{}': the kernel has no variable '{}'", text, a.name);
      record_.var_values[static_cast<size_t>(found - vars.begin())] =
          parse_integer<int64_t>(a.value, text);
    }
  }

  NpyArray read_array(size_t number, const std::string& path) const {
    const BufferParam& param = record_.ast.buffers()[number];
    NpyArray array = read_npy(path);
    if (array.dtype != param.dtype || array.size() != param.size)
      raise<ArgumentError>("{}: expected {} elements of {} for buffer {}, found {} of {}", path,
                           param.size, to_string(param.dtype), number, array.size(),
                           to_string(array.dtype));
    return array;
  }

  Kernel compile_on(const std::shared_ptr<Device>& device) {
    opts_ = parse_opts_argument(arguments_.opts, record_.ast, device->target());
    auto begin = std::chrono::steady_clock::now();
    Kernel kernel = compile(record_.ast, device, {.opts = opts_});
    compile_seconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return kernel;
  }

  void time_launch(const Kernel& kernel, std::span<const Buffer> buffers) {
    std::vector<VarValue> vars = record_.vars();
    auto begin = std::chrono::steady_clock::now();
    kernel.launch(buffers, vars);
    seconds_.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  // Of the tensor where the output is stored row by row, else the whole buffer as one axis.
  std::vector<int64_t> output_shape(size_t number) const {
    const Ast& ast = record_.ast;
    const AstNode& store = ast.node(ast.outputs()[number]);
    std::vector<int64_t> shape;
    int64_t size = 1;
    for (const SInt& dim : ast.shape(store)) {
      shape.push_back(dim.eval(record_.var_values));
      size *= shape.back();
    }
    int64_t elements = ast.buffers()[number].size;
    if (!ast.tracker(store).is_contiguous() || size != elements) shape = {elements};
    return shape;
  }

  void write_output(size_t number, const std::string& path, const Buffer& buffer) const {
    std::vector<std::byte> data(buffer.bytes());
    buffer.read(data);
    write_npy(path, buffer.dtype(), output_shape(number), data);
  }

  void report(const Kernel& kernel) {
    std::ranges::sort(seconds_);
    double median = seconds_[seconds_.size() / 2], least = seconds_[0];
    double gflops = static_cast<double>(record_.flops()) / median * 1e-9;
    double gbytes = static_cast<double>(record_.bytes()) / median * 1e-9;
    if (arguments_.json) {
      nlohmann::ordered_json out = {{"id", record_.id},
                                    {"kernel", kernel.program().name},
                                    {"device", arguments_.device},
                                    {"opts", to_string(opts_)},
                                    {"compile_ms", compile_seconds_ * 1e3},
                                    {"repeat", arguments_.repeat},
                                    {"median_ms", median * 1e3},
                                    {"min_ms", least * 1e3},
                                    {"gflops", gflops},
                                    {"gbytes", gbytes}};
      return print(out.dump() + "\n");
    }
    print(
        fmt::format("{} ({}) on {}\nopts     {}\ncompile  {:.3f} ms\ntime     {:.4f} ms median, "
                    "{:.4f} ms least "
                    "of {}\nspeed    {:.3f} GFLOP/s, {:.3f} GB/s\n",
                    record_.id, kernel.program().name, arguments_.device,
                    opts_.empty() ? "none" : to_string(opts_), compile_seconds_ * 1e3, median * 1e3,
                    least * 1e3, seconds_.size(), gflops, gbytes));
  }

  const RunArguments& arguments_;
  KernelRecord record_;
  std::map<size_t, std::string> inputs_, outputs_;
  std::vector<Opt> opts_;
  double compile_seconds_ = 0;
  std::vector<double> seconds_;
};

}  // namespace

void add_run(CLI::App& app, int&) {
  auto* sub = app.add_subcommand("run", "Runs a kernel and says how fast it is");
  auto a = std::make_shared<RunArguments>();
  sub->add_option("file", a->file, "Kernel file")->required();
  sub->add_option("--kernel", a->kernel, "Id of the kernel, if the file has several");
  sub->add_option("--device", a->device, "See `quern devices` (default: cpu)");
  sub->add_option("--opts", a->opts, "none, default, or a list such as UPCAST:0:4,UNROLL:0:8");
  sub->add_option("--input", a->inputs,
                  "BUFFER=FILE.npy; others follow the formula of kernel files")
      ->allow_extra_args(false);
  sub->add_option("--var", a->vars, "NAME=VALUE")->allow_extra_args(false);
  sub->add_option("--output", a->outputs, "BUFFER=FILE.npy, written after the first launch")
      ->allow_extra_args(false);
  sub->add_option("--repeat", a->repeat, "Launches, of which the median time counts")
      ->check(CLI::Range(1, 1'000'000));
  sub->add_flag("--json", a->json, "Print JSON");
  sub->callback([a] { Run(*a).run(); });
}

}  // namespace quern::command
