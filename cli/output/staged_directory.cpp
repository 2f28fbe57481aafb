#include "cli/output/staged_directory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "sim/atomic_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

void move_into(const fs::path& from, const fs::path& to) {
  if (!fs::is_directory(from) || !fs::is_directory(to)) {
    fs::rename(from, to);
    return;
  }
  for (const auto& entry : fs::directory_iterator(from)) move_into(entry.path(), to / entry.path().filename());
}

[[noreturn]] void fail(const fs::path& target, const std::string& reason) {
  throw InputError(target.string(), "", "expected a folder that can be made, got: " + reason);
}

}  // namespace

StagedDirectory::StagedDirectory(const fs::path& target) : target_(fs::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();
  const fs::path parent = target_.parent_path();
  for (fs::path missing = parent; !fs::exists(missing); missing = missing.parent_path()) first_made_parent_ = missing;
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) fail(target_, error.message());
  std::string name = (parent / fmt::format(".{}.XXXXXX", target_.filename().string())).string();
  if (::mkdtemp(name.data()) == nullptr) fail(target_, std::generic_category().message(errno));
  staging_ = name;
  // mkdtemp gives 0700; results are as readable as any folder the user makes.
  fs::permissions(staging_, fs::status(parent).permissions() & fs::perms::all, error);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  if (!committed_ && !first_made_parent_.empty()) fs::remove_all(first_made_parent_, ignored);
}

void StagedDirectory::commit() {
  const InterruptsHeld held;
  try {
    move_into(staging_, target_);
  } catch (const fs::filesystem_error& e) {
    fail(target_, e.code().message());
  }
  committed_ = true;
}

}  // namespace weft
