#include "traces/kernel_demand.h"

#include <algorithm>
#include <cmath>

#include "traces/guess_limits.h"
#include "traces/measured_demand.h"
#include "traces/product_depth.h"
#include "traces/product_tiles.h"

namespace weft {
namespace {
class Guesser {
 public:
  Guesser(const std::string& name, const LaunchShape& shape, const KernelFacts& known)
      : name_(name), blocks_(std::max<std::uint64_t>(shape.blocks(), 1)), known_(known) {
    guess_.node.shape = shape;
    guess_.node.origin = DemandOrigin::name;
    std::uint32_t& cluster = guess_.node.shape.cluster_blocks;
    if (cluster == 1) cluster = named_cluster(name)[0] * named_cluster(name)[1];
    if (blocks_ % cluster != 0) cluster = 1;
  }

  KernelGuess guess() {
    guess_.kernel_class = kernel_class(name_);
    switch (guess_.kernel_class) {
      case KernelClass::gemm:
      case KernelClass::convolution:
        product();
        break;
      case KernelClass::batch_norm_forward:
        // cuDNN's "singleread" keeps a channel in shared memory; the others read twice (statistics, then normalise).
        // PyTorch's own come in two kernels: statistics, then the transformation.
        if (name_.find("collect_statistics") != std::string::npos)
          reduction();
        else
          sized_stream(singleread() || name_.find("transform_input") != std::string::npos ? 1 : 2, 1, 1);
        break;
      case KernelClass::batch_norm_backward:
        sized_stream(singleread() ? 1 : 2, 2, 1);
        break;
      case KernelClass::elementwise:
        elementwise();
        break;
      case KernelClass::fill:
        if (!known_.bytes && name_.find("lementwise_kernel") != std::string::npos)
          elementwise();
        else
          known_.bytes ? stream(static_cast<double>(known_.bytes->count()), 1, 0, 1) : sized_stream(1, 0, 1);
        break;
      case KernelClass::copy:
        // What gathers by an index tells the size of the table, not of what is taken from it.
        if (known_.bytes || name_.find("ndex") != std::string::npos || name_.find("ather") != std::string::npos)
          stream(known_.bytes ? 2 * static_cast<double>(known_.bytes->count()) : traffic(), 1, 1, 1);
        else
          sized_stream(1, 1, 1);
        break;
      case KernelClass::reduction:
        reduction();
        break;
      case KernelClass::softmax_forward:
        softmax(1);
        break;
      case KernelClass::softmax_backward:
        softmax(2);
        break;
      case KernelClass::pooling_forward:
        pooling();
        break;
      case KernelClass::transpose:
        transpose();
        break;
      case KernelClass::multi_tensor:
        multi_tensor();
        break;
      case KernelClass::unknown:
        if (const auto update = embedding_update(name_, guess_.node.shape, known_.call, known_.lookups))
          update_embeddings(*update);
        else
          stream(traffic(), 1, 2, 1);
        break;
    }
    if (known_.counters != nullptr) apply_counters(*known_.counters, guess_.node, guess_.tensors);
    return std::move(guess_);
  }

 private:
  [[nodiscard]] bool singleread() const { return name_.find("singleread") != std::string::npos; }
  [[nodiscard]] double blocks() const { return static_cast<double>(blocks_); }
  [[nodiscard]] double threads() const { return guess_.node.shape.threads_per_block(); }

  // Seconds times compute units that the kernel had for itself; absent when its time alone is not known.
  [[nodiscard]] std::optional<double> unit_seconds() const {
    if (!known_.alone || known_.alone->compute_units == 0) return std::nullopt;
    const double active = std::min<double>(blocks(), known_.alone->compute_units);
    return std::max(to_seconds(known_.alone->duration) - kLaunchSeconds, 0.0) * active;
  }

  // Bytes moved by kernels whose name and grid do not tell: what memory moves in their time at a modest rate, but at
  // least a sector a thread. Without a time, four words a thread.
  [[nodiscard]] double traffic() const {
    if (const auto bytes = known_.counters != nullptr ? measured_bytes(*known_.counters) : std::nullopt)
      return std::clamp(*bytes, 1.0, 4 * kLargestTensor);
    const std::optional<double> time = unit_seconds();
    if (!time) return std::min(32 * threads() * blocks(), kLargestTensor);
    const double moved = in_steps(*time) * kBytesPerUnitSecond;
    return std::clamp(moved, std::min(32 * blocks(), kLargestTensor), 4 * kLargestTensor);
  }

  TensorUse tensor(double bytes_per_block, std::uint64_t distinct, std::uint32_t divisor, std::uint32_t modulo) {
    TensorUse use;
    use.tensor = TensorId{static_cast<std::uint32_t>(guess_.tensors.size())};
    const double limit = kLargestTensor / static_cast<double>(std::max<std::uint64_t>(distinct, 1));
    use.bytes_per_block = static_cast<std::uint64_t>(std::max(std::ceil(std::min(bytes_per_block, limit)), 1.0));
    use.divisor = divisor;
    use.modulo = modulo;
    guess_.tensors.emplace_back(static_cast<std::int64_t>(use.bytes_per_block * distinct));
    return use;
  }
  TensorUse spread(double bytes_per_block) { return tensor(bytes_per_block, blocks_, 1, 0); }

