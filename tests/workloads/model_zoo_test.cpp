#include "workloads/model_zoo.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/error.h"

namespace weft {
namespace {

constexpr std::uint32_t kUnits = 108;

Graph model(const std::string& name, std::uint32_t batch, const std::string& precision = "tf32",
            std::uint32_t sequence = 0) {
  return make_model({name, batch, precision, sequence, kUnits});
}

std::int64_t elements_of(const Graph& graph, const std::string& prefix) {
  std::int64_t elements = 0;
  for (const TensorId id : parameters(graph)) {
    const Tensor& tensor = graph.tensors[id.value];
    if (tensor.name.rfind(prefix, 0) == 0) elements += tensor.bytes.count() / 4;
  }
  return elements;
}

double gemm_flops(const Graph& graph, TrainingPhase phase, Pipe pipe = Pipe::tensor_tf32) {
  double flops = 0;
  for (const Node& node : graph.nodes) {
    if (node.phase == phase) flops += node.kernel.flops[static_cast<std::size_t>(pipe)];
  }
  return flops;
}

TEST(ModelZoo, NamesItsModels) {
  std::vector<std::string> names;
  for (const ModelInfo& info : models()) {
    names.push_back(info.name);
    EXPECT_FALSE(info.description.empty());
  }
  EXPECT_THAT(names, testing::ElementsAre("bert-large", "bert-large-encoder", "gpt2", "llama2-7b", "resnet50", "vgg16",
                                          "wavenet"));
}

// Of the models' cards on Hugging Face (openai-community/gpt2, meta-llama/Llama-2-7b).
TEST(ModelZooFormula, TransformersHaveTheirPublishedParameters) {
  EXPECT_EQ(parameter_count(make_model({"gpt2", 1, "amp", 64, kUnits})), 124'439'808);
  EXPECT_EQ(parameter_count(make_model({"llama2-7b", 1, "amp", 64, kUnits})), 6'738'415'616);
  EXPECT_EQ(parameter_count(make_model({"bert-large-encoder", 1, "amp", 64, kUnits})), 302'309'376);
  // Keys and values of 8 heads instead of 32, in 32 layers.
  EXPECT_EQ(parameter_count(make_model({"llama2-7b", 1, "amp", 64, kUnits, 0, 8})),
            6'738'415'616 - std::int64_t{32} * 2 * 4096 * 3072);
}

// Shapes of wavenet_params.json of ibab/tensorflow-wavenet: two taps of 256 amplitudes; 50 times filter and gate of two
// taps, residual and skip; two layers behind. The last residual layer, which nobody uses, is left out.
TEST(ModelZooFormula, WaveNetHasTheParametersOfItsShapes) {
  const Graph graph = make_model({"wavenet", 1, "amp", 0, kUnits});
  const std::int64_t block = 2 * 32 * 64 + 64 + 32 * 32 + 32 + 32 * 512 + 512;
  EXPECT_EQ(parameter_count(graph), 2 * 256 * 32 + 50 * block - (32 * 32 + 32) + 512 * 512 + 512 + 512 * 256 + 256);
  EXPECT_EQ(parameter_count(graph), 1'514'912);
  EXPECT_EQ(graph.tokens_per_iteration, 100'000);
  EXPECT_EQ(elements_of(graph, "block.7.dilated."), 2 * 32 * 64 + 64);
  EXPECT_EQ(parameter_count(graph) - parameter_count(make_model({"wavenet", 1, "amp", 4096, kUnits, 20})), 30 * block);
  EXPECT_THROW(static_cast<void>(make_model({"wavenet", 1, "amp", 4096, kUnits, 51})), InputError);
}

// torchvision's model metadata (num_params).
TEST(ModelZooFormula, ResNet50HasItsPublishedParameters) {
  const Graph graph = model("resnet50", 2);
  EXPECT_EQ(parameter_count(graph), 25'557'032);
  EXPECT_EQ(parameters(graph).size(), 161U);
  EXPECT_EQ(elements_of(graph, "conv1."), 64 * 3 * 7 * 7);
  EXPECT_EQ(elements_of(graph, "layer1.0."), 75'008);
  EXPECT_EQ(elements_of(graph, "layer4.2.conv2."), 512 * 512 * 9);
  EXPECT_EQ(elements_of(graph, "fc."), 2'049'000);
}

// A layer of the encoder: four projections, the feed-forward pair, two layer norms.
TEST(ModelZooFormula, APartOfBertLacksWholeLayers) {
  const Graph whole = model("bert-large", 1, "amp");
  const Graph part = make_model({"bert-large", 1, "amp", 0, kUnits, 4});
  const std::int64_t h = 1024;
  const std::int64_t layer = 4 * (h * h + h) + 2 * 4 * h * h + 4 * h + h + 2 * 2 * h;
  EXPECT_EQ(parameter_count(whole) - parameter_count(part), 20 * layer);
}

// The first blocks: the classifier then has what the last of them gives, 256 channels of the first stage.
TEST(ModelZooFormula, APartOfResNet50IsItsFirstBlocks) {
  const Graph part = make_model({"resnet50", 1, "amp", 0, kUnits, 1});
  EXPECT_EQ(elements_of(part, "layer1.0."), 75'008);
  EXPECT_EQ(parameter_count(part), 9'408 + 128 + 75'008 + 256 * 1000 + 1000);
  const Graph all = make_model({"resnet50", 1, "amp", 0, kUnits, 16});
  EXPECT_EQ(parameter_count(all), parameter_count(model("resnet50", 1, "amp")));
  EXPECT_THROW(static_cast<void>(make_model({"resnet50", 1, "amp", 0, kUnits, 17})), InputError);
}

TEST(ModelZooFormula, Vgg16HasItsPublishedParameters) {
  const Graph graph = model("vgg16", 2);
  EXPECT_EQ(parameter_count(graph), 138'357'544);
  EXPECT_EQ(elements_of(graph, "features."), 14'714'688);
  EXPECT_EQ(elements_of(graph, "features.0."), 1'792);
  EXPECT_EQ(elements_of(graph, "classifier.0."), 102'764'544);
}

// Hugging Face's BertForPreTraining of bert-large-uncased; BertModel without the heads has 335,141,888.
TEST(ModelZooFormula, BertLargeHasItsPublishedParameters) {
  const Graph graph = model("bert-large", 2);
  EXPECT_EQ(parameter_count(graph), 336'226'108);
  EXPECT_EQ(elements_of(graph, "bert."), 335'141'888);
  EXPECT_EQ(elements_of(graph, "bert.embeddings."), 31'782'912);
  EXPECT_EQ(elements_of(graph, "bert.encoder.layer.7."), 12'596'224);
  EXPECT_EQ(elements_of(graph, "bert.pooler."), 1'049'600);
}

// 4.09 and 15.47 GMAC an image (torchvision's _ops: 4.089, 15.47 GFLOPS, counting multiply-adds).
TEST(ModelZooFormula, ConvolutionalNetworksComputeTheirPublishedOperations) {
  const double resnet = gemm_flops(model("resnet50", 8), TrainingPhase::forward) / 8;
  EXPECT_NEAR(resnet, 2 * 4.089e9, 0.001 * resnet);
  const double vgg = gemm_flops(model("vgg16", 4), TrainingPhase::forward) / 4;
  EXPECT_NEAR(vgg, 2 * 15.47e9, 0.001 * vgg);
}

TEST(ModelZooFormula, BackwardComputesTwiceTheForwardButForTheFirstLayer) {
  const Graph graph = model("resnet50", 8);
  const double first_layer = 2.0 * 8 * 112 * 112 * 64 * 147;
  EXPECT_NEAR(gemm_flops(graph, TrainingPhase::backward), 2 * gemm_flops(graph, TrainingPhase::forward) - first_layer,
              1e6);
}

TEST(ModelZooFormula, BertComputesWhatItsShapesSay) {
  const double tokens = 4 * 128, h = 1024, predictions = 4 * 20;
  const double layer = 2 * tokens * 12 * h * h + 2 * 2 * tokens * 128 * h;
  const double heads = 2 * 4 * h * h + 2 * 4 * h * 2 + 2 * predictions * h * h + 2 * predictions * h * 30522;
  const Graph graph = model("bert-large", 4, "amp");
  EXPECT_DOUBLE_EQ(gemm_flops(graph, TrainingPhase::forward, Pipe::tensor_fp16), 24 * layer + heads);
  EXPECT_DOUBLE_EQ(gemm_flops(graph, TrainingPhase::backward, Pipe::tensor_fp16), 2 * (24 * layer + heads));
  EXPECT_DOUBLE_EQ(graph.tokens_per_iteration, tokens);
}

class EveryModel : public testing::TestWithParam<std::tuple<std::string, std::string, std::uint32_t>> {
 protected:
  static Graph graph() {
    const auto& [name, precision, batch] = GetParam();
    return model(name, batch, precision);
  }
};

TEST_P(EveryModel, IsValidAndMakesEachGradientOnce) {
  const Graph made = graph();
  EXPECT_NO_THROW(validate(made, made.name));
  std::multiset<TensorId> ready;
  for (const Node& node : made.nodes) ready.insert(node.gradients_ready.begin(), node.gradients_ready.end());
  const std::vector<TensorId> all = parameters(made);
  EXPECT_EQ(ready, std::multiset<TensorId>(all.begin(), all.end()));
}

TEST_P(EveryModel, ReadsOnlyWhatWasWrittenOrIsThereFromTheStart) {
  const Graph made = graph();
  const std::set<std::string> inputs{"images", "labels", "indices", "attention_mask", "one_hot"};
  std::set<TensorId> written;
  for (const Node& node : made.nodes) {
    for (const TensorUse& read : node.kernel.reads) {
      const Tensor& tensor = made.tensors[read.tensor.value];
      const bool persistent = tensor.memory_class == MemoryClass::parameters ||
                              tensor.memory_class == MemoryClass::optimizer ||
                              tensor.memory_class == MemoryClass::gradients;
      const std::string last = tensor.name.substr(tensor.name.rfind('.') + 1);
      EXPECT_TRUE(persistent || inputs.count(last) > 0 || written.count(read.tensor) > 0)
          << tensor.name << " in " << node.layer << " " << node.name;
    }
    for (const TensorUse& write : node.kernel.writes) written.insert(write.tensor);
  }
}

TEST_P(EveryModel, WritesEachResultWithinAByteABlock) {
  for (const Graph made = graph(); const Node& node : made.nodes) {
    if (node.kind != NodeKind::kernel || !node.kernel.write_at_end) continue;
    for (const TensorUse& write : node.kernel.writes) {
      const auto total = static_cast<double>(made.tensors[write.tensor.value].bytes.count());
      const auto blocks = static_cast<double>(node.kernel.shape.blocks());
      if (total < 32 * blocks) continue;  // less than a sector a block
      EXPECT_NEAR(static_cast<double>(write.bytes_per_block) * blocks, total, blocks) << node.name;
    }
  }
}

using Case = testing::TestParamInfo<EveryModel::ParamType>;

std::string case_name(const Case& test) {
  const auto& [name, precision, batch] = test.param;
  std::string text = fmt::format("{}_{}_{}", name, precision, batch);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(ModelZoo, EveryModel,
                         testing::Combine(testing::Values("resnet50", "vgg16", "bert-large", "wavenet"),
                                          testing::Values("fp32", "tf32", "amp"), testing::Values(1U, 32U)),
                         case_name);

TEST(ModelZoo, HalvesActivationsButNotParametersUnderMixedPrecision) {
  std::map<std::string, std::map<std::string, std::int64_t>> bytes;
  for (const std::string precision : {"tf32", "amp"}) {
    for (const Tensor& tensor : model("resnet50", 4, precision).tensors) {
      bytes[precision][tensor.name] = tensor.bytes.count();
    }
  }
  for (const std::string name : {"layer1.0.conv1.output", "layer3.2.bn2.output"}) {
    EXPECT_EQ(bytes["tf32"].at(name), 2 * bytes["amp"].at(name));
  }
  for (const std::string name : {"fc.weight", "fc.weight.grad", "optimizer.momentum"}) {
    EXPECT_EQ(bytes["tf32"].at(name), bytes["amp"].at(name));
  }
  EXPECT_EQ(bytes["amp"].at("fc.weight.fp16"), 2 * 2'048'000);
}

TEST(ModelZoo, RunsForwardBackwardOptimizerInThatOrder) {
  const Graph graph = model("bert-large", 1, "amp");
  EXPECT_TRUE(std::is_sorted(graph.nodes.begin(), graph.nodes.end(),
                             [](const Node& a, const Node& b) { return a.phase < b.phase; }));
}

TEST(ModelZoo, KeepsTheTiedEmbeddingsGradientForLast) {
  const Graph graph = model("bert-large", 1);
  TensorId last;
  for (const Node& node : graph.nodes) {
    if (!node.gradients_ready.empty()) last = node.gradients_ready.back();
  }
  EXPECT_EQ(graph.tensors[last.value].name, "bert.embeddings.word_embeddings.weight");
}

TEST(ModelZoo, SaysWhatItExpected) {
  EXPECT_THROW((void)model("resnet51", 1), InputError);
  EXPECT_THROW((void)model("resnet50", 0), InputError);
  EXPECT_THROW((void)model("resnet50", 1, "fp8"), InputError);
  EXPECT_THROW((void)model("bert-large", 1, "amp", 513), InputError);
  EXPECT_THROW((void)make_model({"resnet50", 1, "amp", 0, 0}), InputError);
  EXPECT_THROW((void)make_model({"vgg16", 1, "amp", 0, kUnits, 4}), InputError);
  EXPECT_THROW((void)make_model({"bert-large", 1, "amp", 0, kUnits, 25}), InputError);
}

// NVIDIA's DeepLearningExamples reach 2470 (mixed) and 938 (TF32) images a second on A100 (HBM: 1555 GB/s, 312 and 156
// TFLOPS). A model that must move more bytes or compute more than the machine can in that time is wrong.
TEST(ModelZooValidation, ResNet50IsNoHeavierThanMeasuredTrainingAllows) {
  struct Measured {
    std::string precision;
    double images_per_s, flops_per_s;
  };
  for (const Measured& c : {Measured{"amp", 2470, 312e12}, Measured{"tf32", 938, 156e12}}) {
    const Graph graph = model("resnet50", 256, c.precision);
    double bytes = 0, flops = 0;
    for (const Node& node : graph.nodes) {
      if (node.kind != NodeKind::kernel) continue;
      std::map<TensorId, double> touched;  // each tensor once a kernel: what passes HBM when nothing stays in L2
      for (const auto& uses : {node.kernel.reads, node.kernel.writes}) {
        for (const TensorUse& use : uses) {
          touched[use.tensor] +=
              static_cast<double>((highest_slice(use, node.kernel.shape.blocks()) + 1) * use.bytes_per_block);
        }
        for (const auto& [tensor, size] : touched) {
          bytes += std::min(size, static_cast<double>(graph.tensors[tensor.value].bytes.count()));
        }
        touched.clear();
      }
      flops += node.kernel.flops[0] + node.kernel.flops[1];
    }
    const double measured = 256 / c.images_per_s;
    EXPECT_LT(bytes / 1555e9, measured) << c.precision;
    EXPECT_GT(bytes / 1555e9, 0.5 * measured) << c.precision;
    EXPECT_LT(flops / c.flops_per_s, measured) << c.precision;
  }
}

}  // namespace
}  // namespace weft
