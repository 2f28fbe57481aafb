#include "network/schedule_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "network/generated_schedule.h"
#include "network/schedule_values.h"
#include "sim/error.h"

namespace weft {

namespace {

const char* name_of(ScheduleBuffer buffer) {
  switch (buffer) {
    case ScheduleBuffer::input:
      return "input";
    case ScheduleBuffer::output:
      return "output";
    case ScheduleBuffer::scratch:
      return "scratch";
    case ScheduleBuffer::none:
      break;
  }
  return "no buffer";
}

}  // namespace

void ScheduleRun::Knowledge::merge(const Knowledge& other) {
  chain = std::max(chain, other.chain);
  started |= other.started;
}

ScheduleRun::ScheduleRun(const CollectiveSchedule& schedule, const ScheduleRequest& request, std::uint32_t slots)
    : schedule_(schedule), request_(request), slots_(slots) {
  totals_.sent_bytes.assign(request.ranks, 0);
  totals_.sent_pieces.assign(request.ranks, 0);
  memory_.resize(request.ranks);
  for (std::uint32_t r = 0; r < request.ranks; ++r) {
    for (const auto buffer : {ScheduleBuffer::input, ScheduleBuffer::output, ScheduleBuffer::scratch}) {
      cells(r, buffer).resize(static_cast<std::size_t>(buffer_bytes(r, buffer) / request.element_bytes));
    }
    std::int64_t element = 0;
    for (Cell& cell : cells(r, ScheduleBuffer::input)) {
      cell = {element_value(r, element), kInitial, 0};
      ++element;
    }
    if (!schedule.in_place()) continue;
    if (request.kind == CollectiveKind::reduce_scatter) continue;  // the input is the larger buffer
    const Cells& input = cells(r, ScheduleBuffer::input);
    const std::size_t at = request.kind == CollectiveKind::all_gather ? r * input.size() : 0;
    std::copy(input.begin(), input.end(), cells(r, ScheduleBuffer::output).begin() + static_cast<long>(at));
  }
  add_agents();
}

void ScheduleRun::add_agents() {
  first_agent_.resize(request_.ranks);
  for (std::uint32_t r = 0; r < request_.ranks; ++r) {
    for (std::uint32_t b = 0; b < schedule_.blocks(r); ++b) {
      first_agent_[r].push_back(static_cast<std::uint32_t>(agents_.size()));
      for (std::uint32_t g = 0; g < schedule_.groups(r, b); ++g) {
        Agent agent;
        agent.rank = r;
        agent.block = b;
        agent.group = g;
        agent.channel = schedule_.channel(r, b, g);
        agent.steps = schedule_.steps(r, b, g);
        if (request_.kind == CollectiveKind::barrier) {
          agent.known.started.resize(request_.ranks);
          agent.known.started.set(r);
        }
        agents_.push_back(std::move(agent));
      }
    }
    first_agent_[r].push_back(static_cast<std::uint32_t>(agents_.size()));
  }
  for (Agent& agent : agents_) fetch(agent);
}

// The next step that is not idle.
void ScheduleRun::fetch(Agent& agent) {
  for (; agent.done < agent.steps; ++agent.done) {
    agent.known_after.resize(agent.done, agent.known);
    agent.step = schedule_.step(agent.rank, agent.block, agent.group, agent.done);
    if (!agent.step.idle()) return check_step(agent);
  }
  agent.known_after.resize(agent.steps, agent.known);
}

void ScheduleRun::check_step(const Agent& agent) const {
  const ScheduleStep& step = agent.step;
  if (step.bytes < 0 || step.bytes % request_.element_bytes != 0) {
    fail(agent, fmt::format("expected whole elements of {} B, got {} B", request_.element_bytes, step.bytes));
  }
  const auto check_peers = [&](const auto& peers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (peers[i] >= request_.ranks || peers[i] == agent.rank) {
        fail(agent, fmt::format("expected another rank below {}, got {}", request_.ranks, peers[i]));
      }
      if (std::find(peers.begin() + i + 1, peers.begin() + count, peers[i]) != peers.begin() + count) {
        fail(agent, fmt::format("expected different ranks, got {} twice", peers[i]));
      }
    }
  };
  check_peers(step.receives_from, step.receive_count);
  check_peers(step.sends_to, step.send_count);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    check_range(agent, step.source, step.source_offset + i * step.source_stride);
  }
  check_range(agent, step.destination, step.destination_offset);
  if (step.destination == ScheduleBuffer::input && !schedule_.in_place()) {
    fail(agent, "expected a destination in output or scratch, got the input");
  }
  for (std::size_t i = 0; i < step.after_count; ++i) {
    const ScheduleStep::After& after = step.after[i];
    if (after.block >= schedule_.blocks(agent.rank) || after.group >= schedule_.groups(agent.rank, after.block) ||
        after.steps > schedule_.steps(agent.rank, after.block, after.group)) {
      fail(agent, fmt::format("expected to wait for steps that exist, got block {}, group {}, {} steps", after.block,
                              after.group, after.steps));
    }
  }
}

