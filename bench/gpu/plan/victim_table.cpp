#include <nlohmann/json.hpp>
#include <utility>

#include "bench/gpu/plan/victims.h"

namespace weft::gpu_probe {
namespace {

constexpr auto kFit = Half::fit;
constexpr auto kPredict = Half::predict;
using E = Element;
using K = StepKind;

Victim victim(std::string name, const char* kernel_class, Half half, const Step& step) {
  return {std::move(name), kernel_class, half, {step}, false, false};
}
// y = x W^T, as a linear layer computes it.
Victim gemm(const char* name, const char* kernel_class, Half half, E element, std::int64_t m, std::int64_t n,
            std::int64_t k) {
  return victim(name, kernel_class, half, {K::product, element, Product{m, n, k, 1, false, true}});
}
Victim weight_gradient(const char* name, const char* kernel_class, Half half, E element, std::int64_t m, std::int64_t n,
                       std::int64_t k) {
  return victim(name, kernel_class, half, {K::product, element, Product{m, n, k, 1, true, false}});
}
Victim matrix(const char* name, const char* kernel_class, Half half, K kind, E element, std::int64_t rows,
              std::int64_t columns) {
  return victim(name, kernel_class, half, {kind, element, Matrix{rows, columns}});
}
Victim conv(const char* name, const char* kernel_class, Half half, K kind, const Convolution& shape) {
  return victim(name, kernel_class, half, {kind, E::fp16, shape});
}
Victim blocks(const char* name, Half half, std::int64_t count, std::int64_t cycles) {
  return victim(name, "timed_blocks", half, {K::timed_blocks, E::fp32, TimedBlocks{count, cycles}});
}
Victim on_surface(Victim v) {
  v.surface = true;
  return v;
}
Victim in_l2(Victim v) {
  v.resident = true;
  return v;
}

// samples, channels, height, width, filters, side, stride, padding
constexpr Convolution kStage1{64, 64, 56, 56, 64, 3, 1, 1};
constexpr Convolution kStage2{64, 512, 28, 28, 128, 1, 1, 0};
constexpr Convolution kStage3{64, 256, 14, 14, 256, 3, 1, 1};
constexpr Convolution kStage4{64, 512, 7, 7, 2048, 1, 1, 0};
constexpr Convolution kStem{64, 4, 224, 224, 64, 7, 2, 3};  // padded to 4 channels, as tensor cores want it

std::vector<Victim> make() {
  // Grids "around a wave" are those of 128 x 256 tiles on 132 units; what the library takes is in the result.
  return {
      on_surface(gemm("gemm_bf16_4096", "gemm_compute", kFit, E::bf16, 4096, 4096, 4096)),
      gemm("gemm_bf16_8192x4096x2048", "gemm_compute", kPredict, E::bf16, 8192, 4096, 2048),
      gemm("gemm_tf32_3072", "gemm_compute", kFit, E::tf32, 3072, 3072, 3072),
      gemm("gemm_tf32_4096x2048x4096", "gemm_compute", kPredict, E::tf32, 4096, 2048, 4096),
      gemm("gemm_fp32_2048", "gemm_compute", kFit, E::fp32, 2048, 2048, 2048),
      gemm("gemm_fp32_3072x2048x1024", "gemm_compute", kPredict, E::fp32, 3072, 2048, 1024),

      gemm("gemm_bf16_wave_120", "gemm_wave", kFit, E::bf16, 1280, 3072, 4096),
      on_surface(gemm("gemm_bf16_wave_132", "gemm_wave", kPredict, E::bf16, 1408, 3072, 4096)),
      gemm("gemm_bf16_wave_144", "gemm_wave", kFit, E::bf16, 1536, 3072, 4096),
      gemm("gemm_bf16_wave_264", "gemm_wave", kPredict, E::bf16, 2816, 3072, 4096),
      gemm("gemm_fp32_wave_132", "gemm_wave", kFit, E::fp32, 1408, 1536, 1024),
      gemm("gemm_fp32_wave_96", "gemm_wave", kPredict, E::fp32, 1024, 1536, 1024),

      gemm("gemm_bf16_4096x4096x512", "gemm_balanced", kFit, E::bf16, 4096, 4096, 512),
      gemm("gemm_bf16_8192x1024x1024", "gemm_balanced", kPredict, E::bf16, 8192, 1024, 1024),
      gemm("gemm_tf32_4096x1024x1024", "gemm_balanced", kFit, E::tf32, 4096, 1024, 1024),
      gemm("gemm_fp32_4096x1024x256", "gemm_balanced", kPredict, E::fp32, 4096, 1024, 256),

      gemm("gemm_bf16_64x16384x4096", "gemm_skinny", kFit, E::bf16, 64, 16384, 4096),
      on_surface(gemm("gemm_bf16_16x16384x8192", "gemm_skinny", kPredict, E::bf16, 16, 16384, 8192)),
      gemm("gemm_fp32_32x16384x4096", "gemm_skinny", kFit, E::fp32, 32, 16384, 4096),
      gemm("gemm_tf32_128x8192x4096", "gemm_skinny", kPredict, E::tf32, 128, 8192, 4096),

      weight_gradient("gemm_bf16_256x256x65536", "gemm_split_k", kFit, E::bf16, 256, 256, 65536),
      weight_gradient("gemm_bf16_512x128x98304", "gemm_split_k", kPredict, E::bf16, 512, 128, 98304),
      weight_gradient("gemm_tf32_384x384x65536", "gemm_split_k", kFit, E::tf32, 384, 384, 65536),
      weight_gradient("gemm_fp32_256x256x32768", "gemm_split_k", kPredict, E::fp32, 256, 256, 32768),

      on_surface(matrix("add_fp32_64M", "elementwise", kFit, K::add, E::fp32, 8192, 8192)),
      matrix("add_bf16_64M", "elementwise", kPredict, K::add, E::bf16, 8192, 8192),
      in_l2(matrix("add_bf16_4M_l2", "elementwise", kFit, K::add, E::bf16, 2048, 2048)),
      matrix("gelu_bf16_64M", "elementwise", kFit, K::gelu, E::bf16, 8192, 8192),
      on_surface(matrix("gelu_fp32_32M", "elementwise", kPredict, K::gelu, E::fp32, 8192, 4096)),

      matrix("sum_fp32_16384x4096", "reduction", kFit, K::row_sum, E::fp32, 16384, 4096),
      matrix("sum_bf16_65536x2048", "reduction", kPredict, K::row_sum, E::bf16, 65536, 2048),

      matrix("layer_norm_bf16_32768x1024", "norm", kFit, K::layer_norm, E::bf16, 32768, 1024),
      matrix("layer_norm_fp32_16384x1024", "norm", kPredict, K::layer_norm, E::fp32, 16384, 1024),
      matrix("layer_norm_backward_bf16_16384x1024", "norm", kPredict, K::layer_norm_backward, E::bf16, 16384, 1024),
      matrix("layer_norm_backward_fp32_8192x1024", "norm", kFit, K::layer_norm_backward, E::fp32, 8192, 1024),

      matrix("softmax_bf16_65536x1024", "softmax", kFit, K::softmax, E::bf16, 65536, 1024),
      matrix("softmax_fp32_65536x512", "softmax", kPredict, K::softmax, E::fp32, 65536, 512),
      matrix("softmax_backward_bf16_65536x1024", "softmax", kPredict, K::softmax_backward, E::bf16, 65536, 1024),
      matrix("softmax_backward_fp32_65536x512", "softmax", kFit, K::softmax_backward, E::fp32, 65536, 512),

      on_surface(
          victim("attention_bf16_8x16x1024", "attention", kFit, {K::attention, E::bf16, Heads{8, 16, 1024, 64}})),
      victim("attention_bf16_4x12x2048", "attention", kPredict, {K::attention, E::bf16, Heads{4, 12, 2048, 64}}),

      conv("conv_forward_stage1", "conv_forward", kFit, K::conv_forward, kStage1),
      conv("conv_forward_stage2", "conv_forward", kPredict, K::conv_forward, kStage2),
      conv("conv_forward_stage3", "conv_forward", kFit, K::conv_forward, kStage3),
      conv("conv_forward_stem", "conv_forward", kPredict, K::conv_forward, kStem),
      conv("conv_data_stage1", "conv_backward_data", kPredict, K::conv_backward_data, kStage1),
      on_surface(conv("conv_data_stage2", "conv_backward_data", kFit, K::conv_backward_data, kStage2)),
      conv("conv_data_stage3", "conv_backward_data", kPredict, K::conv_backward_data, kStage3),
      conv("conv_data_stage4", "conv_backward_data", kFit, K::conv_backward_data, kStage4),
      conv("conv_filter_stage1", "conv_backward_filter", kFit, K::conv_backward_filter, kStage1),
      conv("conv_filter_stage2", "conv_backward_filter", kPredict, K::conv_backward_filter, kStage2),
      on_surface(conv("conv_filter_stage3", "conv_backward_filter", kPredict, K::conv_backward_filter, kStage3)),
      conv("conv_filter_stage4", "conv_backward_filter", kFit, K::conv_backward_filter, kStage4),

      matrix("adam_fp32_25M", "optimizer", kFit, K::adam, E::fp32, 6250, 4000),
      matrix("adam_fp32_110M", "optimizer", kPredict, K::adam, E::fp32, 27500, 4000),

      // 100 us a block, and shorter ones in several waves.
      on_surface(blocks("blocks_116", kFit, 116, 180000)),
      blocks("blocks_124", kPredict, 124, 180000),
      blocks("blocks_132", kFit, 132, 180000),
      blocks("blocks_400", kPredict, 400, 45000),
      blocks("blocks_1056", kFit, 1056, 20000),

      {"resnet50_backward_32", "sequence_convolutions", kFit, resnet50_backward(32), false, false},
      {"resnet50_backward_64", "sequence_convolutions", kPredict, resnet50_backward(64), false, false},
      {"gpt2_backward", "sequence_transformer", kFit, transformer_backward({8, 1024, 12, 768}), false, false},
      {"bert_large_backward", "sequence_transformer", kPredict, transformer_backward({16, 512, 16, 1024}), false, true},
  };
}

}  // namespace

const char* to_string(Half half) { return half == Half::fit ? "fit" : "predict"; }

const std::vector<Victim>& victims() {
  static const std::vector<Victim> made = make();
  return made;
}

nlohmann::json description(const Victim& victim) {
  nlohmann::json operators = nlohmann::json::array();
  for (const Step& step : victim.steps) {
    const Operator op = operator_of(step);
    operators.push_back({{"name", op.name}, {"inputs", op.inputs}, {"type", op.type}});
  }
  return {{"class", victim.kernel_class}, {"half", to_string(victim.half)}, {"operators", operators}};
}

double estimated_us(const Victim& victim) {
  double sum = 0;
  for (const Step& step : victim.steps) sum += estimated_us(step);
  return sum;
}

bool needs(const Victim& victim, Library library) {
  for (const Step& step : victim.steps) {
    if (library_of(step) == library) return true;
  }
  return false;
}

}  // namespace weft::gpu_probe
