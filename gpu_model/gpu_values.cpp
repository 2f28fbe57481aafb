#include "gpu_model/gpu_values.h"

#include "sim/error.h"

namespace weft {

namespace {
bool holds(const LineStream& stream, LineAddress line) { return line - stream.first < stream.lines; }
}  // namespace

std::uint64_t added_by_warps(NumberFormat format, double a, double b) {
  if (bytes_of(format) > 1) return encode(format, a + b);
  return encode(format, rounded(NumberFormat::fp16, a + b), Overflow::saturate);
}

LineValues& GpuValues::memory(LineAddress line) {
  std::unique_ptr<Page>& page = pages_[line / kPageLines];
  if (page == nullptr) page = std::make_unique<Page>();
  return (*page)[line % kPageLines];
}

void GpuValues::begin(std::uint32_t agent, const Phase& phase) {
  if (agent >= registers_.size()) registers_.resize(agent + std::size_t{1});
  Registers& registers = registers_[agent];
  WEFT_CHECK(registers.late.empty(), "a phase has ended whose loads have not all come");
  registers.loads = phase.loads;
  registers.load_count = phase.load_count;
  registers.count = phase.load_count > 0 ? phase.loads[0].lines : 0;
  for (std::uint32_t s = 0; s < phase.load_count; ++s) {
    WEFT_CHECK(phase.loads[s].lines == registers.count, "a phase that adds streams of different lengths");
  }
  registers.lines.resize(std::size_t{registers.count} * phase.load_count);
  registers.came.assign(registers.count, 0);
}

bool GpuValues::complete(const Registers& registers, std::uint32_t line) {
  return registers.load_count == 0 || registers.came[line] == (1U << registers.load_count) - 1;
}

void GpuValues::keep(Registers& registers, std::uint32_t stream, LineAddress line, const LineValues& values) {
  const std::uint32_t at = line - registers.loads[stream].first;
  registers.lines[std::size_t{stream} * registers.count + at] = values;
  registers.came[at] = static_cast<std::uint8_t>(registers.came[at] | 1U << stream);
  if (registers.late.empty() || !complete(registers, at)) return;
  const LineValues sum = this->sum(registers, at);
  std::erase_if(registers.late, [&](const Registers::Late& late) {
    if (late.line == at) payloads_->fill(late.packet, late.packet.line, sum);
    return late.line == at;
  });
}

// Where two streams have the same line, both get it.
void GpuValues::loaded(std::uint32_t agent, LineAddress first, std::uint32_t count) {
  Registers& registers = registers_[agent];
  for (std::uint32_t s = 0; s < registers.load_count; ++s) {
    const LineStream& stream = registers.loads[s];
    if (stream.target != Target::local) continue;
    for (LineAddress line = first; line < first + count; ++line) {
      if (holds(stream, line)) keep(registers, s, line, memory(line));
    }
  }
}

void GpuValues::arrived(const Packet& reply) {
  const LineValues values = payloads_->take(reply, reply.line);
  Registers& registers = registers_[reply.agent];
  for (std::uint32_t s = 0; s < registers.load_count; ++s) {
    const LineStream& stream = registers.loads[s];
    if (stream.target == Target::local || stream.gpu != reply.destination || !holds(stream, reply.line)) continue;
    keep(registers, s, reply.line, values);
  }
}

// In the order of the streams. A single one is copied, bit by bit.
LineValues GpuValues::sum(const Registers& registers, std::uint32_t line) const {
  if (registers.load_count == 0) return {};
  LineValues sum = registers.lines[line];
  for (std::uint32_t s = 1; s < registers.load_count; ++s) {
    const LineValues& next = registers.lines[std::size_t{s} * registers.count + line];
    for (std::uint32_t i = 0; i < elements_per_line(format_); ++i) {
      set_element(sum, format_, i, added_by_warps(format_, element_of(sum, format_, i), element_of(next, format_, i)));
    }
  }
  return sum;
}

// What a store to the own memory is called on its way there.
Packet GpuValues::local_store(std::uint32_t agent) const {
  Packet packet;
  packet.kind = PacketKind::write;
  packet.source = packet.destination = static_cast<std::uint16_t>(id_.value);
  packet.agent = agent;
  return packet;
}

void GpuValues::stores(std::uint32_t agent, const LineStream& stream, std::uint32_t line, std::uint32_t count,
                       PacketKind kind) {
  Registers& registers = registers_[agent];
  WEFT_CHECK(registers.load_count == 0 || registers.count == stream.lines,
             "a phase that stores more or less than it loads");
  Packet packet = local_store(agent);
  if (stream.target != Target::local) {
    packet.kind = kind;
    packet.destination = stream.gpu;
  }
  for (std::uint32_t i = line; i < line + count; ++i) {
    packet.line = stream.first + i;
    if (complete(registers, i)) {
      const LineValues values = sum(registers, i);
      payloads_->put(packet, packet.line, &values);
    } else {
      payloads_->put(packet, packet.line, nullptr);
      registers.late.push_back({i, packet});
    }
  }
}

void GpuValues::stored(std::uint32_t agent, LineAddress first, std::uint32_t count) {
  const Packet packet = local_store(agent);
  for (LineAddress line = first; line < first + count; ++line) payloads_->take(packet, line, memory(line));
}

void GpuValues::write(const Packet& write) {
  for (LineAddress line = write.line; line < write.line + write.payload / kLineBytes; ++line) {
    payloads_->take(write, line, memory(line));
  }
}

}  // namespace weft
