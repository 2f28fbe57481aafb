// Who computes a run, when several processes share a folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace weft {

// A file claim.N in a run's folder, N above all before, made by link(2), which is atomic on NFS, too: of several
// processes one gets it. The highest N counts. It says who made it and is touched now and then; it is stale when its
// process is known to be dead (the same machine and boot), or when it was not touched for long (another machine). Who
// finds it stale claims N + 1; the former owner, were it only stopped, sees that it no longer holds the run.
class Claim {
 public:
  // Claims the run of `folder`, or returns nothing when a live process has it. Throws InputError when the folder cannot
  // be written.
  [[nodiscard]] static std::optional<Claim> take(const std::filesystem::path& folder, std::chrono::seconds stale_after);
  // Whether a live process has it.
  [[nodiscard]] static bool held_by_any(const std::filesystem::path& folder, std::chrono::seconds stale_after);

  [[nodiscard]] bool held() const;  // nobody has claimed it since
  void touch() const;
  [[nodiscard]] unsigned number() const { return number_; }

 private:
  Claim(std::filesystem::path folder, unsigned number) : folder_(std::move(folder)), number_(number) {}

  std::filesystem::path folder_;
  unsigned number_;
};

// Takes all claims from a folder, after the run is done or has failed.
void remove_claims(const std::filesystem::path& folder);

}  // namespace weft
