#include "workloads/collective_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/error.h"
#include "workloads/address_plan.h"

namespace weft {

namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;

Groups groups_of(const CollectiveSeries& series) {
  if (!series.groups.empty()) return series.groups;
  Groups all(1, std::vector<std::uint32_t>(series.gpus));
  std::iota(all.front().begin(), all.front().end(), 0U);
  return all;
}

void check_group(const CollectiveSeries& series, const std::vector<std::uint32_t>& group, std::size_t number,
                 std::vector<bool>& taken) {
  const std::string place = series.groups.empty() ? "/gpus" : fmt::format("/workload/groups/{}", number);
  const auto fail = [&](const std::string& message) { throw InputError("", place, message); };
  if (series.kind == CollectiveKind::send_receive && group.size() != 2) {
    fail(fmt::format("expected 2 GPUs for send_receive, got {}", group.size()));
  }
  if (group.size() < 2) fail(fmt::format("expected at least 2 GPUs, got {}", group.size()));
  for (const std::uint32_t gpu : group) {
    if (gpu >= series.gpus) fail(fmt::format("expected GPUs below {}, got {}", series.gpus, gpu));
    if (taken[gpu]) fail(fmt::format("expected each GPU once in one group at most, got {} again", gpu));
    taken[gpu] = true;
  }
  if (series.kind == CollectiveKind::shift && !std::is_sorted(group.begin(), group.end()))
    fail("expected ascending GPUs, each of which sends to the next one, got another order");
  if (series.root >= group.size()) {
    throw InputError("", "/workload/root",
                     fmt::format("expected a place in a group of {}, got {}", group.size(), series.root));
  }
}

}  // namespace

void validate(const CollectiveSeries& series) {
  if (series.gpus < 2) {
    throw InputError("", "/gpus", fmt::format("expected 2 or more for a collective, got {}", series.gpus));
  }
  if (series.iterations == 0) throw InputError("", "/iterations", "expected 1 or more, got 0");
  const std::int64_t element = bytes_per_element(series.type);
  const std::int64_t least = series.kind == CollectiveKind::barrier ? 0 : element;
  if (series.bytes.count() < least || series.bytes.count() % element != 0) {
    throw InputError("", "/workload/bytes",
                     fmt::format("expected a positive multiple of {}, got {}", element, series.bytes.count()));
  }
  if (series.start_delay_us.size() > series.gpus) {
    throw InputError(
        "", "/workload/start_delay_us",
        fmt::format("expected at most {} numbers, one a GPU, got {}", series.gpus, series.start_delay_us.size()));
  }
  const Groups groups = groups_of(series);
  std::vector<bool> taken(series.gpus, false);
  for (std::size_t g = 0; g < groups.size(); ++g) check_group(series, groups[g], g, taken);
}

std::vector<Program> collective_series(const CollectiveSeries& series) {
  validate(series);
  std::vector<Program> programs(series.gpus);
  for (Program& program : programs) {
    program.priorities = {0};
    program.iterations = series.iterations;
  }
  for (std::vector<std::uint32_t> group : groups_of(series)) {
    const std::uint32_t root = group.at(series.root);
    std::sort(group.begin(), group.end());
    ProgramOp op;
    op.kind = ProgramOpKind::collective;
    op.name = to_string(series.kind);
    op.collective.kind = series.kind;
    op.collective.bytes = series.bytes;
    op.collective.type = series.type;
    op.collective.root = static_cast<std::uint32_t>(std::find(group.begin(), group.end(), root) - group.begin());
    op.collective.send_address = op.collective.receive_address = kFirstAddress;
    std::int64_t buffers = 1;
    if (series.kind == CollectiveKind::shift) {  // what comes must not lie where what goes still stands
      op.collective.receive_address += DeviceAllocator::rounded(static_cast<std::uint64_t>(series.bytes.count()));
      buffers = 2;
    }
    std::vector<GpuId> members;
    for (const std::uint32_t gpu : group) members.push_back(GpuId{gpu});
    op.collective.group = std::move(members);
    for (const std::uint32_t gpu : group) {
      Program& program = programs[gpu];
      if (gpu < series.start_delay_us.size()) op.start_delay = nanoseconds(series.start_delay_us[gpu] * 1e3);
      for (op.iteration = 0; op.iteration < series.iterations; ++op.iteration) {
        op.collective.sequence = op.iteration;
        program.ops.push_back(op);
      }
      op.start_delay = Time();
      program.memory.push_back({OpId{0}, MemoryClass::communication, Bytes(buffers * series.bytes.count()), op.name});
    }
  }
  return programs;
}

}  // namespace weft
