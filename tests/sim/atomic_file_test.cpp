#include "sim/atomic_file.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/config_file.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

TEST(AtomicFile, WritesAndReplaces) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.json";
  write_file_atomically(file, "first");
  write_file_atomically(file, std::string("sec\0nd", 6));
  EXPECT_EQ(read_file(file), std::string("sec\0nd", 6));
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(AtomicFile, LeavesNothingWhenItFails) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "taken");
  folder.write("taken/inside", "x");
  EXPECT_THROW(write_file_atomically(folder.path() / "taken", "bytes"), InputError);
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(AtomicFile, NamesTheFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  try {
    write_file_atomically(folder.path() / "none" / "a.json", "bytes");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(e.what(), (folder.path() / "none" / "a.json").string() +
                            ": expected a file that can be written, got: No such file or directory");
  }
}

TEST(AtomicFile, IsReadableAsTheUmaskAllows) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "a", "x");
  folder.write("b", "x");
  EXPECT_EQ(std::filesystem::status(folder.path() / "a").permissions(),
            std::filesystem::status(folder.path() / "b").permissions());
}

TEST(InterruptsHeld, DeliversThemAtItsEnd) {
  static volatile std::sig_atomic_t arrived = 0;
  std::signal(SIGINT, [](int) { arrived = 1; });
  {
    const InterruptsHeld held;
    std::raise(SIGINT);
    EXPECT_EQ(arrived, 0);
  }
  EXPECT_EQ(arrived, 1);
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace weft
