// A folder that appears when it is complete.
#pragma once

#include <filesystem>

namespace weft {

// Work goes into path(), a new folder beside `target`. commit() moves it there: as a whole when `target` does not
// exist, else file by file over what is there. Without commit() all that was made is gone with this object, also the
// parents of `target` that it had to make. Throws InputError when a folder cannot be made.
class StagedDirectory {
 public:
  explicit StagedDirectory(const std::filesystem::path& target);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return staging_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;
  std::filesystem::path first_made_parent_;  // empty when all parents were there
  bool committed_ = false;
};

}  // namespace weft
