// The folder of a sweep: what is done, what failed, what is under way (docs/formats.md).
//
//   manifest.json            the points
//   points/KEY/              a finished run: what `weft run -o` writes, and cost.json
//   work/KEY/                one that is not: config.json, claim.N, what claim N is making, failure.json
//
// A run's folder comes to points/ by one rename, once it is on the disk: it is whole or not there.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/sweep/child_processes.h"
#include "cli/sweep/claim.h"
#include "cli/sweep/manifest.h"

namespace weft {

struct RunFailure {
  std::string status;  // "failed" or "timeout"
  std::string reason;
};

struct RunCost {
  double wall_s = 0, cpu_s = 0;
};

class RunStore {
 public:
  explicit RunStore(std::filesystem::path folder);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path run_path(const std::string& key) const { return folder_ / "points" / key; }
  [[nodiscard]] std::filesystem::path work_path(const std::string& key) const { return folder_ / "work" / key; }

  // Empty when there is none.
  [[nodiscard]] std::optional<Manifest> manifest() const;
  // Once all that was planned is on the disk.
  void write_manifest(const Manifest& manifest) const;
  // The configuration of a run that is not done, for who computes it.
  void plan(const std::string& key, const Json& config) const;

  [[nodiscard]] bool done(const std::string& key) const;
  [[nodiscard]] std::optional<RunFailure> failure(const std::string& key) const;
  void forget_failure(const std::string& key) const;         // so that it is tried again
  [[nodiscard]] RunCost cost(const std::string& key) const;  // of a run that is done; zeros where not known

  // Nothing when a live process has it, or it is done.
  [[nodiscard]] std::optional<Claim> claim(const std::string& key, std::chrono::seconds stale_after) const;
  [[nodiscard]] bool claimed(const std::string& key, std::chrono::seconds stale_after) const;
  // Where the owner of a claim lets a run write.
  [[nodiscard]] std::filesystem::path output(const std::string& key, const Claim& claim) const;
  [[nodiscard]] std::filesystem::path errors(const std::string& key, const Claim& claim) const;
  // The run has been written to output(). If another process has taken over meanwhile, its result counts.
  void publish(const std::string& key, const Claim& claim, const ChildEnd& end) const;
  void fail(const std::string& key, const RunFailure& failure) const;
  void clear(const std::string& key) const;                        // what is left of the work on a run that is done
  void release(const std::string& key, const Claim& claim) const;  // it was interrupted

 private:
  std::filesystem::path folder_;
};

}  // namespace weft
