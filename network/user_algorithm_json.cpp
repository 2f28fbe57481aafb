#include <fmt/format.h>

#include "network/user_algorithm_reader.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "sim/json_reader.h"

namespace weft {

namespace {

using Limits = UserAlgorithmLimits;

constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                            CollectiveKind::broadcast,  CollectiveKind::reduce,     CollectiveKind::all_to_all,
                            CollectiveKind::gather,     CollectiveKind::scatter,    CollectiveKind::send_receive,
                            CollectiveKind::shift};

CollectiveKind read_kind(JsonReader& reader) {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kKinds) names.emplace_back(to_string(kind));
  const std::string name = reader.one_of("collective", names);
  for (const CollectiveKind kind : kKinds) {
    if (name == to_string(kind)) return kind;
  }
  throw InternalError("a collective without a name");
}

// {"input": 3}: a buffer and the first chunk in it.
std::pair<ScheduleBuffer, std::int64_t> read_place(JsonReader place) {
  std::pair<ScheduleBuffer, std::int64_t> result{ScheduleBuffer::none, 0};
  for (const auto& [buffer, name] :
       {std::pair{ScheduleBuffer::input, "input"}, std::pair{ScheduleBuffer::output, "output"},
        std::pair{ScheduleBuffer::scratch, "scratch"}}) {
    if (!place.has(name)) continue;
    if (result.first != ScheduleBuffer::none) place.fail(name, "expected one buffer, got another one");
    result = {buffer, place.integer(name, 0, Limits::kChunks)};
  }
  if (result.first == ScheduleBuffer::none) place.fail("", "expected input, output or scratch, got none of them");
  place.finish();
  return result;
}

template <class Add>
void read_peers(JsonReader& step, const char* key, std::size_t ranks, Add&& add) {
  if (!step.has(key)) return;
  const Json& peers = step.value().at(key);
  if (!peers.is_array() || peers.size() > ScheduleStep::kMaxPeers) {
    step.fail(key,
              fmt::format("expected an array of at most {} ranks, got {}", ScheduleStep::kMaxPeers, describe(peers)));
  }
  for (const Json& peer : peers) {
    if (!peer.is_number_unsigned() || peer.get<std::uint64_t>() >= ranks) {
      step.fail(key, fmt::format("expected ranks below {}, got {}", ranks, describe(peer)));
    }
    add(peer.get<std::uint32_t>());
  }
}

UserAlgorithm::Step read_step(JsonReader& reader, std::size_t ranks) {
  UserAlgorithm::Step step;
  ScheduleStep& what = step.what;
  step.count = static_cast<std::uint32_t>(reader.integer_or("count", 0, Limits::kChunks, 1));
  if (auto place = reader.optional_object("read")) {
    const auto [buffer, chunk] = read_place(*place);
    what.read(buffer, chunk);
  }
  auto write = reader.optional_object("write");
  auto add = reader.optional_object("add");
  if (write && add) reader.fail("add", "expected either write or add, got both");
  if (write || add) {
    const auto [buffer, chunk] = read_place(write ? *write : *add);
    what.write(buffer, chunk);
    what.accumulates = add.has_value();
  }
  read_peers(reader, "receive", ranks, [&](std::uint32_t rank) { what.receive(rank); });
  read_peers(reader, "send", ranks, [&](std::uint32_t rank) { what.send(rank); });
  if (reader.has("after")) {
    auto entries = reader.objects("after");
    if (entries.size() > ScheduleStep::kMaxAfter) {
      reader.fail("after", fmt::format("expected at most {} steps to wait for, got {}", ScheduleStep::kMaxAfter,
                                       entries.size()));
    }
    for (JsonReader& entry : entries) {
      const auto block = static_cast<std::uint32_t>(entry.integer("block", 0, Limits::kBlocks - 1));
      what.start_after({block, 0, static_cast<std::uint64_t>(entry.integer("step", 0, INT32_MAX)) + 1});
      entry.finish();
    }
  }
  reader.finish();
  return step;
}

}  // namespace

UserAlgorithm read_json_algorithm(const std::string& text, const std::string& file) {
  const Json document = parse_json(text, file);
  JsonReader reader(document, file);
  UserAlgorithm algorithm;
  algorithm.file = file;
  algorithm.name = reader.string("name");
  algorithm.kind = read_kind(reader);
  algorithm.in_place = reader.boolean_or("in_place", false);
  algorithm.input_chunks = static_cast<std::uint32_t>(reader.integer("chunks", 1, Limits::kChunks));
  auto ranks = reader.objects("ranks");
  if (ranks.size() < 2 || ranks.size() > static_cast<std::size_t>(Limits::kRanks)) {
    reader.fail("ranks", fmt::format("expected from 2 to {} ranks, got {}", Limits::kRanks, ranks.size()));
  }
  const auto last_rank = static_cast<std::int64_t>(ranks.size()) - 1;
  algorithm.root = static_cast<std::uint32_t>(reader.integer_or("root", 0, last_rank, 0));
  for (JsonReader& rank_reader : ranks) {
    UserAlgorithm::Rank rank;
    rank.scratch_chunks = static_cast<std::uint32_t>(rank_reader.integer_or("scratch_chunks", 0, Limits::kChunks, 0));
    auto blocks = rank_reader.objects("blocks");
    if (blocks.size() > static_cast<std::size_t>(Limits::kBlocks)) {
      rank_reader.fail("blocks", fmt::format("expected at most {} blocks, got {}", Limits::kBlocks, blocks.size()));
    }
    for (JsonReader& block_reader : blocks) {
      UserAlgorithm::Block block;
      block.id = static_cast<std::uint32_t>(rank.blocks.size());
      block.channel = static_cast<std::uint32_t>(block_reader.integer_or("channel", 0, Limits::kBlocks - 1, block.id));
      for (JsonReader& step : block_reader.objects("steps")) block.steps.push_back(read_step(step, ranks.size()));
      block_reader.finish();
      rank.blocks.push_back(std::move(block));
    }
    rank_reader.finish();
    algorithm.ranks.push_back(std::move(rank));
  }
  reader.finish();
  return algorithm;
}

}  // namespace weft
