#include "traces/execution_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "sim/error.h"

namespace weft {
namespace {

bool has_sizes(const OperatorInputs* inputs) {
  return inputs && std::any_of(inputs->begin(), inputs->end(), [](const OperatorInput& i) { return !i.sizes.empty(); });
}

}  // namespace

ExecutionJoin::ExecutionJoin(const ExecutionTrace& trace, KinetoFile& file) {
  std::vector<KinetoEvent*> ops;
  for (KinetoEvent& event : file.events)
    if (event.category == KinetoCategory::cpu_operator || event.category == KinetoCategory::annotation)
      ops.push_back(&event);
  operators_ = ops.size();
  if (!join_by_id(trace, ops)) join_by_order(trace, ops);
  if (nodes_.empty())
    throw InputError(file.name, "",
                     fmt::format("expected the operators of {}, by id or a thread's in the same order, got {} others",
                                 trace.name, operators_));
  for (KinetoEvent* op : ops)
    if (const ExecutionNode* found = node(op)) complete(file, *op, *found);
}

bool ExecutionJoin::join_by_id(const ExecutionTrace& trace, const std::vector<KinetoEvent*>& ops) {
  std::size_t found = 0;
  for (const KinetoEvent* op : ops) {
    const auto at = std::lower_bound(trace.nodes.begin(), trace.nodes.end(), op->correlation,
                                     [](const ExecutionNode& n, std::int64_t id) { return n.record_function < id; });
    if (at == trace.nodes.end() || at->record_function != op->correlation) continue;
    ++found;
    if (at->name == op->name) nodes_.emplace(op, &*at);
  }
  if (!nodes_.empty() && 2 * nodes_.size() >= found) return true;
  nodes_.clear();
  return false;
}

void ExecutionJoin::join_by_order(const ExecutionTrace& trace, std::vector<KinetoEvent*> ops) {
  // Ids follow the beginnings of operators, which times in whole microseconds do not always tell apart.
  std::sort(ops.begin(), ops.end(), [](const KinetoEvent* a, const KinetoEvent* b) {
    return std::tuple(a->thread, a->correlation, a->start, a->number) <
           std::tuple(b->thread, b->correlation, b->start, b->number);
  });
  std::map<std::int64_t, std::vector<const ExecutionNode*>> threads;
  for (const ExecutionNode& n : trace.nodes) threads[n.thread].push_back(&n);
  const auto same = [](const KinetoEvent* op, const ExecutionNode* n) { return op->name == n->name; };
  for (auto begin = ops.begin(); begin != ops.end();) {
    const auto end =
        std::find_if(begin, ops.end(), [&](const KinetoEvent* op) { return op->thread != (*begin)->thread; });
    for (const auto& [thread, nodes] : threads) {
      for (auto at = begin; (at = std::search(at, end, nodes.begin(), nodes.end(), same)) != end;)
        for (const ExecutionNode* n : nodes) nodes_.emplace(*at++, n);
    }
    begin = end;
  }
}

void ExecutionJoin::complete(KinetoFile& file, KinetoEvent& op, const ExecutionNode& node) {
  if (!has_sizes(op.inputs) && has_sizes(node.inputs)) op.inputs = node.inputs;
  if (!node.collective) return;
  KinetoCollective whole = op.collective ? *op.collective : KinetoCollective();
  const KinetoCollective& other = *node.collective;
  if (whole.name.empty()) whole.name = other.name;
  if (!whole.elements) {
    whole.elements = other.elements;
    whole.type = other.type;
  }
  if (!whole.group_size) whole.group_size = other.group_size;
  if (!whole.group_ranks) whole.group_ranks = other.group_ranks;
  if (whole.group_name.empty()) whole.group_name = other.group_name;
  op.collective = &file.collectives.emplace_back(std::move(whole));
}

void add_data_waits(const ExecutionJoin& join, const KinetoHost& host, std::int64_t tolerance,
                    std::vector<KinetoOp>& ops) {
  std::map<std::int64_t, std::uint32_t> writers;  // of storages: who wrote last
  // By a stream and one that it waited for: up to which operation, so that those behind need not wait again.
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> waited;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    KinetoOp& op = ops[i];
    if (!op.gpu) continue;
    const auto wait = [&](std::uint32_t other) {
      std::uint32_t& latest = waited[{op.gpu->stream, ops[other].gpu->stream}];
      const bool needed = other + 1 > latest;
      latest = std::max(latest, other + 1);
      return needed;
    };
    for (const std::uint32_t other : op.waits) (void)wait(other);
    const KinetoEvent* by = op.call ? host.context(op.call).sized : nullptr;
    const ExecutionNode* node = by ? join.node(by) : nullptr;
    if (!node) continue;
    std::map<std::int32_t, std::uint32_t> last;  // by stream
    for (const std::int64_t storage : node->reads) {
      const auto writer = writers.find(storage);
      if (writer == writers.end()) continue;
      const KinetoOp& wrote = ops[writer->second];
      if (wrote.gpu->stream == op.gpu->stream || wrote.end > op.start + tolerance) continue;
      std::uint32_t& latest = last.try_emplace(wrote.gpu->stream, writer->second).first->second;
      latest = std::max(latest, writer->second);
    }
    for (const auto& [stream, writer] : last)
      if (wait(writer)) op.waits.push_back(writer);
    std::sort(op.waits.begin(), op.waits.end());
    op.waits.erase(std::unique(op.waits.begin(), op.waits.end()), op.waits.end());
    for (const std::int64_t storage : node->writes) writers[storage] = i;
  }
}

}  // namespace weft
