#include "traces/gzip.h"

#include <gmock/gmock.h>

#include "tests/traces/temporary_file.h"

namespace weft {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

std::string varied_text(std::size_t size) {
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < size) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += std::to_string(state >> 40) + ",";
  }
  return text;
}

TEST(Gzip, RoundTripsThroughAPackedFile) {
  const TemporaryFolder folder;
  const std::string text = varied_text(1'000'000);
  write_atomically(folder.file("a.gz"), text);
  EXPECT_LT(std::filesystem::file_size(folder.file("a.gz")), text.size());
  EXPECT_EQ(read_maybe_gzip(folder.file("a.gz")), text);
}

TEST(Gzip, ReadsPlainFiles) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.json"), "{}");
  EXPECT_EQ(content_of(folder.file("a.json")), "{}");
  EXPECT_EQ(read_maybe_gzip(folder.file("a.json")), "{}");
}

TEST(Gzip, ReadsConcatenatedMembers) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), "first ");
  write_atomically(folder.file("b.gz"), "second");
  const auto both = folder.write("c.gz", content_of(folder.file("a.gz")) + content_of(folder.file("b.gz")));
  EXPECT_EQ(read_maybe_gzip(both), "first second");
}

TEST(Gzip, GivesTheSameBytesForTheSameContent) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(10'000));
  write_atomically(folder.file("b.gz"), varied_text(10'000));
  EXPECT_EQ(content_of(folder.file("a.gz")), content_of(folder.file("b.gz")));
}

TEST(Gzip, LeavesNoTemporaryFileBehind) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), "x");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.file("").parent_path())) ++files;
  EXPECT_EQ(files, 1u);
}

TEST(Gzip, RefusesTruncatedFiles) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(100'000));
  const std::string packed = content_of(folder.file("a.gz"));
  for (const std::size_t size : {std::size_t{3}, packed.size() / 2, packed.size() - 1}) {
    const auto cut = folder.write("cut.gz", packed.substr(0, size));
    EXPECT_THAT(input_error([&] { (void)read_maybe_gzip(cut); }), HasSubstr("truncated")) << size;
  }
}

TEST(Gzip, RefusesCorruptFiles) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(100'000));
  std::string packed = content_of(folder.file("a.gz"));
  for (std::size_t i = 1000; i < 1100; ++i) packed[i] = static_cast<char>(~packed[i]);
  const auto corrupt = folder.write("corrupt.gz", packed);
  EXPECT_THAT(input_error([&] { (void)read_maybe_gzip(corrupt); }), HasSubstr("corrupt"));
}

TEST(Gzip, RefusesEmptyFilesAndFolders) {
  const TemporaryFolder folder;
  const auto empty = folder.write("empty", "");
  EXPECT_THAT(input_error([&] { (void)read_maybe_gzip(empty); }), HasSubstr("empty file"));
  EXPECT_THAT(input_error([&] { (void)read_maybe_gzip(folder.file("")); }), HasSubstr("folder"));
}

TEST(Gzip, SaysThatAFileIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THROW((void)read_maybe_gzip(folder.file("none.gz")), MissingInput);
}

TEST(Gzip, RefusesFilesAboveTheLimit) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(100'000));
  UnpackLimits limits;
  limits.bytes = 50'000;
  EXPECT_THAT(input_error([&] { (void)read_maybe_gzip(folder.file("a.gz"), limits); }), HasSubstr("at most 50000 B"));
}

TEST(Gzip, RefusesBombs) {
  const TemporaryFolder folder;
  write_atomically(folder.file("bomb.gz"), std::string(8'000'000, ' '));
  UnpackLimits limits;
  limits.ratio_free_bytes = 1'000'000;
  EXPECT_THAT(input_error([&] { (void)read_maybe_gzip(folder.file("bomb.gz"), limits); }), HasSubstr("times its size"));
}

TEST(Gzip, SaysWhyAFileCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_THAT(input_error([&] { write_atomically(folder.file("no/folder/a.gz"), "x"); }), HasSubstr("can be written"));
}

}  // namespace
}  // namespace weft
