#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/error.h"
#include "traces/kineto_names.h"
#include "traces/kineto_rank.h"

namespace weft {
namespace {

class Collector {
 public:
  Collector(const KinetoFile& file, const KinetoEvent& kernel)
      : kernel_(kernel), file_(file), world_size_(file.world_size.value_or(kMaxWorld)) {}

  // Fills what is still open; better sources are added first.
  void add(const KinetoCollective& source) {
    if (!kind_) kind_ = collective_kind(source.name);
    if (!out_.elements && source.elements) {
      if (*source.elements < 0) fail("expected at least 0 elements, got " + std::to_string(*source.elements));
      out_.elements = source.elements;
    }
    if (!out_.type) out_.type = collective_type(source.type);
    if (out_.group_size == 0 && source.group_size) {
      if (*source.group_size < 1 || *source.group_size > world_size_)
        fail("expected a group that exists in a world of " + std::to_string(world_size_) + ", got group size " +
             std::to_string(*source.group_size));
      out_.group_size = static_cast<std::uint32_t>(*source.group_size);
    }
    if (out_.group_ranks.empty() && source.group_ranks) add_ranks(*source.group_ranks);
    if (out_.group_name.empty()) out_.group_name = source.group_name;
    if (ends_.empty() && source.peer) ends_ = {&source};
  }
  // One kernel for all of them.
  void add(const PeerBatch& batch) {
    KinetoCollective all = *batch.members.front();
    std::vector<PeerTransfer> transfers;
    for (const KinetoCollective* end : batch.members) transfers.push_back({end->name != "recv", 0, end->elements});
    all.elements = exchanged_elements(transfers);
    add(all);
    ends_ = batch.members;
  }
  // What an operator gets that gives no number of elements.
  void add_input(const OperatorInputs& inputs) {
    if (out_.elements || inputs.front().sizes.empty()) return;
    std::int64_t elements = 1;
    for (const std::int64_t size : inputs.front().sizes) {
      if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return;
    }
    out_.elements = elements;
  }
  void add_kind(std::string_view name) {
    if (!kind_) kind_ = collective_kind(name);
  }
  void add_type(std::optional<DataType> type) {
    if (!out_.type) out_.type = type;
  }

  KinetoExchange finish() {
    // A kernel whose name does not tell, launched outside of the recording.
    out_.kind = kind_.value_or(CollectiveKind::all_reduce);
    if (out_.group_size == 0) out_.group_size = static_cast<std::uint32_t>(out_.group_ranks.size());
    if (out_.kind == CollectiveKind::all_to_all && file_.rank) find_transfers(*file_.rank);
    tell_exchange(static_cast<std::uint32_t>(file_.rank.value_or(0)),
                  static_cast<std::uint32_t>(file_.world_size.value_or(0)), transfers_, out_);
    return {std::move(out_), std::move(transfers_)};
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(file_.name, fmt::format("/traceEvents/{} ({})", kernel_.number, kernel_.name.substr(0, 80)),
                     message);
  }

  // Of a kernel of sends and receives, if all their ends are known. Peers are numbered in the run (PyTorch's
  // saveNcclMeta: the group's ranks, by the number in "Rank"). One that its group has not is none of this run's.
  void find_transfers(std::int64_t own) {
    const auto& group = out_.group_ranks;
    for (const KinetoCollective* end : ends_) {
      const std::int64_t peer = end->peer.value_or(-1);
      if (peer < 0 || peer >= world_size_ || peer == own ||
          (!group.empty() && !std::binary_search(group.begin(), group.end(), peer))) {
        transfers_.clear();
        return;
      }
      transfers_.push_back({end->name != "recv", static_cast<std::uint32_t>(peer), end->elements});
    }
    if (transfers_.size() == 1) transfers_.front().elements = out_.elements;  // which others may tell, too
  }

  void add_ranks(const std::vector<std::int64_t>& ranks) {
    for (const std::int64_t rank : ranks) {
      if (rank < 0 || rank >= world_size_)
        fail("expected a group that exists in a world of " + std::to_string(world_size_) + ", got rank " +
             std::to_string(rank));
      out_.group_ranks.push_back(static_cast<std::uint32_t>(rank));
    }
    std::sort(out_.group_ranks.begin(), out_.group_ranks.end());
  }

  const KinetoEvent& kernel_;
  const KinetoFile& file_;
  std::int64_t world_size_;
  TraceCollective out_;
  std::optional<CollectiveKind> kind_;
  std::vector<const KinetoCollective*> ends_;  // sends and receives, each with its other end
  std::vector<PeerTransfer> transfers_;
};

}  // namespace

KinetoExchange kineto_collective(const KinetoFile& file, const KinetoEvent& kernel, const HostContext* context) {
  Collector collector(file, kernel);
  if (kernel.collective) collector.add(*kernel.collective);
  if (context && context->parameters) collector.add(*context->parameters);
  if (context && context->batch) collector.add(*context->batch);
  if (context && !context->collective.empty()) collector.add_kind(context->collective);
  if (context && context->tensors) collector.add(*context->tensors);
  if (context && context->sized && is_symmetric_memory(context->collective)) {
    collector.add_input(*context->sized->inputs);
  }
  collector.add_kind(kernel.name);
  collector.add_type(type_in_kernel_name(kernel.name));
  return collector.finish();
}

}  // namespace weft
