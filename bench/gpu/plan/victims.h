// The compute kernels that are measured, alone and beside a collective's blocks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/gpu/plan/step.h"

namespace weft::gpu_probe {

// The model's parameters may be fitted to the first half only; the second shows what it predicts.
enum class Half { fit, predict };
[[nodiscard]] const char* to_string(Half half);

struct Victim {
  std::string name;
  std::string kernel_class;
  Half half = Half::fit;
  std::vector<Step> steps;  // in order, on one stream
  bool resident = false;    // works in the L2; else buffers take turns where the caches could keep them
  bool surface = false;     // measured over all blocks and rates of the aggressor
};

[[nodiscard]] const std::vector<Victim>& victims();

// Class, half and operators, as the results have them.
[[nodiscard]] nlohmann::json description(const Victim& victim);

[[nodiscard]] double estimated_us(const Victim& victim);
[[nodiscard]] bool needs(const Victim& victim, Library library);

// Steps of a training step's backward pass, last layer first.
[[nodiscard]] std::vector<Step> resnet50_backward(std::int64_t samples);
struct TransformerLayer {
  std::int64_t batch = 0, length = 0, heads = 0, width = 0;  // width: of the model
};
[[nodiscard]] std::vector<Step> transformer_backward(const TransformerLayer& layer);

}  // namespace weft::gpu_probe
