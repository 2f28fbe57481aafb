#include "traces/chakra_weft.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/error.h"
#include "traces/trace_words.h"

namespace weft {
namespace {

class RankReader {
 public:
  explicit RankReader(const ChakraFile& file) : file_(file) {}

  TraceRank read(Trace& trace) {
    place_ = "metadata";
    const ChakraAttributes& m = file_.metadata;
    trace.source = m.text("source");
    trace.world_size = u32(m.integer("world_size", 0), "world_size");
    TraceRank rank;
    rank.rank = u32(m.integer("rank", -1), "rank");
    rank.device = m.text("device");
    rank.compute_units = u32(m.integer("compute_units", 0), "compute_units");
    rank.memory_bytes = m.integer("memory_bytes", 0);
    rank.clock_moved = Time(m.integer("clock_moved_fs", 0));
    for (const auto& [name, value] : m.all())
      if (const auto* text = std::get_if<std::string>(&value); name == "iteration" && text != nullptr)
        rank.iterations.push_back({*text, Time(), Time()});
    const std::vector<std::int64_t> times = list(m, "iterations_fs", 2 * rank.iterations.size());
    for (std::size_t i = 0; i < rank.iterations.size(); ++i) {
      rank.iterations[i].start = Time(times[2 * i]);
      rank.iterations[i].end = Time(times[2 * i + 1]);
    }
    read_traffic(m, rank.traffic);
    for (const ChakraNode& node : file_.nodes)
      if (node.attributes.find<std::string>("kind") != nullptr) rank.ops.push_back(read_op(node));
    return rank;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw InputError(file_.name, place_, message); }

  std::uint32_t u32(std::int64_t value, std::string_view what) const {
    if (value < 0 || value > std::numeric_limits<std::uint32_t>::max())
      fail(fmt::format("expected \"{}\" from 0 to 2^32 - 1, got {}", what, value));
    return static_cast<std::uint32_t>(value);
  }
  std::vector<std::int64_t> list(const ChakraAttributes& a, const char* name, std::size_t size) const {
    const auto* values = a.find<std::vector<std::int64_t>>(name);
    if ((values ? values->size() : 0) != size) fail(fmt::format("expected {} numbers in \"{}\"", size, name));
    return values ? *values : std::vector<std::int64_t>();
  }
  std::vector<std::uint32_t> numbers(const ChakraAttributes& a, const char* name) const {
    std::vector<std::uint32_t> out;
    if (const auto* values = a.find<std::vector<std::int64_t>>(name))
      for (const std::int64_t v : *values) out.push_back(u32(v, name));
    return out;
  }
  template <class Enum, std::size_t n>
  Enum word(const std::array<Enum, n>& values, const ChakraAttributes& a, const char* name) const {
    const std::string text = a.text(name);
    const std::optional<Enum> value = from_word(values, text);
    if (!value) fail(fmt::format(R"(expected a known "{}", got "{}")", name, text));
    return *value;
  }

  void read_traffic(const ChakraAttributes& m, TraceTraffic& traffic) const {
    const auto* times = m.find<std::vector<std::int64_t>>("traffic_fs");
    if (times == nullptr) return;
    if (times->size() % 2 != 0) fail("expected a start and a duration each in \"traffic_fs\"");
    for (std::size_t i = 0; i < times->size(); i += 2) {
      traffic.start.emplace_back((*times)[i]);
      traffic.duration.emplace_back((*times)[i + 1]);
    }
    for (std::size_t c = 0; c < kTrafficCounterCount; ++c)
      if (const auto* bytes = m.find<std::vector<std::int64_t>>("traffic_" + std::string(kTrafficCounterWords[c])))
        traffic.bytes[c] = *bytes;
  }

