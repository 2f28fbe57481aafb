#include "cli/commands/capture_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "sim/error.h"
#include "traces/capture/record.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::uint32_t> number(const char* name) {
  const std::string text = variable(name);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

bool create(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

constexpr const char* kEnded = ".ended";

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  struct Launcher {
    const char *rank, *size;
    std::array<const char*, 2> job;
  };
  // srun sets the number of a step's tasks for the tasks only, not for the script around it.
  constexpr std::array kLaunchers{
      Launcher{"RANK", "WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
      Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
      Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
      Launcher{"PMI_RANK", "PMI_SIZE", {"PMI_JOBID", "HYDI_CONTROL_FD"}}};
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number(launcher.rank), size = number(launcher.size);
    if (!rank || !size || *size < 2 || *rank >= *size) continue;
    std::string job;
    for (const char* part : launcher.job) job += variable(part).empty() ? "" : "-" + variable(part);
    std::replace_if(
        job.begin(), job.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
    return LaunchedRank{*rank, *size, job};
  }
  return std::nullopt;
}

CaptureJob::CaptureJob(const fs::path& output, std::optional<LaunchedRank> rank) : rank_(std::move(rank)) {
  directory_ = fs::absolute(output.string() + ".capture" + (rank_ ? rank_->job : ""));
  make_directory();
}

CaptureJob CaptureJob::second_pass() const {
  CaptureJob out(*this);
  out.directory_ /= capture::kCountersFolder;
  out.make_directory();
  return out;
}

void CaptureJob::make_directory() {
  std::error_code error;
  fs::create_directory(directory_, error);
  if (error || ::access(directory_.c_str(), W_OK) != 0)
    throw InputError(directory_.string(), "",
                     "expected a folder that can be written, got: " + (error ? error.message() : std::strerror(errno)));
  if (!rank_) {
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_))
      if (entry.path().extension() == capture::kFileSuffix) fs::remove(entry.path(), error);
  } else {
    fs::remove(directory_ / fmt::format("{}{}", rank_->rank, kEnded), error);
  }
}

bool CaptureJob::ended() {
  if (!rank_) return true;
  create(directory_ / fmt::format("{}{}", rank_->rank, kEnded));
  std::uint32_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_))
    count += entry.path().extension() == kEnded ? 1 : 0;
  // Two may see all others at the same time.
  return count >= rank_->size && create(directory_ / "joining");
}

void CaptureJob::remove() {
  std::error_code error;
  fs::remove_all(directory_, error);
}

std::optional<Variables> capture_variables(const fs::path& library, const fs::path& directory,
                                           std::vector<std::string>& notes) {
  const std::string path = library.string();
  if (const std::string other = variable("CUDA_INJECTION64_PATH"); !other.empty() && other != path) {
    notes.push_back("another profiler is injected already (CUDA_INJECTION64_PATH is " + other +
                    "): the program runs without capture");
    return std::nullopt;
  }
  Variables variables{{"CUDA_INJECTION64_PATH", path}, {capture::kDirectoryVariable, directory.string()}};
  if (const std::string other = variable("NVTX_INJECTION64_PATH"); other.empty() || other == path)
    variables.emplace_back("NVTX_INJECTION64_PATH", path);
  else
    notes.push_back("NVTX_INJECTION64_PATH is " + other + ": ranges of NVTX are not captured");
  if (const std::string other = variable("NCCL_PROFILER_PLUGIN"); other.empty() || other == path)
    variables.emplace_back("NCCL_PROFILER_PLUGIN", path);
  else
    notes.push_back("NCCL_PROFILER_PLUGIN is " + other + ": collectives are captured by their calls only");
  // For an NCCL that knows no plugin. Elsewhere the library waits for a call that never comes.
  const std::string preloaded = variable("LD_PRELOAD");
  variables.emplace_back("LD_PRELOAD", preloaded.empty() ? path : path + ":" + preloaded);
  return variables;
}

}  // namespace weft
