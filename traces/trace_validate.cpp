#include <algorithm>
#include <limits>
#include <set>

#include "sim/error.h"
#include "traces/trace.h"

namespace weft {
namespace {

class Validator {
 public:
  Validator(const Trace& trace, const std::string& source) : trace_(trace), source_(source) {}

  void run() {
    if (trace_.world_size == 0) fail("/world_size", "expected at least 1, got 0");
    if (trace_.ranks.empty()) fail("/ranks", "expected at least one rank, got none");
    std::optional<std::uint32_t> previous;
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r) {
      const TraceRank& rank = trace_.ranks[r];
      const std::string place = "/ranks/" + std::to_string(r);
      if (rank.rank >= trace_.world_size)
        fail(place + "/rank", "expected a rank below the world size " + std::to_string(trace_.world_size) + ", got " +
                                  number(rank.rank));
      if (previous && rank.rank == *previous)
        fail(place + "/rank", "expected each rank once, got " + number(rank.rank));
      if (previous && rank.rank < *previous)
        fail(place + "/rank", "expected ascending ranks, got " + number(rank.rank));
      previous = rank.rank;
      check_rank(rank, place);
    }
  }

 private:
  static std::string number(std::int64_t n) { return std::to_string(n); }
  [[noreturn]] void fail(const std::string& place, const std::string& message) const {
    throw InputError(source_, place, message);
  }
  void not_negative(Time t, const std::string& place, const char* what) const {
    if (t < Time()) fail(place, std::string("expected a ") + what + " of at least 0, got " + number(t.count()) + " fs");
  }

  void check_rank(const TraceRank& rank, const std::string& place) const {
    if (rank.memory_bytes < 0) fail(place + "/memory_bytes", "expected at least 0, got " + number(rank.memory_bytes));
    for (std::size_t i = 0; i < rank.iterations.size(); ++i) {
      const TraceIteration& it = rank.iterations[i];
      const std::string here = place + "/iterations/" + std::to_string(i);
      not_negative(it.start, here, "start");
      if (it.end < it.start) fail(here, "expected an end after the start, got a negative duration");
      if (i > 0 && it.start < rank.iterations[i - 1].start) fail(here, "expected ascending starts, got an earlier one");
    }
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      const std::string here = place + "/ops/" + std::to_string(i) + " (" + rank.ops[i].name + ")";
      if (i > 0 && rank.ops[i].issued < rank.ops[i - 1].issued)
        fail(here, "expected operations in order of issue, got an earlier one");
      check_op(rank, i, here);
    }
    check_traffic(rank.traffic, place + "/traffic");
  }

