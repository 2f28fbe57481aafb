#include "traces/capture/capture_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <array>
#include <utility>

#include "sim/error.h"
#include "traces/readable_text.h"

namespace weft {

using capture::RecordKind;

CaptureFile::CaptureFile(const std::filesystem::path& path)
    : name_(path.string()), file_(path, std::ios::binary), decompressor_(ZSTD_createDCtx()) {
  std::array<char, sizeof(capture::kMagic)> magic{};
  if (!file_) throw MissingInput(name_);
  file_.read(magic.data(), magic.size());
  if (!file_ || std::memcmp(magic.data(), capture::kMagic, magic.size()) != 0)
    throw InputError(name_, "", "expected a file of weft capture, got something else");
}

void CaptureFile::FreeDecompressor::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

bool CaptureFile::damaged(std::string what) {
  damage_ = std::move(what);
  filled_ = at_ = 0;
  return false;
}

bool CaptureFile::next_block() {
  capture::BlockHeader header{};
  file_.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (file_.gcount() == 0) return ended_ ? false : damaged("the process did not end in order, or is still running");
  if (file_.gcount() != sizeof(header)) return damaged(fmt::format("block {} is cut off", block_));
  if (header.magic != capture::kBlockMagic || header.number != block_ || header.plain_bytes > capture::kBlockBytes ||
      header.packed_bytes > ZSTD_compressBound(capture::kBlockBytes))
    return damaged(fmt::format("block {} is damaged", block_));
  packed_.resize(header.packed_bytes);
  plain_.resize(header.plain_bytes);
  file_.read(packed_.data(), header.packed_bytes);
  if (file_.gcount() != header.packed_bytes) return damaged(fmt::format("block {} is cut off", block_));
  const std::size_t plain =
      ZSTD_decompressDCtx(decompressor_.get(), plain_.data(), plain_.size(), packed_.data(), packed_.size());
  if (ZSTD_isError(plain) || plain != header.plain_bytes) return damaged(fmt::format("block {} is damaged", block_));
  ++block_;
  at_ = 0;
  filled_ = plain;
  return true;
}

bool CaptureFile::next() {
  while (damage_.empty()) {
    while (at_ == filled_)
      if (!next_block()) return false;
    if (filled_ - at_ < sizeof(header_)) return damaged(fmt::format("block {} ends within a record", block_ - 1));
    record_ = plain_.data() + at_;
    std::memcpy(&header_, record_, sizeof(header_));
    if (header_.bytes < sizeof(header_) || header_.bytes % 8 != 0 || header_.bytes > filled_ - at_)
      return damaged(fmt::format("block {} has a record of {} bytes", block_ - 1, header_.bytes));
    at_ += header_.bytes;
    ended_ = header_.kind == RecordKind::end;
    if (header_.kind != RecordKind::text) return true;
    add_text();
  }
  return false;
}

void CaptureFile::add_text() {
  const auto record = as<capture::TextRecord>();
  if (record.number != texts_.size() || record.length > header_.bytes - sizeof(record)) {
    damaged(fmt::format("block {} has a name out of place", block_ - 1));
    return;
  }
  texts_.push_back(readable({record_ + sizeof(record), record.length}));
}

std::string CaptureFile::text_behind(std::size_t at, std::uint32_t length) const {
  if (header_.bytes < at || length > header_.bytes - at) return {};
  return readable({record_ + at, length});
}

const std::string& CaptureFile::text(std::uint32_t number) const { return texts_[number < texts_.size() ? number : 0]; }

}  // namespace weft
