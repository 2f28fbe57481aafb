// The two formats of user_algorithm.h. Both readers bound what they build; neither proves anything.
#pragma once

#include <string>

#include "network/user_algorithm.h"

namespace weft {

// More than any algorithm that is written or generated for a machine of today; together they bound the memory that a
// file can ask for.
struct UserAlgorithmLimits {
  static constexpr std::int64_t kFileBytes = 64 << 20;
  static constexpr std::int64_t kRanks = 4096;
  static constexpr std::int64_t kBlocks = 1024;  // of a rank; so many channels, too
  static constexpr std::int64_t kChunks = 1 << 16;
  static constexpr std::int64_t kCells = 1 << 22;  // chunks of all buffers of all ranks
  static constexpr std::int64_t kMoves = 1 << 22;  // chunks that all steps move
};

// Throw InputError with file and place. `text` is the file's contents, `file` its name in messages.
[[nodiscard]] UserAlgorithm read_json_algorithm(const std::string& text, const std::string& file);
[[nodiscard]] UserAlgorithm read_msccl_algorithm(const std::string& text, const std::string& file);

}  // namespace weft
