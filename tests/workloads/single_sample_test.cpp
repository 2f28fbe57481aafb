// Memory and bytes of schemes that split one sample, against measurements and formulas.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "workloads/address_plan.h"
#include "workloads/single_sample/attention_layer.h"

namespace weft {
namespace {

SampleSplit split_of(SampleScheme scheme, std::uint32_t ranks, std::int64_t offset = 0) {
  SampleSplit split{.scheme = scheme, .offset = offset};
  for (std::uint32_t r = 0; r < ranks; ++r) split.gpus.push_back(r);
  return split;
}

ModelSpec spec(const char* precision) {
  return {.model = "attention", .batch = 1, .precision = precision, .compute_units = 72};
}

std::int64_t peak_bytes(const Graph& graph) {
  std::int64_t now = 0;
  std::int64_t peak = 0;
  const AddressPlan plan = plan_addresses(graph);
  for (const auto& event : plan.events) {
    now += event.bytes.count();
    peak = std::max(peak, now);
  }
  return peak;
}

// What a product takes beyond its operands.
double peak_of(DistributedProduct product, std::int64_t rows, std::int64_t columns, std::uint32_t ranks,
               std::int64_t offset) {
  SampleSplit split = split_of(SampleScheme::single_sample, ranks, offset);
  split.overlap = false;
  const Graph graph = make_distributed_product(spec("fp32"), product, rows, columns, split);
  return static_cast<double>(peak_bytes(graph) - graph.tensors[2].bytes.count() - graph.tensors[3].bytes.count());
}

TEST(DistributedProductMemoryFormula, IsThatOfTheProgram) {
  const std::int64_t ranks = 3, columns = 768;
  for (const std::int64_t rows : {3000, 7500}) {
    const std::int64_t own = rows / ranks;
    for (const std::int64_t offset : {100, 300}) {
      const std::int64_t last = own % offset == 0 ? offset : own % offset;
      const auto nt = static_cast<double>(4 * (2 * own * rows + ranks * own * last + ranks * last * columns));
      EXPECT_NEAR(peak_of(DistributedProduct::nt, rows, columns, 3, offset), nt, 0.001 * nt) << rows << " " << offset;
    }
    const auto all =
        static_cast<double>(4 * (own * rows + ranks * own * columns + 2 * ranks * own * columns + own * columns));
    EXPECT_NEAR(peak_of(DistributedProduct::all, rows, columns, 3, columns), all, 0.001 * all);
  }
}

// The author's own measurements: 3 Quadro RTX 6000, 75,000 / scale rows of 768 (benchmark.py), the offset of nt 1000
// but in the file that is named after another.
TEST(DistributedProductMemoryValidation, IsWhatWasMeasured) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/graphs/margffoy";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  struct Case {
    const char* file;
    DistributedProduct product;
    std::int64_t rows, offset;
  };
  for (const Case& c : {Case{"nt_benchmark_1000.json", DistributedProduct::nt, 75000, 1000},
                        Case{"nt_benchmark_25000.json", DistributedProduct::nt, 75000, 25000},
                        Case{"nt_benchmark_size_1.json", DistributedProduct::nt, 75000, 1000},
                        Case{"nt_benchmark_size_2.json", DistributedProduct::nt, 37500, 1000},
                        Case{"all_benchmark_384.json", DistributedProduct::all, 75000, 384},
                        Case{"all_benchmark_768.json", DistributedProduct::all, 75000, 768}}) {
    std::ifstream in(folder / c.file);
    const auto runs = nlohmann::json::parse(in);
    ASSERT_FALSE(runs.empty());
    const double simulated = peak_of(c.product, c.rows, 768, 3, c.offset);
    for (const auto& run : runs) {
      const double measured = run.at("distributed_peak_memory");
      ASSERT_NEAR(simulated, measured, 0.001 * measured) << c.file;
    }
    RecordProperty(c.file, std::to_string(simulated));
  }
}

TEST(DistributedProductMemory, ASmallerOffsetTakesLess) {
  double before = 0;
  for (const std::int64_t offset : {10, 50, 250, 1000}) {
    const double peak = peak_of(DistributedProduct::nt, 3000, 768, 3, offset);
    EXPECT_GT(peak, before);
    before = peak;
  }
}

// Bytes that a GPU receives of all collectives of a kind, as an ideal network carries them.
struct Received {
  double forward = 0, backward = 0;
};

Received received(const Graph& graph) {
  Received sum;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::collective) continue;
    const auto bytes = static_cast<double>(node.collective.bytes.count());
    const auto p = static_cast<double>(node.collective.group_ranks.size());
    double got = bytes;
    switch (node.collective.kind) {
      case CollectiveKind::all_gather:
        got = bytes * (p - 1);
        break;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_to_all:
        got = bytes * (p - 1) / p;
        break;
      case CollectiveKind::all_reduce:
        got = 2 * bytes * (p - 1) / p;
        break;
      default:
        break;
    }
    (node.phase == TrainingPhase::forward ? sum.forward : sum.backward) += got;
  }
  return sum;
}

