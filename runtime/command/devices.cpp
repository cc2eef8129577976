#include "quern/runtime/devices.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "quern/runtime/command/command.h"

namespace quern::command {
namespace {

void devices(bool json) {
  std::vector<DeviceInfo> list = list_devices();
  if (json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const DeviceInfo& d : list)
      out.push_back({{"name", d.name},
                     {"available", d.available},
                     {"description", d.description},
                     {"reason", d.reason}});
    return print(out.dump() + "\n");
  }
  size_t width = 0;
  for (const DeviceInfo& d : list) width = std::max(width, d.name.size());
  for (const DeviceInfo& d : list)
    print(fmt::format("{:<{}}  {}\n", d.name, width,
                      d.available ? d.description : "unavailable: " + d.reason));
}

}  // namespace

void add_devices(CLI::App& app, int&) {
  auto* sub =
      app.add_subcommand("devices", "What kernels can run on, and why something is missing");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "Print JSON");
  sub->callback([json] { devices(*json); });
}

}  // namespace quern::command