  // Every block streams its own part: `inputs` tensors read `passes` times each, `outputs` written once.
  void stream(double total, std::uint32_t passes, std::uint32_t inputs, std::uint32_t outputs) {
    parts(total / (passes * inputs + outputs) / blocks(), passes, inputs, outputs);
  }

  // The same where the operator's inputs tell how large a tensor is, else by time.
  void sized_stream(std::uint32_t passes, std::uint32_t inputs, std::uint32_t outputs) {
    const auto bytes = input_bytes();
    bytes ? parts(*bytes / blocks(), passes, inputs, outputs) : stream(traffic(), passes, inputs, outputs);
  }
  [[nodiscard]] std::optional<double> said_bytes() const {
    return known_.call != nullptr ? streamed_bytes(*known_.call, element_bytes(name_)) : std::nullopt;
  }
  std::optional<double> input_bytes() {
    const auto bytes = said_bytes();
    if (bytes) guess_.node.origin = DemandOrigin::shapes;
    return bytes;
  }

  void loop(double rounds, std::uint32_t stages) {
    guess_.node.iterations = static_cast<std::uint32_t>(std::clamp(std::ceil(rounds), 1.0, 1024.0));
    guess_.node.stages = std::min(guess_.node.iterations, stages);
  }
  void loop_over(double bytes_per_block) {
    const LoadLoop loads = load_loop(name_);
    loop(bytes_per_block / (loads.bytes * threads()), loads.rounds_in_flight);
  }

  void parts(double bytes_per_block, std::uint32_t passes, std::uint32_t inputs, std::uint32_t outputs) {
    KernelNode& node = guess_.node;
    for (std::uint32_t i = 0; i < inputs; ++i) {
      const TensorUse use = spread(bytes_per_block);
      for (std::uint32_t p = 0; p < passes; ++p) node.reads.push_back(use);
    }
    for (std::uint32_t o = 0; o < outputs; ++o) node.writes.push_back(spread(bytes_per_block));
    loop_over(bytes_per_block);
    node.flops[static_cast<std::size_t>(Pipe::fp32)] = blocks() * bytes_per_block / element_bytes(name_);
  }

  void elementwise() {
    const ElementwiseShape e = elementwise_shape(name_, guess_.node.shape);
    double per_block = static_cast<double>(e.elements_per_block) * element_bytes(name_);
    // The last block is not full, and smaller inputs are broadcast: what the operator says is exact, if it fits.
    if (const auto said = said_bytes(); said && *said <= per_block * blocks() && *said > per_block * (blocks() - 1)) {
      per_block = *said / blocks();
      guess_.node.origin = DemandOrigin::shapes;
    }
    parts(per_block, 1, e.reads, e.writes);
    // All loads of a thread are issued before the first use (CUDALoops.cuh).
    loop(1, 1);
  }

  // Blocks read their parts and leave a sum, 4 B for a warp.
  void reduction() {
    const TensorUse use = spread(input_bytes().value_or(traffic()) / blocks());
    const auto bytes = static_cast<double>(use.bytes_per_block);
    guess_.node.reads.push_back(use);
    guess_.node.writes.push_back(spread(std::min(std::ceil(threads() / 32) * 4, bytes)));
    guess_.node.write_at_end = true;
    loop_over(bytes);
    guess_.node.flops[static_cast<std::size_t>(Pipe::fp32)] = blocks() * bytes / element_bytes(name_);
  }

  // softmax_warp_forward<..., log2_elements, ...> (PersistentSoftmax.cuh): a warp holds a row of up to 2^log2_elements,
  // two rows where they are short. Rows fill on average three quarters of the power of two.
  void softmax(std::uint32_t inputs) {
    const std::optional<std::uint32_t> log2_elements = template_integer(name_, 0);
    if (said_bytes() || name_.find("_warp_") == std::string::npos || !log2_elements || *log2_elements > 13) {
      sized_stream(1, inputs, 1);
      return;
    }
    const double rows = threads() / 32 * (*log2_elements <= 7 ? 2 : 1);
    parts(0.75 * rows * static_cast<double>(1u << *log2_elements) * element_bytes(name_), 1, inputs, 1);
  }

  // DilatedMaxPool2d.cu: a thread makes one output and its 8 B index. With the usual 3x3 window and stride 2 it touches
  // four new inputs.
  void pooling() {
    const double element = element_bytes(name_);
    parts(4 * element * threads(), 1, 1, 0);
    for (const double bytes : {element, 8.0}) guess_.node.writes.push_back(spread(bytes * threads()));
    loop(1, 1);
  }