// Of a layer of h = 512 in BF16, s = 4096 tokens over P GPUs: ../shared/SCHEMES.md has the formulas.
class SampleBytesFormula : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::int64_t kTokens = 4096;
  static constexpr std::int64_t kHidden = 512;
  [[nodiscard]] Received of(SampleScheme scheme, PartialSum sums = PartialSum::all_reduce, std::uint32_t inner = 1,
                            std::int64_t offset = 0) const {
    SampleSplit split = split_of(scheme, GetParam(), offset);
    split.sums = sums;
    split.ulysses_gpus = inner;
    const AttentionGeometry geometry{kTokens, 1, 8, 8, kHidden / 8, false};
    return received(make_attention(spec("amp"), {geometry, 1}, split).graph);
  }
  [[nodiscard]] double p() const { return GetParam(); }
  [[nodiscard]] double matrix() const { return 2.0 * kTokens * kHidden; }  // bytes of one of all tokens
};

TEST_P(SampleBytesFormula, OfDistributedProducts) {
  const double rows = matrix() / p();  // R*D
  for (const std::int64_t offset : {0, 7, 100}) {
    const Received got = of(SampleScheme::single_sample, PartialSum::all_reduce, 1, offset);
    // nt and all; then nt + tn, all + tn.
    EXPECT_DOUBLE_EQ(got.forward, 2 * (p() - 1) * rows) << offset;
    EXPECT_NEAR(got.backward, 2 * (p() - 1) * rows + 2 * 2 * (p() - 1) * rows, 1) << offset;
  }
  EXPECT_NEAR(of(SampleScheme::single_sample, PartialSum::reduce_scatter).backward, 4 * (p() - 1) * rows, 1);
}

TEST_P(SampleBytesFormula, OfRingSelfAttention) {
  const Received got = of(SampleScheme::ring_self_attention);
  EXPECT_DOUBLE_EQ(got.forward, 2 * (p() - 1) / p() * matrix());
  EXPECT_NEAR(got.backward, 2 * (p() - 1) / p() * matrix() + 2 * 2 * (p() - 1) / p() * matrix(), 1);
}

TEST_P(SampleBytesFormula, OfRingAttention) {
  const Received got = of(SampleScheme::ring_attention);
  const double block = 4.0 * kTokens / p() * kHidden;
  EXPECT_DOUBLE_EQ(got.forward, (p() - 1) * block);
  // Keys and values again, and their gradients in FP32, which make one step more.
  EXPECT_DOUBLE_EQ(got.backward, (p() - 1) * block + p() * 2 * block);
}

TEST_P(SampleBytesFormula, OfContextParallelism) {
  const Received got = of(SampleScheme::context_parallel);
  EXPECT_DOUBLE_EQ(got.forward, 2 * (p() - 1) / p() * matrix());
  EXPECT_DOUBLE_EQ(got.backward, 4 * (p() - 1) / p() * matrix());
}

TEST_P(SampleBytesFormula, OfUlysses) {
  const Received got = of(SampleScheme::ulysses);
  EXPECT_DOUBLE_EQ(got.forward, 4 * matrix() / p() * (p() - 1) / p());
  EXPECT_DOUBLE_EQ(got.backward, got.forward);
  const Received both = of(SampleScheme::ulysses_ring, PartialSum::all_reduce, 2);
  const double ring = p() / 2;
  EXPECT_DOUBLE_EQ(both.forward, 4 * matrix() / p() / 2 + 2 * (ring - 1) / ring * matrix() / 2);
}

TEST_P(SampleBytesFormula, OfMegatron) {
  const Received got = of(SampleScheme::megatron);
  EXPECT_DOUBLE_EQ(got.forward, 2 * (p() - 1) / p() * matrix());   // of attention; as much of the feed-forward layer
  EXPECT_DOUBLE_EQ(got.backward, 3 * (p() - 1) / p() * matrix());  // rows are gathered again for weight gradients
}

INSTANTIATE_TEST_SUITE_P(Gpus, SampleBytesFormula, ::testing::Values(2, 4, 8));

TEST(SampleMemory, ScoresArePartedByTheGpus) {
  const auto peak = [](SampleScheme scheme, std::uint32_t ranks) {
    const AttentionGeometry geometry{8192, 1, 1, 1, 64, false};
    return static_cast<double>(peak_bytes(make_attention(spec("fp32"), {geometry, 1}, split_of(scheme, ranks)).graph));
  };
  for (const auto scheme : {SampleScheme::single_sample, SampleScheme::ring_self_attention}) {
    EXPECT_NEAR(peak(scheme, 2) / peak(scheme, 8), 4, 0.25);
  }
  // No scores: what is left is linear in the rows.
  EXPECT_LT(peak(SampleScheme::ring_attention, 2) * 8, peak(SampleScheme::ring_self_attention, 2));
}

}  // namespace
}  // namespace weft