  TraceOp read_op(const ChakraNode& node) {
    place_ = fmt::format("node {}", node.id);
    const ChakraAttributes& a = node.attributes;
    TraceOp op;
    op.kind = word(kTraceOpKinds, a, "kind");
    op.name = node.name;
    op.op = a.text("op");
    op.layer = a.text("layer");
    op.phase = word(kTrainingPhases, a, "phase");
    if (const auto* iteration = a.find<std::int64_t>("iteration")) op.iteration = u32(*iteration, "iteration");
    op.stream = u32(a.integer("stream", 0), "stream");
    op.correlation = a.integer("correlation", -1);
    const std::vector<std::int64_t> times = list(a, "times_fs", 4);
    op.issued = Time(times[0]);
    op.issue_duration = Time(times[1]);
    op.start = Time(times[2]);
    op.duration = Time(times[3]);
    if (const auto* launch = a.find<std::vector<std::int64_t>>("launch"); launch != nullptr) {
      const bool cluster = launch->size() > 8;
      const std::vector<std::int64_t> v = list(a, "launch", cluster ? 9 : 8);
      const auto at = [&](std::size_t i) { return u32(v[i], "launch"); };
      op.shape = LaunchShape{{at(0), at(1), at(2)}, {at(3), at(4), at(5)}, at(6), at(7), cluster ? at(8) : 1};
    }
    op.bytes = Bytes(a.integer("bytes", 0));
    op.copy_direction = a.text("direction");
    op.waits = numbers(a, "waits");
    if (a.find<std::string>("operator") != nullptr) op.launched_by = operator_call(node);
    if (a.find<std::vector<std::int64_t>>("counters") != nullptr) op.counters = counters(a);
    if (op.kind == TraceOpKind::collective) op.collective = collective(a);
    return op;
  }

  // -1: not measured.
  std::shared_ptr<const KernelCounters> counters(const ChakraAttributes& a) const {
    const std::vector<std::int64_t> values = list(a, "counters", kKernelCounterCount);
    KernelCounters out;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] >= 0) out.values[i] = values[i];
    return std::make_shared<const KernelCounters>(out);
  }

  std::shared_ptr<const OperatorCall> operator_call(const ChakraNode& node) {
    OperatorCall call;
    call.name = node.attributes.text("operator");
    const auto shapes = nlohmann::json::parse(node.input_shapes, nullptr, false);
    if (!shapes.is_array() || shapes.size() > kMostInputs) fail("expected a list of shapes in the inputs");
    const std::vector<std::int64_t> bytes = list(node.attributes, "input_element_bytes", shapes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      OperatorInput input;
      if (bytes[i] < 0 || bytes[i] > 64) fail("expected 0 to 64 bytes an element");
      input.element_bytes = static_cast<std::uint32_t>(bytes[i]);
      if (!shapes[i].is_array()) fail("expected a list of sizes in each shape");
      for (const auto& size : shapes[i]) {
        if (!size.is_number_unsigned() || size.get<std::uint64_t>() > static_cast<std::uint64_t>(kMostElements))
          fail("expected sizes of at least 0");
        input.sizes.push_back(size.get<std::int64_t>());
      }
      call.inputs.push_back(std::move(input));
    }
    std::shared_ptr<const OperatorCall>& shared = calls_[call];
    if (!shared) shared = std::make_shared<const OperatorCall>(std::move(call));
    return shared;
  }

  TraceCollective collective(const ChakraAttributes& a) const {
    TraceCollective c;
    c.kind = word(kCollectiveKinds, a, "collective");
    if (const auto* elements = a.find<std::int64_t>("elements")) c.elements = *elements;
    if (a.find<std::string>("dtype") != nullptr) c.type = word(kDataTypes, a, "dtype");
    c.group_size = u32(a.integer("group_size", 0), "group_size");
    c.group_ranks = numbers(a, "group_ranks");
    c.group_name = a.text("group_name");
    c.algorithm = a.text("algorithm");
    c.protocol = a.text("protocol");
    c.channels = u32(a.integer("channels", 0), "channels");
    c.distance = u32(a.integer("distance", 1), "distance");
    if (a.find<std::int64_t>("first") != nullptr) c.first = u32(a.integer("first", 0), "first");
    return c;
  }

  const ChakraFile& file_;
  std::string place_;
  std::map<OperatorCall, std::shared_ptr<const OperatorCall>> calls_;
};

}  // namespace

bool written_by_weft(const ChakraFile& file) { return file.metadata.text("schema") == "weft-trace/1"; }

TraceRank rank_of_weft(const ChakraFile& file, Trace& trace) { return RankReader(file).read(trace); }

}  // namespace weft
