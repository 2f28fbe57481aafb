// Collectives written by users: a table of steps in units of chunks, read from weft's JSON or MSCCL's XML
// (docs/formats.md), proved by check_schedule, scaled to any message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "network/collective_schedule.h"

namespace weft {

struct UserAlgorithm {
  // Offsets in chunks of the buffer, `count` chunks from there; after[].steps counts steps of the table; bytes is
  // unused.
  struct Step {
    ScheduleStep what;
    std::uint32_t count = 1;  // 0: only waits
  };
  struct Block {
    std::uint32_t id = 0;  // its number in the file
    std::uint32_t channel = 0;
    std::vector<Step> steps;
  };
  struct Rank {
    std::uint32_t scratch_chunks = 0;
    std::vector<Block> blocks;
  };
  enum class Format { json, msccl };

  std::string file;
  Format format = Format::json;
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t root = 0;
  bool in_place = false;           // CollectiveSchedule::in_place
  std::uint32_t input_chunks = 1;  // of a rank that has an input; of reduce_scatter, scatter, all_to_all: all parts
  std::vector<Rank> ranks;
  [[nodiscard]] std::size_t most_blocks() const;  // of a rank
  std::string only_small;  // why it is wrong for chunks that need several pieces or loops; empty: it is right
};

// Where a step stands in its file, as error messages name it: "/ranks/1/blocks/0/steps/3" or "gpu 1, tb 0, step 3".
[[nodiscard]] std::string place_of(const UserAlgorithm& algorithm, std::uint32_t rank, std::uint32_t block,
                                   std::uint64_t step);

// Reads an algorithm, XML when it begins with "<" and JSON otherwise, and proves it for chunks that go in
// `pieces_per_chunk` pieces over connections of `slots` places: a wrong result, a deadlock, a step that does not fit
// its counterpart and all else that check_schedule finds. What is right only while the chunks of each step go as one is
// accepted, for such messages. Throws MissingInput, and InputError with file, place, expected and got.
[[nodiscard]] UserAlgorithm load_user_algorithm(const std::filesystem::path& path, std::uint32_t pieces_per_chunk,
                                                std::uint32_t slots);

// The schedule for one message. Throws InputError where the request is for another collective, group size or root, the
// chunks are no whole elements, or the message is too long for the algorithm (only_small). `channels` of the request is
// not used: the algorithm has its own blocks.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_user_schedule(std::shared_ptr<const UserAlgorithm> algorithm,
                                                                     const ScheduleRequest& request);

}  // namespace weft
