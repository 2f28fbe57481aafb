// Training steps made from layer shapes: forward, backward and optimizer of published models, kernel by kernel, so that
// a simulation needs no outside file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph.h"

namespace weft {

struct ModelSpec {
  std::string model;                      // one of models()
  std::uint32_t batch = 0;                // samples of one GPU and step
  std::string precision;                  // "fp32", "tf32" or "amp"
  std::uint32_t sequence = 0;             // tokens or steps a sample; 0: the model's default, images ignore it
  std::uint32_t compute_units = 0;        // of the GPU whose libraries choose the tiles
  std::uint32_t layers = 0;               // the first layers of a transformer, or residual blocks, or WaveNet's; 0: all
  std::uint32_t key_heads = 0;            // of llama2-7b, grouped-query attention; 0: the model's own
  std::uint32_t block_shared_memory = 0;  // bytes that a block of that GPU can have; 0: no limit
};

struct ModelInfo {
  std::string name;
  std::string description;
};

[[nodiscard]] std::vector<ModelInfo> models();

// Throws InputError (without a file) for an unknown model or precision, a batch of 0, or a sequence or layers the model
// cannot take.
void validate(const ModelSpec& spec);

// One training step on data that lies in GPU memory. Throws InputError for what validate() refuses, or compute_units of
// 0.
//
// Kernels follow PyTorch in eager mode with channels-last convolutions; parameters, gradients and optimizer state are
// FP32, one buffer each. What varies between libraries (tiles, split K) follows the rules in kernel_demand.h.
[[nodiscard]] Graph make_model(const ModelSpec& spec);

// The parameters of a graph, and how many elements they have. They are those tensors that another one is gradient_of.
[[nodiscard]] std::vector<TensorId> parameters(const Graph& graph);
[[nodiscard]] std::int64_t parameter_count(const Graph& graph);

}  // namespace weft
