#include "gpu_model/schedule_layout.h"

#include <algorithm>
#include <tuple>

#include "sim/error.h"

namespace weft {

namespace {

using Connection = ScheduleLayout::Connection;

auto key(const Connection& c) { return std::tuple(c.from, c.to, c.channel); }

template <class Visit>
void for_all_groups(const CollectiveSchedule& schedule, Visit&& visit) {
  for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < schedule.blocks(rank); ++block) {
      for (std::uint32_t group = 0; group < schedule.groups(rank, block); ++group) visit(rank, block, group);
    }
  }
}

}  // namespace

ScheduleLayout::ScheduleLayout(std::shared_ptr<const CollectiveSchedule> schedule, SchedulePlace place)
    : schedule_(std::move(schedule)), place_(std::move(place)) {
  const CollectiveSchedule& s = *schedule_;
  for (std::uint32_t rank = 0; rank < s.ranks(); ++rank) {
    rank_of_gpu_.resize(std::max<std::size_t>(rank_of_gpu_.size(), gpu(rank) + std::size_t{1}), kNoRank);
    rank_of_gpu_[gpu(rank)] = rank;
    WEFT_CHECK(place_.gpus_per_nic == 0 || s.blocks(rank) == s.blocks(0), "a rank carries for blocks that it has, too");
  }
  for_all_groups(s, [&](std::uint32_t rank, std::uint32_t block, std::uint32_t group) {
    if (s.steps(rank, block, group) == 0) return;
    for (const std::uint32_t to : s.sends_to(rank, block, group)) {
      connections_.push_back({rank, to, s.channel(rank, block, group)});
    }
    if (s.is_waited_for(rank, block, group)) done_.push_back({rank, block, group});
  });
  std::sort(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<std::uint32_t> flags(s.ranks(), 0), fifos(s.ranks(), 0);
  const std::int64_t fifo_bytes = place_.protocol.slots * place_.protocol.slot_bytes;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& c = connections_[i];
    WEFT_CHECK(i == 0 || key(connections_[i - 1]) != key(c), "two groups of warps send on one connection");
    c.by_nic = by_nic(c.from, c.to);
    c.carrier = carrier(c);
    c.come = place_.first_flag + flags[c.to]++;
    c.taken = place_.first_flag + flags[c.carrier]++;
    c.read = place_.protocol.receiver_reads && !c.by_nic;
    c.fifo = place_.buffer_end - ++fifos[c.read ? c.from : c.to] * fifo_bytes;
    if (!c.by_nic) continue;
    c.filled = place_.first_flag + flags[c.carrier]++;
    c.sent = place_.first_flag + flags[c.from]++;
    c.staging = place_.buffer_end - ++fifos[c.carrier] * fifo_bytes;
  }
  for (DoneFlag& done : done_) done.flag = place_.first_flag + flags[done.rank]++;
  flags_ = std::ranges::max(flags);
  const std::uint32_t most_fifos = std::ranges::max(fifos);
  std::int64_t scratch_bytes = 0;
  for (std::uint32_t rank = 0; rank < s.ranks(); ++rank) scratch_bytes = std::max(scratch_bytes, s.scratch_bytes(rank));
  scratch_ = (place_.buffer_end - most_fifos * fifo_bytes - scratch_bytes) / kLineBytes * kLineBytes;
  if (scratch_ < 0) throw InputError("a collective: expected memory for its connections' buffers, got too little");
}

// Who is not of the group carries nothing for it.
std::uint32_t ScheduleLayout::carrier(const Connection& connection) const {
  const std::uint32_t from = gpu(connection.from);
  const std::uint32_t per_node = place_.gpus_per_node;
  if (!connection.by_nic || place_.gpus_per_nic == 0) return connection.from;
  const std::uint32_t place = gpu(connection.to) % per_node;
  if (from % per_node / place_.gpus_per_nic == place / place_.gpus_per_nic) return connection.from;
  const std::uint32_t on_rail = rank_of(from - from % per_node + place);
  return on_rail == kNoRank ? connection.from : on_rail;
}

std::vector<std::uint32_t> ScheduleLayout::node_from(std::uint32_t rank) const {
  const std::uint32_t own = gpu(rank);
  const std::uint32_t per_node = place_.gpus_per_node;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < per_node; ++i) {
    const std::uint32_t found = rank_of(own - own % per_node + (own + i) % per_node);
    if (found != kNoRank) ranks.push_back(found);
  }
  return ranks;
}

const ScheduleLayout::Connection& ScheduleLayout::connection(std::uint32_t from, std::uint32_t to,
                                                             std::uint32_t channel) const {
  const std::tuple wanted(from, to, channel);
  const auto at = std::lower_bound(connections_.begin(), connections_.end(), wanted,
                                   [](const Connection& c, const auto& value) { return key(c) < value; });
  WEFT_CHECK(at != connections_.end() && key(*at) == wanted, "a rank receives what nobody sends");
  return *at;
}

std::uint32_t ScheduleLayout::steps_done(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const {
  const std::tuple wanted(rank, block, group);
  const auto order = [](const DoneFlag& d) { return std::tuple(d.rank, d.block, d.group); };
  const auto at = std::lower_bound(done_.begin(), done_.end(), wanted,
                                   [&](const DoneFlag& d, const auto& value) { return order(d) < value; });
  return at != done_.end() && order(*at) == wanted ? at->flag : kNoFlag;
}

std::int64_t ScheduleLayout::address(ScheduleBuffer buffer, std::uint32_t rank) const {
  const bool in_place = place_.input_address == place_.output_address;
  const std::int64_t input = schedule_->input_bytes(rank);
  const std::int64_t output = schedule_->output_bytes(rank);
  // In place, the smaller of the two is the rank's part of the other.
  const auto shifted = [&](std::int64_t base, std::int64_t own, std::int64_t other) {
    return in_place && own < other ? base + rank * own : base;
  };
  switch (buffer) {
    case ScheduleBuffer::input:
      return shifted(place_.input_address, input, output);
    case ScheduleBuffer::output:
      return shifted(place_.output_address, output, input);
    default:
      return scratch_;
  }
}

}  // namespace weft
