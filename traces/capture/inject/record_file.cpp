#include "traces/capture/inject/record_file.h"

#include <cxxabi.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace weft::capture {

namespace {

// Kernels of a step repeat: level 1 packs them ten times over at a gigabyte a second.
constexpr int kLevel = 1;

// FNV-1a, 64 bits (Fowler, Noll, Vo). Names are told apart by it alone: a hundred thousand of them collide with a
// probability of 3e-10.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

bool write_all(int descriptor, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

std::string demangled(std::string_view name) {
  std::string text(name);
  if (!name.starts_with("_Z")) return text;
  int status = 0;
  if (char* plain = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status)) {
    text = plain;
    std::free(plain);
  }
  return text;
}

RecordFile::RecordFile(int descriptor)
    : descriptor_(descriptor),
      names_(1024),
      plain_(kBlockBytes),
      packed_(sizeof(BlockHeader) + ZSTD_compressBound(kBlockBytes)),
      compressor_(ZSTD_createCCtx()) {
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_checksumFlag, 1);
  failed_ = compressor_ == nullptr || !write_all(descriptor_, kMagic, sizeof(kMagic));
}

RecordFile::~RecordFile() {
  flush();
  ZSTD_freeCCtx(compressor_);
  ::close(descriptor_);
}

void RecordFile::put_bytes(const void* records, std::size_t bytes) {
  if (filled_ + bytes > plain_.size()) flush();
  if (failed_ || bytes > plain_.size()) return;
  std::memcpy(plain_.data() + filled_, records, bytes);
  filled_ += bytes;
}

template <class Header>
void RecordFile::put_with_text(Header header, std::string_view characters) {
  const std::size_t bytes = (sizeof(Header) + characters.size() + 7) / 8 * 8;
  if (filled_ + bytes > plain_.size()) flush();
  if (failed_) return;
  header.header.bytes = static_cast<std::uint32_t>(bytes);
  header.length = static_cast<std::uint32_t>(characters.size());
  char* at = plain_.data() + filled_;
  std::memcpy(at, &header, sizeof(Header));
  std::memcpy(at + sizeof(Header), characters.data(), characters.size());
  std::memset(at + sizeof(Header) + characters.size(), 0, bytes - sizeof(Header) - characters.size());
  filled_ += bytes;
}

std::uint32_t RecordFile::text(std::string_view name) {
  name = name.substr(0, kMaxText);
  if (name.empty()) return 0;
  const std::uint64_t hash = hash_of(name);
  std::size_t slot = hash & (names_.size() - 1);
  for (; names_[slot].number != 0; slot = (slot + 1) & (names_.size() - 1))
    if (names_[slot].hash == hash) return names_[slot].number;
  names_[slot] = {hash, ++names_used_};
  TextRecord record;
  record.number = names_used_;
  put_with_text(record, std::string_view(demangled(name)).substr(0, kMaxText));
  if (names_used_ * 2 > names_.size()) grow_names();
  return record.number;
}

void RecordFile::grow_names() {
  std::vector<Name> larger(names_.size() * 2);
  for (const Name& name : names_) {
    if (name.number == 0) continue;
    std::size_t slot = name.hash & (larger.size() - 1);
    while (larger[slot].number != 0) slot = (slot + 1) & (larger.size() - 1);
    larger[slot] = name;
  }
  names_ = std::move(larger);
}

void RecordFile::note(std::string_view message) { put_with_text(NoteRecord(), message.substr(0, kMaxText)); }

void RecordFile::flush() {
  if (filled_ == 0 || failed_) return;
  const std::size_t packed = ZSTD_compress2(compressor_, packed_.data() + sizeof(BlockHeader),
                                            packed_.size() - sizeof(BlockHeader), plain_.data(), filled_);
  const BlockHeader header{kBlockMagic, static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(filled_),
                           block_number_++};
  filled_ = 0;
  if (ZSTD_isError(packed)) {
    failed_ = true;
    return;
  }
  std::memcpy(packed_.data(), &header, sizeof(header));
  // In one call: a process that is killed leaves whole blocks, but for the rarest moment.
  failed_ = !write_all(descriptor_, packed_.data(), sizeof(header) + packed);
}

}  // namespace weft::capture
