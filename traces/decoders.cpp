#include "traces/decoders.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace weft {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr int kGzipWindow = 15 + 16;  // zlib.h: 16 added to windowBits selects the gzip wrapper

class Plain : public Decoder {
 public:
  std::size_t decode(std::string_view& packed, std::span<char> out) override {
    const std::size_t n = std::min(packed.size(), out.size());
    std::copy_n(packed.data(), n, out.data());
    packed.remove_prefix(n);
    return n;
  }
  [[nodiscard]] bool complete() const override { return true; }
};

class Gzip : public Decoder {
 public:
  Gzip() {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  std::size_t decode(std::string_view& packed, std::span<char> out) override {
    std::size_t written = 0;
    while (written < out.size()) {
      if (!member_open_) {
        if (packed.empty()) break;
        // RFC 1952, 2.2: members may follow each other; anything else behind the last one is padding.
        if (packed.front() != '\x1f') {
          packed = {};
          break;
        }
        inflateReset(&stream_);
        member_open_ = true;
      }
      const auto room = static_cast<uInt>(std::min(out.size() - written, kPiece));
      const auto given = static_cast<uInt>(std::min(packed.size(), kPiece));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream_.avail_in = given;
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written);
      stream_.avail_out = room;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        throw std::runtime_error(std::string("gzip data, got a corrupt stream (") +
                                 (stream_.msg ? stream_.msg : "bad data") + ")");
      packed.remove_prefix(given - stream_.avail_in);
      written += room - stream_.avail_out;
      member_open_ = status != Z_STREAM_END;
      if (status == Z_BUF_ERROR || (packed.empty() && stream_.avail_out != 0)) break;
    }
    return written;
  }
  [[nodiscard]] bool complete() const override { return !member_open_; }

 private:
  z_stream stream_{};
  bool member_open_ = true;
};

class Zstd : public Decoder {
 public:
  std::size_t decode(std::string_view& packed, std::span<char> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    ZSTD_inBuffer input{packed.data(), packed.size(), 0};
    while (output.pos < output.size) {
      const std::size_t before = output.pos + input.pos;
      const std::size_t left = ZSTD_decompressStream(context_.get(), &output, &input);
      if (ZSTD_isError(left) != 0)
        throw std::runtime_error(std::string("zstd data, got a corrupt stream (") + ZSTD_getErrorName(left) + ")");
      // A call without input between two frames announces the next one.
      if (output.pos + input.pos == before) break;
      complete_ = left == 0;
    }
    packed.remove_prefix(input.pos);
    return output.pos;
  }
  [[nodiscard]] bool complete() const override { return complete_; }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(std::string_view front) {
  if (front.starts_with("\x1f\x8b")) return std::make_unique<Gzip>();
  // RFC 8878, 3.1: a frame, or one that is to be skipped (0x184D2A50 to 5F).
  const bool skippable = front.size() >= 4 && (front[0] & 0xF0) == 0x50 && front.substr(1, 3) == "\x2a\x4d\x18";
  if (front.starts_with("\x28\xb5\x2f\xfd") || skippable) return std::make_unique<Zstd>();
  return std::make_unique<Plain>();
}

std::string pack_gzip(std::string_view content) {
  z_stream z{};
  // No name and no time in the header, so that the same content gives the same bytes.
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out;
  std::vector<char> part(kPiece);
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

std::string pack_zstd(std::string_view content) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  // So that a reader sees damage, as gzip's does.
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(content.size()), '\0');
  const std::size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), content.data(), content.size());
  if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace weft