void ScheduleRun::check_range(const Agent& agent, ScheduleBuffer buffer, std::int64_t offset) const {
  if (buffer == ScheduleBuffer::none || agent.step.bytes == 0) return;
  const std::int64_t bytes = buffer_bytes(agent.rank, buffer);
  if (offset < 0 || offset % request_.element_bytes != 0 || offset + agent.step.bytes > bytes) {
    fail(agent, fmt::format("expected a range of whole elements in the {} of {} B, got {} B at {}", name_of(buffer),
                            bytes, agent.step.bytes, offset));
  }
}

void ScheduleRun::run(bool backwards) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      Agent& agent = agents_[backwards ? agents_.size() - 1 - i : i];
      while (agent.done < agent.steps && waits_for(agent).rank == kNobody) {
        execute(agent);
        moved = true;
      }
    }
  }
  if (std::any_of(agents_.begin(), agents_.end(), [](const Agent& a) { return a.done < a.steps; })) report_deadlock();
  for (const Agent& agent : agents_) totals_.longest_chain = std::max(totals_.longest_chain, agent.known.chain);
  check_connections();
}

ScheduleRun::Wait ScheduleRun::waits_for(const Agent& agent) {
  const ScheduleStep& step = agent.step;
  for (std::size_t i = 0; i < step.after_count; ++i) {
    const Agent& other = agents_[agent_of(agent.rank, step.after[i].block, step.after[i].group)];
    if (other.done < step.after[i].steps) {
      return {agent.rank, describe(other, step.after[i].steps - 1)};
    }
  }
  for (std::size_t i = 0; i < step.receive_count; ++i) {
    const std::uint32_t from = step.receives_from[i];
    if (connection(from, agent.rank, agent.channel).parcels.empty()) {
      return {from, fmt::format("a piece of rank {}", from)};
    }
  }
  for (std::size_t i = 0; i < step.send_count; ++i) {
    const std::uint32_t to = step.sends_to[i];
    if (connection(agent.rank, to, agent.channel).parcels.size() >= slots_)
      return {to, fmt::format("a free slot of rank {}", to)};
  }
  return {};
}

void ScheduleRun::execute(Agent& agent) {
  const ScheduleStep& step = agent.step;
  for (std::size_t i = 0; i < step.after_count; ++i) {
    const Agent& other = agents_[agent_of(agent.rank, step.after[i].block, step.after[i].group)];
    if (step.after[i].steps > 0) agent.known.merge(other.known_after[step.after[i].steps - 1]);
  }
  std::vector<std::uint64_t> values(static_cast<std::size_t>(step.bytes / request_.element_bytes), 0);
  take_in(agent, values);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    add_cells(agent, step.source, step.source_offset + i * step.source_stride, values);
  }
  if (step.accumulates) add_cells(agent, step.destination, step.destination_offset, values);
  put_out(agent, values);
  agent.known_after.push_back(agent.known);
  ++agent.done;
  fetch(agent);
}

