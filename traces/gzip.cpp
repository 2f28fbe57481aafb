#include "traces/gzip.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "sim/error.h"

namespace weft {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr int kGzipWindow = 15 + 16;  // zlib.h: 16 added to windowBits selects the gzip wrapper

struct FileCloser {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

class Reader {
 public:
  Reader(const std::filesystem::path& path, const UnpackLimits& limits) : name_(path.string()), limits_(limits) {
    std::error_code status;
    if (std::filesystem::is_directory(path, status)) throw InputError(name_, "", "expected a file, got a folder");
    file_.reset(std::fopen(name_.c_str(), "rb"));
    if (!file_) throw MissingInput(name_);
  }

  std::string read() {
    if (!fill()) throw InputError(name_, "", "expected a trace, got an empty file");
    if (available_.size() >= 2 && static_cast<unsigned char>(available_[0]) == 0x1f &&
        static_cast<unsigned char>(available_[1]) == 0x8b) {
      unpack();
    } else {
      do append(available_);
      while (fill());
    }
    if (out_.empty()) throw InputError(name_, "", "expected a trace, got an empty file");
    return std::move(out_);
  }

 private:
  bool fill() {
    const std::size_t n = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (n == 0 && std::ferror(file_.get()) != 0)
      throw InputError(name_, "", std::string("expected a readable file, got: ") + std::strerror(errno));
    packed_ += n;
    available_ = {buffer_.data(), n};
    return n != 0;
  }

  void append(std::string_view part) {
    const std::uint64_t size = out_.size() + part.size();
    if (size > limits_.bytes)
      throw InputError(name_, "", "expected at most " + std::to_string(limits_.bytes) + " B of JSON, got more");
    if (size > limits_.ratio_free_bytes && size / std::max<std::uint64_t>(packed_, 1) > limits_.ratio)
      throw InputError(name_, "",
                       "expected a trace, got a gzip file that unpacks to more than " + std::to_string(limits_.ratio) +
                           " times its size");
    out_.append(part);
  }

  void unpack() {
    Inflater inflater;
    z_stream& z = inflater.stream();
    std::vector<char> part(kChunk);
    bool member_open = true;
    give_input(z);
    while (true) {
      if (z.avail_in == 0) {
        if (!fill()) break;
        give_input(z);
      }
      if (!member_open) {
        // RFC 1952, 2.2: members may follow each other; anything else behind the last one is padding.
        if (*z.next_in != 0x1f) break;
        inflateReset(&z);
        member_open = true;
      }
      do {
        z.next_out = reinterpret_cast<Bytef*>(part.data());
        z.avail_out = static_cast<uInt>(part.size());
        const int status = inflate(&z, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
          throw InputError(name_, "",
                           std::string("expected gzip data, got a corrupt stream after ") +
                               std::to_string(out_.size()) + " B (" + (z.msg ? z.msg : "bad data") + ")");
        append({part.data(), part.size() - z.avail_out});
        if (status == Z_STREAM_END) {
          member_open = false;
          break;
        }
      } while (z.avail_in != 0 || z.avail_out == 0);
    }
    if (member_open)
      throw InputError(name_, "",
                       "expected a whole gzip file, got a truncated one (" + std::to_string(packed_) + " B packed, " +
                           std::to_string(out_.size()) + " B unpacked)");
  }

  void give_input(z_stream& z) {
    z.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    z.avail_in = static_cast<uInt>(available_.size());
  }

  std::string name_;
  UnpackLimits limits_;
  File file_;
  std::vector<char> buffer_ = std::vector<char>(kChunk);
  std::string_view available_;
  std::uint64_t packed_ = 0;
  std::string out_;
};

std::string pack(std::string_view content) {
  z_stream z{};
  // No name and no time in the header, so that the same content gives the same bytes.
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out;
  std::vector<char> part(kChunk);
  int status = Z_OK;
  do {
    // avail_in has 32 bits: large contents go in pieces.
    const std::size_t piece = std::min<std::size_t>(content.size(), std::size_t{1} << 30);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    z.avail_in = static_cast<uInt>(piece);
    content.remove_prefix(piece);
    do {
      z.next_out = reinterpret_cast<Bytef*>(part.data());
      z.avail_out = static_cast<uInt>(part.size());
      status = deflate(&z, content.empty() ? Z_FINISH : Z_NO_FLUSH);
      out.append(part.data(), part.size() - z.avail_out);
    } while (z.avail_out == 0);
  } while (status != Z_STREAM_END);
  deflateEnd(&z);
  return out;
}

}  // namespace

std::string read_maybe_gzip(const std::filesystem::path& file, const UnpackLimits& limits) {
  return Reader(file, limits).read();
}

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::string packed = file.extension() == ".gz" ? pack(content) : std::string();
  const std::string_view bytes = file.extension() == ".gz" ? std::string_view(packed) : content;
  const std::filesystem::path temporary = file.string() + ".tmp" + std::to_string(::getpid());
  const auto fail = [&] {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw InputError(file.string(), "", "expected a file that can be written, got: " + reason);
  };
  File out(std::fopen(temporary.c_str(), "wb"));
  if (!out) fail();
  if (std::fwrite(bytes.data(), 1, bytes.size(), out.get()) != bytes.size()) fail();
  if (std::fclose(out.release()) != 0) fail();
  if (std::rename(temporary.c_str(), file.c_str()) != 0) fail();
}

}  // namespace weft
