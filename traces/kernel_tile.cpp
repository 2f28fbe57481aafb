#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "traces/kernel_class.h"
#include "traces/kineto_names.h"

namespace weft {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

struct Group {
  std::vector<std::uint32_t> numbers;  // "128x64x32" -> 128, 64, 32
  std::size_t start = 0;
  std::size_t end = 0;
};

std::vector<Group> groups_of(std::string_view name) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!digit(name[i]) || (i > 0 && digit(name[i - 1]))) continue;
    Group group;
    group.start = i;
    std::size_t at = i;
    while (at < name.size() && digit(name[at])) {
      std::uint32_t value = 0;
      while (at < name.size() && digit(name[at]))
        value = std::min(value, 100'000u) * 10 + static_cast<std::uint32_t>(name[at++] - '0');
      group.numbers.push_back(value);
      if (at + 1 < name.size() && name[at] == 'x' && digit(name[at + 1]))
        ++at;
      else
        break;
    }
    group.end = at;
    if (group.numbers.size() >= 2) groups.push_back(group);
    i = at - 1;
  }
  return groups;
}

// A threadblock tile has sides from 16 to 512; "16x8x8" of an instruction and "2x2x1" of a warp layout come behind it.
bool is_tile(const Group& g) {
  return g.numbers[0] >= 16 && g.numbers[0] <= 512 && g.numbers[1] >= 16 && g.numbers[1] <= 512;
}

// Mangled CUTLASS: "GemmShapeILi128ELi128ELi32EE"; the threadblock's shape comes first.
bool mangled_tile(std::string_view name, GemmTile& tile) {
  std::size_t at = name.find("GemmShapeILi");
  if (at == std::string_view::npos) return false;
  std::vector<std::uint32_t> numbers;
  for (at += 12; at < name.size() && numbers.size() < 3; ++at) {
    std::uint32_t value = 0;
    const std::size_t first = at;
    while (at < name.size() && digit(name[at]) && at < first + 5)
      value = value * 10 + static_cast<std::uint32_t>(name[at++] - '0');
    numbers.push_back(value);
    if (name.substr(at, 3) != "ELi") break;
    at += 2;
  }
  if (numbers.size() < 3 || numbers[0] == 0 || numbers[1] == 0 || numbers[2] == 0) return false;
  tile.m = numbers[0];
  tile.n = numbers[1];
  tile.k = numbers[2];
  return true;
}

// The type of A in the names of cuBLAS's kernels: "nvjet_tst_..." and, since CUDA 13, "nvjet_sm90_tst_...": t BF16, h
// FP16, s FP32 multiplied as TF32. 0: no such name.
char cublas_type(std::string_view n) {
  std::size_t at = n.find("nvjet_");
  if (at == std::string_view::npos) return 0;
  at += 6;
  if (n.substr(at, 2) == "sm") at = n.find('_', at) + 1;
  return at > 0 && at < n.size() ? n[at] : '\0';
}

void set_pipe(std::string_view n, GemmTile& tile) {
  // Tensile names ("Cijk_Ailk_Bljk_BBS_BH_...") give the types of A and B: B is BF16, H is FP16.
  // CUTLASS and cuDNN names give the tensor core instruction: s1688 multiplies TF32 unless the type says FP16, h884,
  // s884 and 16816 multiply FP16 or BF16.
  if (has(n, "tf32") || has(n, "tfloat32")) {
    tile.pipe = Pipe::tensor_tf32;
  } else if (has(n, "f16") || has(n, "fp16") || has(n, "884") || has(n, "16816") || has(n, "h1688") || has(n, "half") ||
             has(n, "bfloat16") || has(n, "xdl") || has(n, "_bbs_") || has(n, "_hhs_") || has(n, "hmma") ||
             cublas_type(n) == 'h' || cublas_type(n) == 't') {
    tile.pipe = Pipe::tensor_fp16;
    tile.element_bytes = 2;
  } else if (has(n, "s1688") || has(n, "tensorop") || cublas_type(n) == 's') {
    tile.pipe = Pipe::tensor_tf32;
  }
}

// Groups in the order of the name, from the tile on. In names of CUTLASS 3 that of the instruction comes before it
// ("..._s64x128x16gemm_..._128x128x64_2x1x1_...").
std::vector<Group> tile_and_behind(std::string_view n) {
  std::vector<Group> groups = groups_of(n);
  const bool cutlass = has(n, "cutlass3x");
  groups.erase(groups.begin(), std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
                 return is_tile(g) && (!cutlass || (g.start > 0 && n[g.start - 1] == '_'));
               }));
  return groups;
}

}  // namespace

std::array<std::uint32_t, 2> named_cluster(std::string_view name) {
  const std::string n = lower(name);
  const bool cublas = has(n, "nvjet");
  if (!cublas && !has(n, "cutlass3x")) return {1, 1};
  const std::vector<Group> groups = tile_and_behind(n);
  const std::size_t place = cublas ? 2 : 1;
  if (groups.size() <= place) return {1, 1};
  const std::vector<std::uint32_t>& sides = groups[place].numbers;
  if (sides[0] < 1 || sides[0] > 16 || sides[1] < 1 || sides[1] > 16 || sides[0] * sides[1] > 16) return {1, 1};
  return {sides[0], sides[1]};
}

std::optional<PieceOrder> persistent_product(std::string_view name) {
  const std::string n = lower(name);
  if (has(n, "splitk") || has(n, "split_k") || has(n, "segment_k_on")) return std::nullopt;
  if (has(n, "nvjet")) return has(n, "ssched") ? PieceOrder::stride : PieceOrder::claim;
  if (has(n, "sm90_xmma") || has(n, "sm100_xmma") || has(n, "cutlass3x")) return PieceOrder::stride;
  return std::nullopt;
}

GemmTile gemm_tile(std::string_view name, const LaunchShape& shape) {
  const std::string n = lower(name);
  GemmTile tile;
  set_pipe(n, tile);
  tile.k = tile.pipe == Pipe::fp32 ? 8 : 32;
  std::uint32_t stages = 0;
  if (!mangled_tile(name, tile)) {
    const std::vector<Group> groups = tile_and_behind(n);
    if (!groups.empty()) {
      const Group& found = groups.front();
      tile.m = found.numbers[0];
      tile.n = found.numbers[1];
      if (found.numbers.size() >= 3) tile.k = found.numbers[2];
      for (auto next = groups.begin() + 1; next != groups.end(); ++next) {
        const bool follows = next->start == found.end + 1 && n[found.end] == '_';
        const bool named = next->start >= 7 && n.substr(next->start - 7, 7) == "stages_";
        if ((!follows && !named) || found.numbers.size() != 2 || next->numbers.size() != 2) continue;
        tile.k = next->numbers[0];
        stages = next->numbers[1];
        break;
      }
    } else if (shape.threads_per_block() <= 128) {
      tile.m = tile.n = 64;  // two wavefronts or four warps: the smaller of the common tiles
    }
  }
  if (const std::size_t at = n.find("_stage");
      stages == 0 && at != std::string::npos && at + 6 < n.size() && digit(n[at + 6]))
    stages = static_cast<std::uint32_t>(n[at + 6] - '0');
  tile.k = std::clamp<std::uint32_t>(tile.k, 4, 256);
  if (stages == 0) stages = shape.shared_memory_bytes / ((tile.m + tile.n) * tile.k * tile.element_bytes);
  tile.stages = std::clamp<std::uint32_t>(stages, 2, 8);
  return tile;
}

}  // namespace weft
