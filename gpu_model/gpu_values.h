// The numbers in one GPU, where values travel (functional mode): what its memory holds, what its warps have loaded, and
// how they add. The GPU calls it when the thing happens: a load is served, a round stores, a packet comes. So sums come
// about in the order and with the data that the programs really have.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gpu_model/phase.h"
#include "network/payloads.h"
#include "sim/ids.h"

namespace weft {

// One addition on a compute unit, as NCCL has it: each sum is rounded to the operands' type; that of FP8 is rounded to
// FP16 and then, saturating, to FP8 (NCCL src/device/reduce_kernel.h, FuncSum).
[[nodiscard]] std::uint64_t added_by_warps(NumberFormat format, double a, double b);

class GpuValues {
 public:
  GpuValues(GpuId id, NumberFormat format, Payloads& payloads) : id_(id), format_(format), payloads_(&payloads) {}

  // Of HBM, or of the endpoint engine's SRAM behind it. Zeros where nothing was written.
  LineValues& memory(LineAddress line);

  // An agent begins a phase: it loads the same number of lines from each stream, and stores their sums.
  void begin(std::uint32_t agent, const Phase& phase);
  // Its loads from the own memory are served.
  void loaded(std::uint32_t agent, LineAddress first, std::uint32_t count);
  // The answer to a load from elsewhere has come.
  void arrived(const Packet& reply);
  // It stores lines [line, line + count) of a stream, in a request of this kind if it goes by a link. Rounds are
  // complete by the number of lines that came, whichever they are: values of a line that is late follow the store.
  void stores(std::uint32_t agent, const LineStream& stream, std::uint32_t line, std::uint32_t count, PacketKind kind);
  // Its stores to the own memory are done.
  void stored(std::uint32_t agent, LineAddress first, std::uint32_t count);
  // The memory answers another GPU's read by `reply`, and takes its write.
  void serve(const Packet& reply) { payloads_->put(reply, reply.line, &memory(reply.line)); }
  void write(const Packet& write);

 private:
  static constexpr std::uint32_t kPageLines = 256;
  using Page = std::array<LineValues, kPageLines>;
  struct Registers {
    std::array<LineStream, Phase::kMaxLoads> loads{};
    std::uint32_t load_count = 0;
    std::uint32_t count = 0;         // lines of each stream
    std::vector<LineValues> lines;   // by stream
    std::vector<std::uint8_t> came;  // by line, the streams as a mask
    struct Late {
      std::uint32_t line = 0;  // of the phase
      Packet packet;           // with the address
    };
    std::vector<Late> late;  // stores that wait for their values
  };
  void keep(Registers& registers, std::uint32_t stream, LineAddress line, const LineValues& values);
  static bool complete(const Registers& registers, std::uint32_t line);
  [[nodiscard]] LineValues sum(const Registers& registers, std::uint32_t line) const;
  [[nodiscard]] Packet local_store(std::uint32_t agent) const;

  GpuId id_;
  NumberFormat format_;
  Payloads* payloads_;
  std::unordered_map<LineAddress, std::unique_ptr<Page>> pages_;
  std::vector<Registers> registers_;  // by agent
};

}  // namespace weft
