#include "traces/packed_file.h"

#include <gmock/gmock.h>

#include <array>

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

TEST(PackedFile, RoundTripsThroughAPackedFile) {
  const TemporaryFolder folder;
  const std::string text = varied_text(1'000'000);
  write_atomically(folder.file("a.gz"), text);
  EXPECT_LT(std::filesystem::file_size(folder.file("a.gz")), text.size());
  EXPECT_EQ(read_packed(folder.file("a.gz")), text);
}

TEST(PackedFile, RoundTripsThroughZstd) {
  const TemporaryFolder folder;
  const std::string text = varied_text(1'000'000);
  write_atomically(folder.file("a.zst"), text);
  write_atomically(folder.file("b.zst"), "more");
  EXPECT_LT(std::filesystem::file_size(folder.file("a.zst")), text.size());
  EXPECT_EQ(read_packed(folder.file("a.zst")), text);
  // By its first bytes, not by its name; frames may follow each other, also ones to be skipped.
  const std::string skipped("\x50\x2a\x4d\x18\x03\0\0\0xyz", 11);
  const auto several =
      folder.write("frames", skipped + content_of(folder.file("a.zst")) + skipped + content_of(folder.file("b.zst")));
  EXPECT_EQ(read_packed(several), text + "more");
}

TEST(PackedFile, RefusesTruncatedAndCorruptZstd) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.zst"), varied_text(100'000));
  std::string packed = content_of(folder.file("a.zst"));
  for (const std::size_t size : {std::size_t{6}, packed.size() / 2, packed.size() - 1}) {
    const auto cut = folder.write("cut.zst", packed.substr(0, size));
    EXPECT_THAT(input_error([&] { (void)read_packed(cut); }), HasSubstr("truncated")) << size;
  }
  for (std::size_t i = 1000; i < 1100; ++i) packed[i] = static_cast<char>(~packed[i]);
  const auto corrupt = folder.write("corrupt.zst", packed);
  EXPECT_THAT(input_error([&] { (void)read_packed(corrupt); }), HasSubstr("corrupt"));
}

// As a stream, in pieces of any size.
TEST(PackedFile, GivesTheSameBytesInSmallPieces) {
  const TemporaryFolder folder;
  const std::string text = varied_text(20'000);
  for (const char* name : {"a.json", "a.gz", "a.zst"}) {
    write_atomically(folder.file(name), text);
    PackedFile file(folder.file(name));
    std::string got;
    std::array<char, 7> piece{};
    while (const std::size_t n = file.read(piece)) got.append(piece.data(), n);
    EXPECT_EQ(got, text) << name;
  }
}

TEST(PackedFile, ReadsPlainFiles) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.json"), "{}");
  EXPECT_EQ(content_of(folder.file("a.json")), "{}");
  EXPECT_EQ(read_packed(folder.file("a.json")), "{}");
}

TEST(PackedFile, ReadsConcatenatedMembers) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), "first ");
  write_atomically(folder.file("b.gz"), "second");
  const auto both = folder.write("c.gz", content_of(folder.file("a.gz")) + content_of(folder.file("b.gz")));
  EXPECT_EQ(read_packed(both), "first second");
}

TEST(PackedFile, GivesTheSameBytesForTheSameContent) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(10'000));
  write_atomically(folder.file("b.gz"), varied_text(10'000));
  EXPECT_EQ(content_of(folder.file("a.gz")), content_of(folder.file("b.gz")));
}

TEST(PackedFile, LeavesNoTemporaryFileBehind) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), "x");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.file("").parent_path())) ++files;
  EXPECT_EQ(files, 1u);
}

TEST(PackedFile, RefusesTruncatedFiles) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(100'000));
  const std::string packed = content_of(folder.file("a.gz"));
  for (const std::size_t size : {std::size_t{3}, packed.size() / 2, packed.size() - 1}) {
    const auto cut = folder.write("cut.gz", packed.substr(0, size));
    EXPECT_THAT(input_error([&] { (void)read_packed(cut); }), HasSubstr("truncated")) << size;
  }
}

TEST(PackedFile, RefusesCorruptFiles) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(100'000));
  std::string packed = content_of(folder.file("a.gz"));
  for (std::size_t i = 1000; i < 1100; ++i) packed[i] = static_cast<char>(~packed[i]);
  const auto corrupt = folder.write("corrupt.gz", packed);
  EXPECT_THAT(input_error([&] { (void)read_packed(corrupt); }), HasSubstr("corrupt"));
}

TEST(PackedFile, RefusesEmptyFilesAndFolders) {
  const TemporaryFolder folder;
  const auto empty = folder.write("empty", "");
  EXPECT_THAT(input_error([&] { (void)read_packed(empty); }), HasSubstr("empty file"));
  EXPECT_THAT(input_error([&] { (void)read_packed(folder.file("")); }), HasSubstr("folder"));
}

TEST(PackedFile, SaysThatAFileIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THROW((void)read_packed(folder.file("none.gz")), MissingInput);
}

TEST(PackedFile, RefusesFilesAboveTheLimit) {
  const TemporaryFolder folder;
  write_atomically(folder.file("a.gz"), varied_text(100'000));
  UnpackLimits limits;
  limits.bytes = 50'000;
  EXPECT_THAT(input_error([&] { (void)read_packed(folder.file("a.gz"), limits); }), HasSubstr("at most 50000 B"));
}

TEST(PackedFile, RefusesBombs) {
  const TemporaryFolder folder;
  write_atomically(folder.file("bomb.gz"), std::string(8'000'000, ' '));
  UnpackLimits limits;
  limits.ratio_free_bytes = 1'000'000;
  EXPECT_THAT(input_error([&] { (void)read_packed(folder.file("bomb.gz"), limits); }), HasSubstr("times its size"));
}

TEST(PackedFile, SaysWhyAFileCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_THAT(input_error([&] { write_atomically(folder.file("no/folder/a.gz"), "x"); }), HasSubstr("can be written"));
}

}  // namespace
}  // namespace weft
