#include "traces/capture/inject/record_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/capture/capture_records.h"
#include "tests/traces/temporary_file.h"
#include "traces/capture/capture_file.h"

namespace weft {
namespace {

using capture::RecordFile;
using capture::RecordKind;
using capture::TestProcess;
using testing::TemporaryFolder;

struct Content {
  std::vector<std::string> kernels;
  std::size_t calls = 0;
  std::string damage;
};

Content read_all(const std::filesystem::path& path) {
  Content content;
  CaptureFile file(path);
  while (file.next()) {
    if (file.kind() == RecordKind::kernel)
      content.kernels.push_back(file.text(file.as<capture::KernelRecord>().gpu.name));
    content.calls += file.kind() == RecordKind::call ? 1 : 0;
  }
  content.damage = file.damage();
  return content;
}

TEST(CaptureRecordFile, HoldsWhatWasPutIntoIt) {
  const TemporaryFolder folder;
  const auto path = folder.file("a.weftcap");
  TestProcess process(path);
  process.launch("gemm", 0, 10, 20, 7, 1);
  process.launch(std::string(70'000, 'x').c_str(), 0, 10, 20, 7, 2);
  process.launch("gemm", 0, 10, 20, 7, 3);
  process.end();

  const Content content = read_all(path);
  ASSERT_EQ(content.kernels.size(), 3u);
  EXPECT_EQ(content.kernels[0], "gemm");
  EXPECT_EQ(content.kernels[1].size(), capture::kMaxText);
  EXPECT_EQ(content.kernels[2], "gemm");
  EXPECT_EQ(content.calls, 3u);
  EXPECT_EQ(content.damage, "");
}

// Several blocks, and more names than the first table of them takes.
void fill(const std::filesystem::path& path, int kernels) {
  TestProcess process(path);
  for (int i = 0; i < kernels; ++i)
    process.launch(("kernel_" + std::to_string(i % 2000)).c_str(), i, i + 5, i + 6, 7, static_cast<std::uint32_t>(i));
  process.end();
}

TEST(CaptureRecordFile, NamesAndRecordsSurviveBlocks) {
  const TemporaryFolder folder;
  const auto path = folder.file("a.weftcap");
  fill(path, 20'000);
  const Content content = read_all(path);
  ASSERT_EQ(content.kernels.size(), 20'000u);
  EXPECT_EQ(content.kernels[12'345], "kernel_345");
  EXPECT_EQ(content.kernels[19'999], "kernel_1999");
  EXPECT_LT(std::filesystem::file_size(path), 20'000u * 50);  // 184 bytes plain
}

TEST(CaptureRecordFile, ACutFileIsGoodUpToItsLastWholeBlock) {
  const TemporaryFolder folder;
  const auto path = folder.file("a.weftcap");
  fill(path, 20'000);
  const std::string whole = testing::content_of(path);
  std::size_t last = 19'999;
  for (const double part : {0.99, 0.7, 0.4, 0.1}) {
    const auto cut = static_cast<std::size_t>(static_cast<double>(whole.size()) * part);
    const Content content = read_all(folder.write("cut.weftcap", whole.substr(0, cut)));
    EXPECT_FALSE(content.damage.empty());
    EXPECT_LE(content.kernels.size(), last);
    if (!content.kernels.empty()) {
      EXPECT_EQ(content.kernels[0], "kernel_0");
    }
    last = content.kernels.size();
  }
  EXPECT_LT(last, 10'000u);
}

TEST(CaptureRecordFile, ADamagedBlockEndsReading) {
  const TemporaryFolder folder;
  const auto path = folder.file("a.weftcap");
  fill(path, 20'000);
  std::string bytes = testing::content_of(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  const Content content = read_all(folder.write("bad.weftcap", bytes));
  EXPECT_THAT(content.damage, ::testing::HasSubstr("is damaged"));
  EXPECT_GT(content.kernels.size(), 0u);
  EXPECT_LT(content.kernels.size(), 20'000u);
}

TEST(CaptureRecordFile, AnUnfinishedProcessIsToldFromOneThatEnded) {
  const TemporaryFolder folder;
  const auto path = folder.file("a.weftcap");
  {
    TestProcess process(path);
    process.launch("gemm", 0, 10, 20, 7, 1);
  }
  EXPECT_THAT(read_all(path).damage, ::testing::HasSubstr("did not end in order"));
}

TEST(CaptureRecordFile, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(testing::input_error([&] { CaptureFile file(folder.write("a", "{}")); }),
              ::testing::HasSubstr("expected a file of weft capture"));
  EXPECT_THROW(CaptureFile file(folder.file("none")), MissingInput);
}

TEST(CaptureRecordFile, AFullDiskLosesRecordsAndNothingElse) {
  RecordFile file(::open("/dev/full", O_WRONLY));
  EXPECT_TRUE(file.failed());
  file.put(capture::EndRecord());
  EXPECT_EQ(file.text("gemm"), 1u);
  file.flush();
}

TEST(CaptureRecordFile, NamesOfKernelsAreWrittenDemangled) {
  EXPECT_EQ(capture::demangled("_Z6VecAddPKiS0_Pii"), "VecAdd(int const*, int const*, int*, int)");
  EXPECT_EQ(capture::demangled("_Znonsense"), "_Znonsense");
  EXPECT_EQ(capture::demangled("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
}

}  // namespace
}  // namespace weft
