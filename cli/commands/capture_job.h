// The folder in which the processes of a captured run leave their records, and who joins them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/commands/program_run.h"

namespace weft {

// One of several `weft capture` that a launcher (srun, mpirun, torchrun --no-python) started for a rank each.
struct LaunchedRank {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string job;  // tells runs apart
};
// From the launcher's variables; nullopt: this process is the only one.
[[nodiscard]] std::optional<LaunchedRank> launched_rank();

class CaptureJob {
 public:
  // Makes the folder, beside `output`. A process that is the only one clears it of an earlier run's records. Throws
  // InputError when it cannot be made.
  CaptureJob(const std::filesystem::path& output, std::optional<LaunchedRank> rank);

  // That of a second pass of the program, within this one's folder.
  [[nodiscard]] CaptureJob second_pass() const;

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  // Tells the others that this rank's program has ended. True for the one that is to join: the last.
  [[nodiscard]] bool ended();
  // Removes the records.
  void remove();

 private:
  void make_directory();

  std::filesystem::path directory_;
  std::optional<LaunchedRank> rank_;
};

// What is set for the program, so that `library` is loaded where CUDA and NCCL start. `notes`: what is left as the user
// has it. nullopt, with the reason among them: another tool is there already.
[[nodiscard]] std::optional<Variables> capture_variables(const std::filesystem::path& library,
                                                         const std::filesystem::path& directory,
                                                         std::vector<std::string>& notes);

}  // namespace weft