  // A tile of 32 x 32 in shared memory padded by a column (cuDNN: 4224 B = 32 * 33 * 4), or as the name says
  // (MIOpen: batched_transpose_16x32_half).
  void transpose() {
    double elements = 1024;
    if (const std::size_t at = name_.find("transpose_"); at != std::string::npos) {
      const GemmTile tile = gemm_tile(name_, guess_.node.shape);
      elements = static_cast<double>(tile.m) * tile.n;
      // These loop over tiles with a fixed number of blocks.
      stream(std::max(traffic(), 2 * elements * element_bytes(name_)), 1, 1, 1);
      return;
    }
    // Tiles at the edges are partly empty, by how much is not known: no more than memory moves in the time.
    double per_block = elements * element_bytes(name_);
    if (const auto time = unit_seconds())
      per_block = std::clamp(in_steps(*time) * kMostBytesPerUnitSecond / (2 * blocks()), per_block / 8, per_block);
    parts(per_block, 1, 1, 1);
  }

  // MultiTensorApply.cuh and apex: a block takes a chunk of 65536 elements of one tensor; tensors fill half of their
  // chunks. TensorListMetadata<n> counts the lists; the first is read only (gradients) or updated in place.
  void multi_tensor() {
    std::uint32_t lists = 2;
    if (const std::size_t at = name_.find("TensorListMetadata<"); at != std::string::npos)
      lists = std::clamp<std::uint32_t>(template_integer(name_.substr(at), 0).value_or(2), 1, 8);
    parts(0.5 * 65536 * element_bytes(name_), 1, lists, 0);
    const std::uint32_t written = lists <= 2 ? 1 : lists - 1;
    for (std::uint32_t w = 0; w < written; ++w)
      guess_.node.writes.push_back(guess_.node.reads[guess_.node.reads.size() - 1 - w]);
  }

  void update_embeddings(const EmbeddingUpdate& update) {
    guess_.node.origin = DemandOrigin::shapes;
    if (update.gathered == 0) return parts(8 * threads() / 32, 1, 1, 0);  // looks for rows, 8 B a warp
    parts(update.updated / blocks(), 1, 1, 0);
    guess_.node.writes.push_back(guess_.node.reads.front());
    guess_.node.reads.push_back(tensor(update.gathered / blocks(), update.tables, update.blocks_of_a_table, 0));
    loop(update.one_by_one, 1);
  }

  // One output tile a block, computed over K in rounds of the tile's k. Blocks with the same x share the rows of A,
  // those with the same y and z the columns of B.
  void product() {
    const GemmTile tile = gemm_tile(name_, guess_.node.shape);
    KernelNode& node = guess_.node;
    const double tile_flops = 2.0 * tile.m * tile.n;
    const auto pipe = static_cast<std::size_t>(tile.pipe);
    std::uint32_t columns = node.shape.grid[0], splits = 1;
    const bool stays = persistent_product(name_).has_value();
    const double most = stays ? kLargestTensor : blocks() * tile.m * tile.n;  // outputs, as far as a grid bounds them
    const auto work = known_.call != nullptr ? product_work(*known_.call, name_, most) : std::optional<ProductWork>();
    if (const auto tiles = work ? hopper_tiles(name_, *work, tile, node.shape) : std::nullopt) {
      columns = tiles->along_m;
      splits = tiles->splits;
      if (tiles->pieces > 0) {
        node.pieces = blocks_ = tiles->pieces;
        node.piece_order = *persistent_product(name_);
      }
    }
    const std::uint64_t rows = (blocks_ + columns - 1) / columns;
    const double operations = known_.counters != nullptr ? pipe_operations(*known_.counters)[pipe].value_or(0) : 0;
    // An implicit convolution reads each input for up to 3 x 3 taps, from L1 and shared memory for the most part.
    const double taps = work ? work->taps : guess_.kernel_class == KernelClass::convolution ? 9 : 1;
    if (work) node.origin = DemandOrigin::shapes;
    const double total = operations > 0 || !work ? operations : work->flops;
    const double depth = total > 0 ? std::min(total / (tile_flops * blocks()), 1e9)
                                   : depth_from_time(tile, blocks_, columns, taps, unit_seconds());
    node.iterations = static_cast<std::uint32_t>(std::max(std::floor(depth / tile.k), 1.0));
    node.stages = tile.stages;
    const double k = total > 0 ? depth : static_cast<double>(node.iterations) * tile.k;
    node.reads.push_back(tensor(tile.m * k * tile.element_bytes / taps, columns * splits, 1, columns * splits));
    node.reads.push_back(tensor(tile.n * k * tile.element_bytes, rows, columns, 0));
    node.writes.push_back(spread(static_cast<double>(tile.m) * tile.n * tile.element_bytes));
    const auto [of_a, of_b] = sharers(name_, tile, node.shape.cluster_blocks);
    node.reads[0].shared_by = of_a;
    node.reads[0].shared_divisor = columns;
    node.reads[1].shared_by = of_b;
    node.bulk_loads = node.shape.cluster_blocks > 1 || stays;
    node.write_at_end = true;
    node.barrier = true;
    node.flops[pipe] = tile_flops * k * blocks();
  }

  const std::string& name_;
  std::uint64_t blocks_;
  const KernelFacts& known_;
  KernelGuess guess_;
};

}  // namespace

KernelGuess guess_kernel_demand(const std::string& kernel_name, const LaunchShape& shape, const KernelFacts& known) {
  return Guesser(kernel_name, shape, known).guess();
}

}  // namespace weft
