// Networks of convolutions along time, whose samples may be split by rows of time: residual blocks of dilated
// convolutions (TCN: Bai et al., arXiv 1803.01271), gated ones with skip connections (WaveNet: van den Oord et al.,
// arXiv 1609.03499), and plain stacks.
#pragma once

#include "workloads/model_zoo.h"
#include "workloads/single_sample/time_convolution.h"

namespace weft {

enum class TemporalBlock {
  plain,    // convolution, ReLU
  tcn,      // twice convolution and ReLU, plus the input, ReLU (weight normalisation and dropout are left out)
  wavenet,  // convolution to twice the channels, tanh * sigmoid; of it one linear layer is added to the input, one to
            // the skips. The last block's goes to the skips only.
};

struct TemporalShape {
  std::int64_t channels = 0;
  std::int64_t kernel = 2;
  std::vector<std::int64_t> dilations{1};  // of block after block, over and over
  std::int64_t layers = 1;                 // blocks
  TemporalBlock block = TemporalBlock::tcn;
  std::int64_t skip_channels = 0;  // of wavenet
  bool causal = true;
};

// The blocks on x [rows, channels]; of wavenet the sum of the skips comes out. `layer` begins their names.
[[nodiscard]] Matrix temporal_blocks(TrainingStep& step, const TimeAxis& axis, const TemporalShape& shape,
                                     const Matrix& in, const std::string& layer);

// Forward and backward pass of this rank, and with `update` AdamW: the input and the output's gradient are there.
[[nodiscard]] SampleGraph make_temporal_convolution(const ModelSpec& spec, const TimeAxis& axis,
                                                    const TemporalShape& shape, bool update = true);

// The model "wavenet" of the zoo: its blocks, and the training step of one of the GPUs that share spec.batch samples of
// spec.sequence steps (0: kWaveNetSteps). Throws InputError for layers or a split that it cannot take.
inline constexpr const char* kWaveNet = "wavenet";
inline constexpr std::int64_t kWaveNetSteps = 100'000;  // SAMPLE_SIZE of train.py, see wavenet_shape()
[[nodiscard]] TemporalShape wavenet_shape();
[[nodiscard]] TimeAxis wavenet_axis(const ModelSpec& spec, const SampleSplit& split);
[[nodiscard]] Graph make_wavenet(const ModelSpec& spec, const SampleSplit& split);

}  // namespace weft
