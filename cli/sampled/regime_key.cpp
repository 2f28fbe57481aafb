#include "cli/sampled/regime_key.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "cli/config/config_paths.h"
#include "cli/sampled/regime.h"
#include "gpu_model/kernel_signature.h"
#include "gpu_model/l2_of_addresses.h"
#include "sim/hash.h"

namespace weft {

namespace {

// The program that simulates: another build may simulate otherwise.
std::string own_identity() {
  struct stat file {};
  if (stat("/proc/self/exe", &file) != 0) return version();
  return version() + " " + std::to_string(file.st_size) + " " + std::to_string(file.st_mtim.tv_sec) + "." +
         std::to_string(file.st_mtim.tv_nsec);
}

class Text {
 public:
  template <class... Values>
  void add(const Values&... values) {
    (append(values), ...);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void append(const std::string& text) {
    append(text.size());
    bytes_ += text;
  }
  template <class Number>
  void append(const Number& number) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  std::string bytes_;
};

struct Interval {
  std::uint64_t begin = 0, end = 0;
};

// Bytes that an operand touches from its base on.
std::uint64_t extent(const Operand& operand, std::uint64_t blocks) {
  std::uint64_t slices = (blocks + operand.divisor - 1) / operand.divisor;
  if (operand.modulo != 0) slices = std::min<std::uint64_t>(slices, operand.modulo);
  return slices * operand.bytes_per_block;
}

template <class Visit>
void for_memory(const ProgramOp& op, Visit&& visit) {
  const auto& c = op.collective;
  switch (op.kind) {
    case ProgramOpKind::kernel:
      for (const auto* operands : {&op.kernel.reads, &op.kernel.writes}) {
        for (const Operand& operand : *operands) {
          visit(Interval{operand.base, operand.base + extent(operand, op.kernel.parts())});
        }
      }
      return;
    case ProgramOpKind::collective:
      visit(Interval{c.send_address, c.send_address + static_cast<std::uint64_t>(c.bytes.count())});
      visit(Interval{c.receive_address, c.receive_address + static_cast<std::uint64_t>(bytes_received(c))});
      return;
    case ProgramOpKind::copy:
      visit(Interval{op.copy.address, op.copy.address + static_cast<std::uint64_t>(op.copy.bytes.count())});
      return;
    case ProgramOpKind::host_wait:
      return;
  }
}

// Stretches of memory that overlap count as one; they are numbered in the order in which they are met.
class Regions {
 public:
  void note(const Interval& used) {
    if (used.end > used.begin) all_.push_back(used);
  }
  void merge() {
    std::sort(all_.begin(), all_.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    for (const Interval& next : all_) {
      if (!merged_.empty() && next.begin < merged_.back().end) {
        merged_.back().end = std::max(merged_.back().end, next.end);
      } else {
        merged_.push_back(next);
      }
    }
    numbers_.resize(merged_.size(), 0);
  }
  void name(const Interval& used, Text& text) {
    const auto after = std::upper_bound(merged_.begin(), merged_.end(), used.begin,
                                        [](std::uint64_t at, const Interval& region) { return at < region.begin; });
    if (used.end <= used.begin || after == merged_.begin()) {
      text.add(0U);
      return;
    }
    const auto region = static_cast<std::size_t>(after - merged_.begin()) - 1;
    if (numbers_[region] == 0) numbers_[region] = ++named_;
    text.add(numbers_[region], used.begin - merged_[region].begin);
  }

 private:
  std::vector<Interval> all_, merged_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t named_ = 0;
};

// What a kernel touches, without what it does with it.
void describe_traffic(const KernelDemand& k, Text& text) {
  for (const auto& size : {k.shape.grid, k.shape.block}) text.add(size[0], size[1], size[2]);
  text.add(k.shape.registers_per_thread, k.shape.shared_memory_bytes, k.iterations, k.stages, k.write_at_end, k.barrier,
           k.shape.cluster_blocks, k.pieces, k.piece_order, k.bulk_loads, k.instructions, k.memory_scale,
           k.reads.size());
  for (const auto* operands : {&k.reads, &k.writes}) {
    for (const Operand& o : *operands)
      text.add(o.bytes_per_block, o.divisor, o.modulo, o.atomic, o.shared_by, o.shared_divisor);
  }
}

// `is_before`: it is asked for what it leaves in the L2. How long it computed does not count then: that differs between
// kernels that come again in a trace, and only moves blocks against each other.
void describe(const ProgramOp& op, bool communicates, bool is_before, Text& text) {
  text.add(op.kind);
  switch (op.kind) {
    case ProgramOpKind::kernel:
      describe_traffic(op.kernel, text);
      if (!is_before) {
        text.add(op.kernel.extra_cycles_per_block, op.kernel.extra_waits, op.kernel.attention);
        for (const double flops : op.kernel.flops) text.add(flops);
      }
      text.add(communicates && op.fused);
      if (communicates && op.fused) {
        text.add(op.collective.kind, op.collective.bytes.count(), op.collective.type, op.collective.group.size());
      }
      return;
    case ProgramOpKind::collective:
      text.add(communicates);
      if (!communicates) return;
      text.add(op.collective.kind, op.collective.bytes.count(), op.collective.type, op.collective.root,
               op.collective.distance, op.collective.first.value_or(static_cast<std::uint32_t>(-1)),
               op.collective.group.size());
      if (op.collective.group.back().value >= op.collective.group.size()) {  // not the first so many
        for (const GpuId member : op.collective.group) text.add(member.value);
      }
      return;
    case ProgramOpKind::copy:
      text.add(op.copy.bytes.count(), op.copy.to_device);
      return;
    case ProgramOpKind::host_wait:
      return;
  }
}

}  // namespace

RegimeKeys::RegimeKeys(const RunConfig& config, const Program& program, bool communicates)
    : program_(&program),
      communicates_(communicates),
      memory_of_cache_(config.system.gpu.l2.bytes),
      contexts_(program.ops.size()) {
  const auto part = [&](const Json& from, const char* key) {
    return from.contains(key) ? from.at(key).dump() : std::string();
  };
  const Json& system = config.resolved.at("system");
  Text alone;
  alone.add(own_identity(), part(system, "gpu"));
  alone_ = sha256(alone.bytes());
  Text company;
  company.add(alone_, communicates, part(config.resolved, "host"));
  if (communicates) {
    company.add(config.gpus, part(config.resolved, "all_reduce"), part(config.resolved, "private"));
    for (const char* key : {"network", "switch_reduce", "network_reduce", "collectives"})
      company.add(part(system, key));
  }
  company_ = sha256(company.bytes());
}

const std::string& RegimeKeys::context_of(OpId op) {
  std::string& context = contexts_[op.value];
  if (!context.empty()) return context;
  // Back to where what was touched since fills the cache: all it held before is gone. What is touched again counts
  // once.
  std::set<std::pair<std::uint64_t, std::uint64_t>> counted;
  std::int64_t left = memory_of_cache_;
  std::int64_t look = kLookBack * memory_of_cache_;
  std::uint32_t first = op.value;
  while (first > 0 && left > 0 && look > 0) {
    const ProgramOp& before = program_->ops[--first];
    if (before.kind == ProgramOpKind::collective && !communicates_) continue;
    for_memory(before, [&](const Interval& used) {
      const auto bytes = static_cast<std::int64_t>(used.end - used.begin);
      look -= bytes;
      if (counted.emplace(used.begin, used.end).second) left -= bytes;
    });
  }
  Regions regions;
  for (std::uint32_t i = first; i <= op.value; ++i) {
    for_memory(program_->ops[i], [&](const Interval& used) { regions.note(used); });
  }
  regions.merge();
  Text text;
  text.add(left > 0 && look > 0);  // the cache was empty at first
  for (std::uint32_t i = op.value + 1; i-- > first;) {
    describe(program_->ops[i], communicates_, i < op.value, text);
    for_memory(program_->ops[i], [&](const Interval& used) { regions.name(used, text); });
  }
  context = sha256(text.bytes());
  return context;
}

std::string RegimeKeys::of_kernel(OpId op) { return sha256(alone_ + context_of(op)); }

std::string RegimeKeys::of_pace(OpId kernel, const std::string& collective) const {
  Text text;
  text.add(alone_, collective);
  for (const std::uint64_t word : kernel_signature(program_->ops[kernel.value])) text.add(word);
  return sha256(text.bytes());
}

std::string RegimeKeys::of_long_collective(OpId op, const std::vector<SubCycle>& apart) {
  const ProgramOp& described = program_->ops[op.value];
  Text text;
  text.add(company_, described.start_delay.count(), program_->priorities[described.stream.value],
           described.collective.send_address == described.collective.receive_address);
  describe(described, communicates_, false, text);
  for (const SubCycle own : apart) text.add(own);
  return sha256(text.bytes());
}

RegimeKeys::Stretch::Stretch(RegimeKeys& keys, const HostState& state, const std::vector<SubCycle>& apart)
    : keys_(&keys), first_(state.first), hash_(keys.company_) {
  if (apart.empty()) return;
  Text text;
  text.add(hash_);
  for (const SubCycle own : apart) text.add(own);
  hash_ = sha256(text.bytes());
}

void RegimeKeys::Stretch::add(OpId op, SubCycle arrival) {
  const ProgramOp& described = keys_->program_->ops[op.value];
  Text text;
  text.add(hash_, keys_->context_of(op), arrival, described.stream.value, described.start_delay.count());
  if (described.kind != ProgramOpKind::host_wait) text.add(keys_->program_->priorities[described.stream.value]);
  if (arrival < 0) text.add(described.host_delay.count());
  for (const OpId wait : described.waits) {
    if (wait.value >= first_.value) text.add(op.value - wait.value);
  }
  hash_ = sha256(text.bytes());
}

std::string RegimeKeys::Stretch::before(OpId next, SubCycle arrival, std::uint32_t open_from) const {
  Text text;
  text.add(hash_, open_from);
  if (next.value < keys_->program_->ops.size()) {
    const ProgramOp& described = keys_->program_->ops[next.value];
    text.add(described.kind, described.stream.value, arrival >= 0);
    for (const OpId wait : described.waits) {
      if (wait.value >= first_.value) text.add(next.value - wait.value);
    }
  }
  return sha256(text.bytes());
}

}  // namespace weft
