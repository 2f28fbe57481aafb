#include "traces/capture/inject/counter_metrics.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace weft::capture {

namespace {

// L2 and HBM move sectors: NVIDIA's profiling guide, "L2 Cache".
constexpr double kSectorBytes = 32;

// Names changed with the chips: the first that is there counts.
using Names = std::array<std::string_view, 3>;
constexpr Names kHbmRead{"dram__bytes_read", "dram__bytes_op_read"};
constexpr Names kHbmWritten{"dram__bytes_write", "dram__bytes_op_write"};

// Those of L2 are what compute units ask: what its halves ask of each other does not count.
struct Choice {
  KernelCounter counter;
  double scale;
  Names names;
};
constexpr std::array kBytes{
    Choice{KernelCounter::hbm_read_bytes, 1, kHbmRead}, Choice{KernelCounter::hbm_written_bytes, 1, kHbmWritten},
    Choice{KernelCounter::l2_read_bytes,
           kSectorBytes,
           {"lts__t_sectors_srcnode_gpc_op_read", "lts__t_sectors_srcunit_tex_op_read", "lts__t_sectors_op_read"}},
    Choice{KernelCounter::l2_written_bytes,
           kSectorBytes,
           {"lts__t_sectors_srcnode_gpc_op_write", "lts__t_sectors_srcunit_tex_op_write", "lts__t_sectors_op_write"}}};

struct TrafficChoice {
  TrafficCounter counter;
  Names names;
};
constexpr std::array kTraffic{TrafficChoice{TrafficCounter::hbm_read_bytes, kHbmRead},
                              TrafficChoice{TrafficCounter::hbm_written_bytes, kHbmWritten},
                              TrafficChoice{TrafficCounter::nvlink_received_bytes, {"nvlrx__bytes"}},
                              TrafficChoice{TrafficCounter::nvlink_sent_bytes, {"nvltx__bytes"}}};

// What CUPTI lists for a chip.
class BaseMetrics {
 public:
  explicit BaseMetrics(std::vector<std::string_view> names) : names_(std::move(names)) {
    std::sort(names_.begin(), names_.end());
  }
  [[nodiscard]] const std::vector<std::string_view>& sorted() const { return names_; }
  [[nodiscard]] bool has(std::string_view name) const { return std::binary_search(names_.begin(), names_.end(), name); }
  // Empty: none of them.
  [[nodiscard]] std::string_view first_of(const Names& names) const {
    const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view name) { return has(name); });
    return found == names.end() ? std::string_view() : *found;
  }

 private:
  std::vector<std::string_view> names_;
};

// The sum over all units of the chip.
std::string summed(std::string_view name) { return std::string(name) + ".sum"; }

// Instructions of threads that did something, by operation: an FMA counts as two operations.
struct Instructions {
  KernelCounter counter;
  char letter;
};
constexpr std::array kInstructions{Instructions{KernelCounter::fp64_ops, 'd'},
                                   Instructions{KernelCounter::fp32_ops, 'f'},
                                   Instructions{KernelCounter::fp16_ops, 'h'}};

constexpr std::string_view kTensor = "sm__ops_path_tensor_src_";

std::optional<KernelCounter> tensor_counter(std::string_view type) {
  struct Type {
    std::string_view begins;
    KernelCounter counter;
  };
  // Of metrics for several types the widest rate counts: "fp4_fp6_fp8" is as fast as FP8.
  constexpr std::array kTypes{
      Type{"fp16", KernelCounter::tensor_fp16_ops},    Type{"bf16", KernelCounter::tensor_fp16_ops},
      Type{"tf32", KernelCounter::tensor_tf32_ops},    Type{"fp64", KernelCounter::fp64_ops},
      Type{"fp8", KernelCounter::tensor_8bit_ops},     Type{"int8", KernelCounter::tensor_8bit_ops},
      Type{"fp4_fp6", KernelCounter::tensor_8bit_ops}, Type{"fp6", KernelCounter::tensor_8bit_ops},
      Type{"fp4", KernelCounter::tensor_4bit_ops},     Type{"int4", KernelCounter::tensor_4bit_ops}};
  for (const Type& known : kTypes)
    if (type.starts_with(known.begins)) return known.counter;
  return std::nullopt;  // single bits
}

class Chooser {
 public:
  explicit Chooser(const std::vector<std::string_view>& names) : names_(names) {}

  CounterMetrics choose() {
    for (const Choice& choice : kBytes) {
      const std::string_view name = names_.first_of(choice.names);
      if (name.empty())
        miss(choice.counter);
      else
        add(name, choice.counter, choice.scale);
    }
    for (const Instructions& kind : kInstructions) {
      const auto name = [&](const char* operation) {
        return std::string("smsp__sass_thread_inst_executed_op_") + kind.letter + operation + "_pred_on";
      };
      if (!names_.has(name("add")) || !names_.has(name("mul")) || !names_.has(name("fma"))) {
        miss(kind.counter);
        continue;
      }
      add(name("add"), kind.counter, 1);
      add(name("mul"), kind.counter, 1);
      add(name("fma"), kind.counter, 2);
    }
    choose_tensor();
    return std::move(out_);
  }

 private:
  void add(std::string_view name, KernelCounter counter, double scale) {
    out_.metrics.push_back({summed(name), counter, scale});
  }
  void miss(KernelCounter counter) { out_.missing.push_back(kKernelCounterWords[static_cast<std::size_t>(counter)]); }

  // By the type of the sources. Of a name and those that refine it ("_sparsity_on", "_dst_fp32") the first says all.
  void choose_tensor() {
    std::string_view taken;
    for (const std::string_view name : names_.sorted()) {
      if (!name.starts_with(kTensor)) continue;
      const bool refines =
          !taken.empty() && name.starts_with(taken) && (name.size() == taken.size() || name[taken.size()] == '_');
      if (refines) continue;
      taken = name;
      if (const auto counter = tensor_counter(name.substr(kTensor.size()))) add(name, *counter, 1);
    }
  }

  BaseMetrics names_;
  CounterMetrics out_;
};

}  // namespace

std::string missing_counters(const std::string& chip, const std::vector<std::string_view>& missing) {
  std::string text = "this chip (" + chip + ") has no counters for:";
  for (const std::string_view counter : missing) text.append(" ").append(counter);
  return text;
}

bool waits_for_others(std::string_view kernel_name) {
  std::string plain;
  for (const char c : kernel_name)
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  // NCCL and its kin; NVSHMEM and what is built on it; all-reduces of inference engines; PyTorch's symmetric memory.
  constexpr std::array kParts{"nccl",      "msccl",         "nvshmem",   "deepep",     "crossdevicereduce",
                              "allreduce", "reducescatter", "allgather", "alltoall",   "sendrecv",
                              "multimem",  "symmetricmem",  "symmmem",   "p2pbarrier", "userbuffers"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](const char* part) { return plain.find(part) != std::string::npos; });
}

CounterMetrics counter_metrics(const std::vector<std::string_view>& base_metrics) {
  return Chooser(base_metrics).choose();
}

TrafficMetrics traffic_metrics(const std::vector<std::string_view>& base_metrics) {
  const BaseMetrics names(base_metrics);
  TrafficMetrics out;
  for (const TrafficChoice& choice : kTraffic) {
    const std::string_view name = names.first_of(choice.names);
    if (name.empty())
      out.missing.push_back(kTrafficCounterWords[static_cast<std::size_t>(choice.counter)]);
    else
      out.metrics.push_back({summed(name), choice.counter});
  }
  return out;
}

}  // namespace weft::capture
