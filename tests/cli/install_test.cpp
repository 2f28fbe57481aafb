// What `cmake --install` leaves: a program that finds its configurations, its manual page and completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_weft.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

int shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()); }

TEST(Install, RunsFromWhereverItLies) {
  const TemporaryFolder folder;
  const fs::path build = fs::path(WEFT_BINARY).parent_path().parent_path();
  const fs::path prefix = folder.path() / "moved here";
  ASSERT_EQ(shell("cmake --install '" + build.string() + "' --prefix '" + prefix.string() + "'"), 0);
  for (const char* file : {"bin/weft", "share/weft/configs/systems/hgx-h100.json", "share/man/man1/weft.1",
                           "share/bash-completion/completions/weft", "share/zsh/vendor-completions/_weft",
                           "share/zsh/site-functions/_weft", "share/fish/vendor_completions.d/weft.fish"}) {
    EXPECT_TRUE(fs::exists(prefix / file)) << file;
  }
  // Its own configurations, not those of the source tree.
  fs::rename(prefix / "share/weft/configs/systems/r9nano.json", prefix / "share/weft/configs/systems/own.json");
  const fs::path listed = folder.path() / "listed";
  ASSERT_EQ(std::system(
                ("env -u WEFT_CONFIGS '" + (prefix / "bin/weft").string() + "' list systems >'" + listed.string() + "'")
                    .c_str()),
            0);
  EXPECT_THAT(read_file(listed), ::testing::HasSubstr("\nown "));
  EXPECT_THAT(read_file(listed), ::testing::Not(::testing::HasSubstr("r9nano ")));
}

}  // namespace
}  // namespace weft
