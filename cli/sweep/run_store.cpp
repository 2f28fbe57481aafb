#include "cli/sweep/run_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "cli/output/result_json.h"
#include "sim/atomic_file.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_write(const fs::path& path, const std::string& reason) {
  throw InputError(path.string(), "", "expected a folder that can be written, got: " + reason);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot_write(path, error.message());
}

// What was renamed into `folder` stays there after a reboot.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// All of the file system: one flush for many small files.
void flush_all(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::syncfs(descriptor);
  ::close(descriptor);
}

// What runs were writing that did not end well.
void remove_outputs(const fs::path& work) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(work, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("run.") || name.starts_with(".run.")) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

RunStore::RunStore(fs::path folder) : folder_(std::move(folder)) {}

std::optional<Manifest> RunStore::manifest() const {
  const fs::path file = folder_ / "manifest.json";
  if (!fs::exists(file)) return std::nullopt;
  return manifest_from_json(parse_json(read_file(file), file.string()), file.string());
}

void RunStore::write_manifest(const Manifest& manifest) const {
  make_folder(folder_ / "points");
  make_folder(folder_ / "work");
  flush_all(folder_);
  write_file_atomically(folder_ / "manifest.json", json_text(manifest_to_json(manifest)));
  flush_folder(folder_);
}

void RunStore::plan(const std::string& key, const Json& config) const {
  if (done(key)) return;
  const fs::path file = work_path(key) / "config.json";
  if (fs::exists(file)) return;
  make_folder(file.parent_path());
  // Renamed, as another process may plan the same; flushed with all others by write_manifest().
  const fs::path temporary = fmt::format("{}.{}", file.string(), ::getpid());
  std::ofstream stream(temporary, std::ios::binary);
  stream << json_text(config);
  stream.close();
  std::error_code error;
  if (stream) fs::rename(temporary, file, error);
  if (!stream || error) {
    fs::remove(temporary, error);
    cannot_write(file.parent_path(), std::generic_category().message(errno));
  }
}

bool RunStore::done(const std::string& key) const { return fs::exists(run_path(key)); }

std::optional<RunFailure> RunStore::failure(const std::string& key) const {
  const fs::path file = work_path(key) / "failure.json";
  if (!fs::exists(file)) return std::nullopt;
  try {
    const Json failure = parse_json(read_file(file), file.string());
    return RunFailure{failure.at("status").get<std::string>(), failure.at("reason").get<std::string>()};
  } catch (const MissingInput&) {
    return std::nullopt;  // another process retries it
  }
}

void RunStore::forget_failure(const std::string& key) const {
  std::error_code ignored;
  fs::remove(work_path(key) / "failure.json", ignored);
}

RunCost RunStore::cost(const std::string& key) const {
  try {
    const fs::path file = run_path(key) / "cost.json";
    const Json cost = parse_json(read_file(file), file.string());
    return {cost.at("wall_s").get<double>(), cost.at("cpu_s").get<double>()};
  } catch (const MissingInput&) {
    return {};
  }
}

std::optional<Claim> RunStore::claim(const std::string& key, std::chrono::seconds stale_after) const {
  if (done(key)) return std::nullopt;
  const fs::path work = work_path(key);
  auto claim = Claim::take(work, stale_after);
  if (!claim) return std::nullopt;
  // Its last owner may have finished it between the look and the claim.
  if (done(key)) {
    clear(key);
    return std::nullopt;
  }
  remove_outputs(work);  // of owners that were killed
  return claim;
}

bool RunStore::claimed(const std::string& key, std::chrono::seconds stale_after) const {
  return Claim::held_by_any(work_path(key), stale_after);
}

fs::path RunStore::output(const std::string& key, const Claim& claim) const {
  return work_path(key) / fmt::format("run.{}", claim.number());
}
fs::path RunStore::errors(const std::string& key, const Claim& claim) const {
  return work_path(key) / fmt::format("errors.{}", claim.number());
}

void RunStore::publish(const std::string& key, const Claim& claim, const ChildEnd& end) const {
  if (!claim.held()) return;
  const fs::path made = output(key, claim);
  write_file_atomically(
      made / "cost.json",
      json_text({{"wall_s", end.wall_s}, {"cpu_s", end.cpu_s}, {"peak_rss_bytes", end.peak_rss_bytes}}));
  flush_folder(made);
  if (::rename(made.c_str(), run_path(key).c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    cannot_write(run_path(key), std::generic_category().message(errno));
  }
  flush_folder(folder_ / "points");
  clear(key);
}

void RunStore::clear(const std::string& key) const {
  std::error_code ignored;
  fs::remove_all(work_path(key), ignored);
}

void RunStore::fail(const std::string& key, const RunFailure& failure) const {
  remove_outputs(work_path(key));  // first: the disk may be full
  write_file_atomically(work_path(key) / "failure.json",
                        json_text({{"status", failure.status}, {"reason", failure.reason}}));
  remove_claims(work_path(key));
}

void RunStore::release(const std::string& key, const Claim& claim) const {
  if (claim.held()) remove_claims(work_path(key));
}

}  // namespace weft
