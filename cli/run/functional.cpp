#include "cli/run/functional.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cli/config/why_not_in_switch.h"
#include "network/generated_schedule.h"
#include "network/schedule_values.h"
#include "sim/error.h"
#include "sim/hash.h"

namespace weft {

namespace {

bool has_a_result(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_gather || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::shift;
}

template <class Gpus>
std::uint32_t nodes_of(const RunConfig& config, const Gpus& group) {
  const auto& cluster = config.system.network.cluster;
  if (!cluster) return 1;
  return group.back().value / cluster->gpus_per_node - group.front().value / cluster->gpus_per_node + 1;
}

// A switch adds to its accumulators; warps, and what they do with the sums of several nodes, to the operands' type.
SumRules rules_of(const RunConfig& config, const CollectivePlan& plan, const GpuGroup& group, NumberFormat format) {
  SumRules rules{.operand = format, .accumulator = format, .roundoff = 0};
  const bool by_one_sum = nodes_of(config, group) == 1 &&
                          (!config.system.switch_reduce || group.size() <= config.system.switch_reduce->fan_in);
  if (plan.algorithm == "in_switch" && by_one_sum) {
    const AccumulationSpec& spec = config.system.switch_reduce.value().accumulation;
    rules.accumulator = accumulators(spec.type, format);
    rules.overflow = spec.overflow;
  } else if (bytes_of(format) == 1) {
    rules.overflow = Overflow::saturate;
  }
  if (!is_float(format)) return rules;
  rules.roundoff = unit_roundoff(rules.accumulator);
  // Warps round twice, to FP16 first (added_by_warps).
  if (bytes_of(rules.accumulator) == 1) rules.roundoff += unit_roundoff(NumberFormat::fp16) * (1 + rules.roundoff);
  return rules;
}

// In how many ways a multicast write goes out: to the members on the sender's node.
std::vector<std::uint32_t> members_of_a_node(const RunConfig& config, const Scripts& scripts) {
  std::vector<std::uint32_t> members;
  for (const MulticastGroup& group : scripts.multicast_groups()) {
    members.push_back(static_cast<std::uint32_t>(group.gpus.size()) / nodes_of(config, group.gpus));
  }
  return members;
}

}  // namespace

void check_functional(const RunConfig& config, const std::string& file) {
  if (!config.functional) return;
  const auto fail = [&](const char* path, const std::string& message) { throw InputError(file, path, message); };
  const auto* workload = std::get_if<CollectiveWorkload>(&config.workload);
  if (workload == nullptr) fail("/functional", "expected a collective alone, got another workload");
  if (!has_a_result(workload->kind)) {
    fail("/functional",
         fmt::format("expected all_reduce, reduce_scatter, all_gather, broadcast, reduce or shift, got {}",
                     to_string(workload->kind)));
  }
  if (config.collective.algorithm == AllReduceAlgorithm::in_network) {
    fail("/all_reduce/algorithm", "expected one that carries values with functional, got in_network");
  }
  if (config.iterations != 1) fail("/iterations", fmt::format("expected 1 with functional, got {}", config.iterations));
  const Mover mover = config.collective.mover;  // the others add in memory, or over several phases
  if (mover != Mover::compute_units && mover != Mover::endpoint_engine) {
    fail("/all_reduce/mover",
         fmt::format("expected compute_units or endpoint_engine with functional, got {}", to_string(mover)));
  }
  std::size_t ranks = config.gpus;
  for (const auto& group : workload->groups) ranks = std::lcm(ranks, group.size());
  const std::int64_t unit = workload->kind == CollectiveKind::all_reduce
                                ? bytes_of(workload->type)
                                : kLineBytes * static_cast<std::int64_t>(ranks);
  if (workload->bytes.count() % unit != 0) {
    fail("/workload/bytes",
         fmt::format("expected whole lines of 128 B a rank with functional, a multiple of {}, got {}", unit,
                     workload->bytes.count()));
  }
}

Functional::Functional(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts)
    : config_(config.functional.value()),
      format_(std::get<CollectiveWorkload>(config.workload).type),
      payloads_(members_of_a_node(config, scripts)) {
  for (std::uint32_t g = 0; g < programs.size(); ++g) {
    gpus_.push_back(std::make_unique<GpuValues>(GpuId{g}, format_, payloads_));
  }
  for (const Scripts::Collective& collective : scripts.collectives()) {
    if (collective.plan.protocol != to_string(CollectiveProtocol::simple)) {
      throw InputError(
          "", "/all_reduce/protocol",
          fmt::format("expected \"Simple\" with functional, got {}, the library's choice", collective.plan.protocol));
    }
    const auto& [gpu, op] = collective.members.front();
    Group group;
    group.demand = &programs[gpu].ops[op.value].collective;
    group.rules = rules_of(config, collective.plan, group.demand->group, format_);
    group.request.kind = group.demand->kind;
    group.request.bytes = group.demand->bytes.count();
    group.request.element_bytes = bytes_of(format_);
    group.request.ranks = static_cast<std::uint32_t>(group.demand->group.size());
    group.request.root = group.demand->root;
    group.request.distance = group.demand->distance;
    group.request.first = group.demand->first;
    if (collective.plan.algorithm == "in_switch") {
      if (!pulls_on_one_level(config)) {
        throw InputError("", "/functional",
                         "expected what is pulled in switches of one level, got pushes or two levels");
      }
      const bool fixed = config.system.switch_reduce.value().accumulation.order == AccumulationOrder::fixed;
      order_ = fixed ? "fixed" : "arrival";
    }
    groups_.push_back(group);
    fill(group);
  }
}

double Functional::input(const Group& group, std::uint32_t rank, std::int64_t element) const {
  return value_of(config_.values, format_, config_.seed, rank, group.request.ranks, element);
}

LineValues& Functional::line_at(const Group& group, std::uint32_t rank, std::uint64_t buffer, std::int64_t byte) {
  const auto line = static_cast<LineAddress>((static_cast<std::int64_t>(buffer) + byte) / kLineBytes);
  return gpus_[group.demand->group[rank].value]->memory(line);
}

// In place, a rank's part lies at its place of the whole.
void Functional::fill(const Group& group) {
  const std::uint32_t per_line = elements_per_line(format_);
  for (std::uint32_t rank = 0; rank < group.request.ranks; ++rank) {
    const std::int64_t bytes = input_bytes_of(group.request, rank);
    const std::int64_t first = group.request.kind == CollectiveKind::all_gather ? rank * bytes : 0;
    for (std::int64_t e = 0; e < bytes / bytes_of(format_); ++e) {
      set_element(line_at(group, rank, group.demand->send_address, first + e * bytes_of(format_)), format_,
                  static_cast<std::uint32_t>(e) % per_line, encode(format_, input(group, rank, e)));
    }
  }
}

// Bytes of a rank's result.
std::string Functional::output(const Group& group, std::uint32_t rank) {
  const std::int64_t bytes = output_bytes_of(group.request, rank);
  const std::int64_t first = group.request.kind == CollectiveKind::reduce_scatter ? rank * bytes : 0;
  std::string output;
  for (std::int64_t byte = 0; byte < bytes; byte += kLineBytes) {
    const LineValues& line = line_at(group, rank, group.demand->receive_address, first + byte);
    output.append(reinterpret_cast<const char*>(line.data()),
                  static_cast<std::size_t>(std::min<std::int64_t>(kLineBytes, bytes - byte)));
  }
  return output;
}

void Functional::check(const Group& group, std::uint32_t rank, SumCheck& check) {
  const std::string results = output(group, rank);
  std::vector<double> terms;
  for (std::size_t byte = 0; byte < results.size(); byte += bytes_of(format_)) {
    const auto element = static_cast<std::int64_t>(byte / bytes_of(format_));
    const ExpectedElement expected = expected_element(group.request, rank, element);
    terms.clear();
    for (std::uint32_t r = 0; r < group.request.ranks; ++r) {
      if (expected.sum || r == expected.rank) terms.push_back(input(group, r, expected.element));
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, &results[byte], bytes_of(format_));
    check.add(terms, decode(format_, bits));
  }
}

FunctionalResult Functional::result() {
  WEFT_CHECK(payloads_.under_way() == 0, "all work is done, yet values are under way");
  FunctionalResult result;
  result.type = to_string(format_);
  result.order = order_;
  std::string all;
  for (const Group& group : groups_) {
    result.accumulator = to_string(group.rules.accumulator);
    const CollectiveKind kind = group.request.kind;
    const bool alike =
        kind != CollectiveKind::reduce_scatter && kind != CollectiveKind::reduce && kind != CollectiveKind::shift;
    SumCheck sums(group.rules);
    const std::string first = output(group, 0);
    for (std::uint32_t rank = 0; rank < group.request.ranks; ++rank) {
      const std::string own = output(group, rank);
      all += own;
      if (alike) result.same_on_all_ranks = result.same_on_all_ranks.value_or(true) && own == first;
      if (!alike || rank == 0 || own != first) check(group, rank, sums);  // equal bits are equally good
    }
    result.elements += sums.elements;
    result.not_finite += sums.not_finite;
    result.correctly_rounded += sums.correctly_rounded;
    result.wrong += sums.wrong;
    result.max_absolute_error = std::max(result.max_absolute_error, sums.max_absolute);
    result.max_relative_error = std::max(result.max_relative_error, sums.max_relative);
    result.max_error_ulps = std::max(result.max_error_ulps, sums.max_ulps);
    result.max_bound_share = std::max(result.max_bound_share, sums.max_bound_share);
  }
  result.digest = sha256(all);
  return result;
}

}  // namespace weft