  void check_traffic(const TraceTraffic& traffic, const std::string& place) const {
    if (traffic.duration.size() != traffic.size()) fail(place, "expected a duration for each start");
    Time end;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      const std::string here = place + "/start_fs/" + std::to_string(i);
      if (traffic.start[i] < end)
        fail(here, "expected at least " + number(end.count()) + " fs, got " + number(traffic.start[i].count()));
      if (traffic.duration[i] <= Time()) fail(here, "expected a duration above 0, got none");
      if (traffic.duration[i] > Time::max() - traffic.start[i]) fail(here, "expected an end within 2^63 fs");
      end = traffic.start[i] + traffic.duration[i];
    }
    for (std::size_t c = 0; c < kTrafficCounterCount; ++c) {
      const std::vector<std::int64_t>& bytes = traffic.bytes[c];
      const std::string here = place + "/" + std::string(kTrafficCounterWords[c]);
      if (!bytes.empty() && bytes.size() != traffic.size())
        fail(here, "expected " + std::to_string(traffic.size()) + " values, got " + std::to_string(bytes.size()));
      for (const std::int64_t value : bytes)
        if (value < 0 || value > kMostCounted) fail(here, "expected 0 to 2^58, got " + number(value));
    }
  }

  void check_op(const TraceRank& rank, std::size_t index, const std::string& place) const {
    const TraceOp& op = rank.ops[index];
    not_negative(op.issued, place, "time of issue");
    not_negative(op.issue_duration, place, "duration of the call");
    not_negative(op.start, place, "start");
    not_negative(op.duration, place, "duration");
    if (op.start.count() > std::numeric_limits<std::int64_t>::max() - op.duration.count())
      fail(place, "expected an end within 2^63 fs, got a later one");
    if (op.bytes < Bytes()) fail(place, "expected at least 0 B, got " + number(op.bytes.count()));
    if (op.iteration && *op.iteration >= rank.iterations.size())
      fail(place, "expected an iteration below " + number(static_cast<std::int64_t>(rank.iterations.size())) +
                      ", got " + number(*op.iteration));
    if (op.shape) check_shape(*op.shape, place);
    for (std::size_t w = 0; w < op.waits.size(); ++w) {
      if (op.waits[w] >= rank.ops.size())
        fail(place, "expected to wait for an existing operation, got number " + number(op.waits[w]));
      if (op.waits[w] >= index)
        fail(place, "expected to wait for an earlier operation, got number " + number(op.waits[w]) +
                        ": dependencies would form a cycle");
      if (w > 0 && op.waits[w] <= op.waits[w - 1]) fail(place, "expected ascending waits, got " + number(op.waits[w]));
    }
    if ((op.kind == TraceOpKind::collective) != op.collective.has_value())
      fail(place, "expected collective details on collectives and nowhere else");
    if (op.counters) check_counters(op, place);
    if (op.collective) check_collective(rank, *op.collective, place);
  }

  void check_shape(const LaunchShape& shape, const std::string& place) const {
    double blocks = 1;
    double threads = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      blocks *= shape.grid[i];
      threads *= shape.block[i];
    }
    if (shape.cluster_blocks < 1) fail(place, "expected a cluster of at least 1 block, got 0");
    if (blocks < 1 || threads < 1) fail(place, "expected a grid and a block of at least 1, got 0");
    if (blocks > kMaxBlocks) fail(place, "expected at most 2^40 blocks, got more");
    if (threads > kMaxThreadsPerBlock)
      fail(place, "expected at most 1024 threads a block, got " + number(static_cast<std::int64_t>(threads)));
  }

  void check_counters(const TraceOp& op, const std::string& place) const {
    if (op.kind != TraceOpKind::kernel) fail(place, "expected counters of kernels only");
    for (std::size_t i = 0; i < kKernelCounterCount; ++i) {
      const std::int64_t value = op.counters->values[i].value_or(0);
      if (value < 0 || value > kMostCounted)
        fail(place, std::string(kKernelCounterWords[i]) + ": expected 0 to 2^58, got " + number(value));
    }
  }

  void check_collective(const TraceRank& rank, const TraceCollective& c, const std::string& place) const {
    if (c.elements && *c.elements < 0) fail(place, "expected at least 0 elements, got " + number(*c.elements));
    if (c.group_size > trace_.world_size)
      fail(place, "expected a group within the world of " + number(trace_.world_size) + ", got group size " +
                      number(c.group_size));
    // A group of which nothing is known is the world.
    const std::uint32_t size = c.group_size == 0 ? trace_.world_size : c.group_size;
    if (c.kind == CollectiveKind::shift ? c.distance < 1 || c.distance >= size : c.distance != 1)
      fail(place,
           "expected a distance from 1 to below " + number(size) + " of a shift, else 1, got " + number(c.distance));
    const bool has_first = c.kind == CollectiveKind::shift || c.kind == CollectiveKind::send_receive;
    if (c.first && (!has_first || *c.first >= size))
      fail(place, "expected who is first of a shift or send_receive within a group of " + number(size) + ", got " +
                      number(*c.first));
    if (c.group_ranks.empty()) return;
    for (const std::uint32_t member : c.group_ranks)
      if (member >= trace_.world_size)
        fail(place, "expected a group that exists in a world of " + number(trace_.world_size) + ", got rank " +
                        number(member));
    const std::set<std::uint32_t> members(c.group_ranks.begin(), c.group_ranks.end());
    if (members.size() != c.group_ranks.size()) fail(place, "expected each rank of a group once, got one twice");
    if (c.group_size != members.size())
      fail(place, "expected a group size of " + std::to_string(members.size()) + " for the ranks given, got " +
                      number(c.group_size));
    if (!members.contains(rank.rank))
      fail(place, "expected a group that holds rank " + number(rank.rank) + ", got one without it");
  }

  // CUDA C++ Programming Guide, technical specifications per compute capability: 1024 threads a block; HIP: the same.
  static constexpr double kMaxThreadsPerBlock = 1024;
  static constexpr double kMaxBlocks = 1099511627776.0;  // 2^40: far above any launch, far below overflow

  const Trace& trace_;
  const std::string& source_;
};

}  // namespace

void validate(const Trace& trace, const std::string& source) { Validator(trace, source).run(); }

}  // namespace weft
