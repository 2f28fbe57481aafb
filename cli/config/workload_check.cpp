#include "cli/config/workload_check.h"

#include <string>
#include <vector>

#include "sim/json_reader.h"
#include "workloads/model_zoo.h"

namespace weft {

void check_model(const RunConfig& config, const std::filesystem::path& file) {
  const auto* workload = std::get_if<ModelWorkload>(&config.workload);
  if (workload == nullptr) return;
  std::vector<std::string> names;
  for (const auto& model : models()) names.push_back(model.name);
  const Json written{{"model", workload->model}};
  JsonReader reader(written, file.string(), "/workload");
  static_cast<void>(reader.one_of("model", names));
}

}  // namespace weft
