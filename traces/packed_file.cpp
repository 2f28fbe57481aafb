#include "traces/packed_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "sim/error.h"
#include "traces/decoders.h"

namespace weft {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

}  // namespace

void PackedFile::FileCloser::operator()(std::FILE* f) const { std::fclose(f); }

PackedFile::PackedFile(const std::filesystem::path& file, const UnpackLimits& limits)
    : name_(file.string()), limits_(limits), buffer_(kChunk) {
  std::error_code status;
  if (std::filesystem::is_directory(file, status)) throw InputError(name_, "", "expected a file, got a folder");
  file_.reset(std::fopen(name_.c_str(), "rb"));
  if (!file_) throw MissingInput(name_);
  fill();
  if (packed_.empty()) throw InputError(name_, "", "expected a trace, got an empty file");
  decoder_ = make_decoder(packed_);
}

void PackedFile::fill() {
  const std::size_t n = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
  if (n == 0 && std::ferror(file_.get()) != 0)
    throw InputError(name_, "", std::string("expected a readable file, got: ") + std::strerror(errno));
  packed_bytes_ += n;
  packed_ = {buffer_.data(), n};
}

void PackedFile::check_limits() const {
  if (bytes_ > limits_.bytes)
    throw InputError(name_, "", "expected at most " + std::to_string(limits_.bytes) + " B, got more");
  if (bytes_ > limits_.ratio_free_bytes && bytes_ / packed_bytes_ > limits_.ratio)
    throw InputError(name_, "",
                     "expected a trace, got a packed file that unpacks to more than " + std::to_string(limits_.ratio) +
                         " times its size");
}

std::size_t PackedFile::read(std::span<char> out) {
  std::size_t written = 0;
  while (written < out.size()) {
    if (packed_.empty()) fill();
    const bool at_end = packed_.empty();
    std::size_t n = 0;
    try {
      n = decoder_->decode(packed_, out.subspan(written));
    } catch (const std::runtime_error& error) {
      throw InputError(name_, "", std::string("expected ") + error.what() + " after " + std::to_string(bytes_) + " B");
    }
    written += n;
    bytes_ += n;
    check_limits();
    if (!at_end || n != 0) continue;
    if (!decoder_->complete())
      throw InputError(name_, "",
                       "expected a whole packed file, got a truncated one (" + std::to_string(packed_bytes_) +
                           " B packed, " + std::to_string(bytes_) + " B unpacked)");
    break;
  }
  return written;
}

std::string read_packed(const std::filesystem::path& file, const UnpackLimits& limits) {
  PackedFile packed(file, limits);
  std::string out;
  std::vector<char> part(kChunk);
  while (const std::size_t n = packed.read(part)) out.append(part.data(), n);
  if (out.empty()) throw InputError(packed.name(), "", "expected a trace, got an empty file");
  return out;
}

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  std::string packed;
  if (file.extension() == ".gz") content = packed = pack_gzip(content);
  if (file.extension() == ".zst") content = packed = pack_zstd(content);
  const std::filesystem::path temporary = file.string() + ".tmp" + std::to_string(::getpid());
  const auto fail = [&] {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw InputError(file.string(), "", "expected a file that can be written, got: " + reason);
  };
  std::FILE* out = std::fopen(temporary.c_str(), "wb");
  if (out == nullptr) fail();
  const bool whole = std::fwrite(content.data(), 1, content.size(), out) == content.size();
  if (std::fclose(out) != 0 || !whole) fail();
  if (std::rename(temporary.c_str(), file.c_str()) != 0) fail();
}

}  // namespace weft