void ScheduleRun::take_in(Agent& agent, std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < agent.step.receive_count; ++i) {
    const std::uint32_t from = agent.step.receives_from[i];
    Connection& in = connection(from, agent.rank, agent.channel);
    claim(in.receiver, agent, "receives");
    const Parcel& parcel = in.parcels.front();
    if (parcel.values.size() != values.size()) {
      fail(agent, fmt::format("expected {} B from rank {}, got {} B", agent.step.bytes, from,
                              static_cast<std::int64_t>(parcel.values.size()) * request_.element_bytes));
    }
    std::transform(values.begin(), values.end(), parcel.values.begin(), values.begin(), std::plus<>());
    agent.known.merge(parcel.known);
    in.parcels.pop_front();
  }
}

void ScheduleRun::add_cells(const Agent& agent, ScheduleBuffer buffer, std::int64_t offset,
                            std::vector<std::uint64_t>& values) {
  if (buffer == ScheduleBuffer::none || values.empty()) return;
  const Cells& from = cells(agent.rank, buffer);
  auto at = static_cast<std::size_t>(offset / request_.element_bytes);
  for (std::uint64_t& value : values) {
    if (from[at].writer == kNobody) {
      fail(agent, fmt::format("expected to read what was written, got byte {} of the {}, which never was",
                              static_cast<std::int64_t>(at) * request_.element_bytes, name_of(buffer)));
    }
    value += from[at++].value;
  }
}

void ScheduleRun::put_out(Agent& agent, const std::vector<std::uint64_t>& values) {
  const ScheduleStep& step = agent.step;
  if (step.destination != ScheduleBuffer::none && !values.empty()) {
    Cells& to = cells(agent.rank, step.destination);
    auto at = static_cast<std::size_t>(step.destination_offset / request_.element_bytes);
    for (const std::uint64_t value : values) to[at++] = {value, index_of(agent), agent.done};
  }
  for (std::size_t i = 0; i < step.send_count; ++i) {
    Connection& out = connection(agent.rank, step.sends_to[i], agent.channel);
    claim(out.sender, agent, "sends");
    out.parcels.push_back({values, {agent.known.chain + 1, agent.known.started}});
    totals_.sent_bytes[agent.rank] += step.bytes;
    ++totals_.sent_pieces[agent.rank];
  }
}

ScheduleRun::Connection& ScheduleRun::connection(std::uint32_t from, std::uint32_t to, std::uint32_t channel) {
  return connections_[{from, to, channel}];
}

void ScheduleRun::claim(std::uint32_t& end, const Agent& agent, const char* what) const {
  if (end == kNobody) end = index_of(agent);
  if (end == index_of(agent)) return;
  const Agent& other = agents_[end];
  fail(agent, fmt::format("expected one group of warps that {} on a connection, got that of {} too", what,
                          describe(other, 0)));
}

std::uint32_t ScheduleRun::index_of(const Agent& agent) const {
  return static_cast<std::uint32_t>(&agent - agents_.data());
}

std::uint32_t ScheduleRun::agent_of(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const {
  return first_agent_[rank][block] + group;
}

std::int64_t ScheduleRun::buffer_bytes(std::uint32_t rank, ScheduleBuffer buffer) const {
  switch (buffer) {
    case ScheduleBuffer::input:
      return schedule_.input_bytes(rank);
    case ScheduleBuffer::output:
      return schedule_.output_bytes(rank);
    default:
      return schedule_.scratch_bytes(rank);
  }
}

ScheduleRun::Cells& ScheduleRun::cells(std::uint32_t rank, ScheduleBuffer buffer) {
  return memory_[rank].at(static_cast<std::size_t>(buffer) - 1);
}

std::string ScheduleRun::describe(const Agent& agent, std::uint64_t step) const {
  return schedule_.describe(agent.rank, agent.block, agent.group, step);
}

void ScheduleRun::fail(const Agent& agent, const std::string& message) const {
  throw InputError(describe(agent, agent.done) + ": " + message);
}

}  // namespace weft
