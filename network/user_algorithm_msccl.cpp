// MSCCL's XML, as its runtime reads it (microsoft/msccl and ROCm/rccl, src/misc/msccl/msccl_parser.cc;
// what a step does: the interpreter beside NCCL's kernels).
#include <fmt/format.h>

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <charconv>
#include <map>
#include <sstream>

#include "network/user_algorithm_reader.h"
#include "sim/error.h"

namespace weft {

namespace {

using Limits = UserAlgorithmLimits;
using Tree = boost::property_tree::ptree;

constexpr int kDeepestElement = 16;  // algo, gpu, tb, step; the XML parser calls itself for each level

// An element and where it stands, for messages.
class Element {
 public:
  Element(const Tree& tree, std::string file, std::string place)
      : tree_(&tree), file_(std::move(file)), place_(std::move(place)) {}

  [[nodiscard]] std::string word(const char* name) const {
    const auto found = tree_->get_optional<std::string>(path(name));
    if (!found) fail(fmt::format("expected an attribute {}, got none", name));
    return *found;
  }
  [[nodiscard]] std::int64_t integer(const char* name, std::int64_t low, std::int64_t high) const {
    const std::string text = word(name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
      fail(fmt::format("expected {} from {} to {}, got \"{}\"", name, low, high, text.substr(0, 40)));
    }
    return value;
  }
  [[nodiscard]] std::int64_t integer_or(const char* name, std::int64_t low, std::int64_t high,
                                        std::int64_t otherwise) const {
    return tree_->get_optional<std::string>(path(name)) ? integer(name, low, high) : otherwise;
  }

  // Children of that name; others but attributes and comments are errors.
  template <class Visit>
  void children(const char* name, Visit&& visit) const {
    for (const auto& [key, child] : *tree_) {
      if (key == "<xmlattr>" || key == "<xmlcomment>") continue;
      if (key != name) fail(fmt::format("expected elements {}, got \"{}\"", name, key.substr(0, 40)));
      visit(child);
    }
  }
  [[nodiscard]] Element child(const Tree& tree, const std::string& place) const {
    return {tree, file_, place_.empty() ? place : place_ + ", " + place};
  }
  [[noreturn]] void fail(const std::string& message) const { throw InputError(file_, place_, message); }

 private:
  static std::string path(const char* name) { return std::string("<xmlattr>.") + name; }

  const Tree* tree_;
  std::string file_;
  std::string place_;
};

void check_depth(const std::string& text, const std::string& file) {
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '<' && text[i + 1] != '/' && text[i + 1] != '!' && text[i + 1] != '?') ++depth;
    if ((text[i] == '<' && text[i + 1] == '/') || (text[i] == '/' && text[i + 1] == '>')) --depth;
    if (depth > kDeepestElement) {
      throw InputError(file, "", fmt::format("expected at most {} levels of elements, got more", kDeepestElement));
    }
  }
}

Tree parse(const std::string& text, const std::string& file) {
  check_depth(text, file);
  Tree tree;
  std::istringstream stream(text);
  try {
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw InputError(file, fmt::format("line {}", error.line()), "expected XML, got an error: " + error.message());
  }
  return tree;
}

CollectiveKind kind_of(const Element& algo) {
  static const std::map<std::string, CollectiveKind> kinds{{"allreduce", CollectiveKind::all_reduce},
                                                           {"allgather", CollectiveKind::all_gather},
                                                           {"reducescatter", CollectiveKind::reduce_scatter},
                                                           {"reduce_scatter", CollectiveKind::reduce_scatter},
                                                           {"broadcast", CollectiveKind::broadcast},
                                                           {"reduce", CollectiveKind::reduce},
                                                           {"alltoall", CollectiveKind::all_to_all},
                                                           {"gather", CollectiveKind::gather},
                                                           {"scatter", CollectiveKind::scatter}};
  const std::string name = algo.word("coll");
  const auto found = kinds.find(name);
  if (found != kinds.end()) return found->second;
  algo.fail(fmt::format("expected a collective that weft knows, got \"{}\"", name.substr(0, 40)));
}

// What the types of steps do. MSCCL reduces into what it received, or with `re` into the destination.
struct StepType {
  const char* name;
  bool receives, reads, writes, adds, sends;
};
constexpr std::array kStepTypes{
    StepType{"s", false, true, false, false, true},    StepType{"r", true, false, true, false, false},
    StepType{"rcs", true, false, true, false, true},   StepType{"rrs", true, true, false, false, true},
    StepType{"rrc", true, true, true, false, false},   StepType{"rrcs", true, true, true, false, true},
    StepType{"cpy", false, true, true, false, false},  StepType{"re", false, true, false, true, false},
    StepType{"nop", false, false, false, false, false}};

class Reader {
 public:
  Reader(const Tree& tree, const std::string& file) : algo_(tree, file, "algo") { algorithm_.file = file; }

  UserAlgorithm read() {
    algorithm_.format = UserAlgorithm::Format::msccl;
    algorithm_.name = algo_.word("name");
    algorithm_.kind = kind_of(algo_);
    // One that says it works either way keeps input and output apart.
    algorithm_.in_place = algo_.integer_or("inplace", 0, 1, 0) == 1 && algo_.integer_or("outofplace", 0, 1, 0) == 0;
    ranks_ = algo_.integer("ngpus", 2, Limits::kRanks);
    const std::int64_t chunks = algo_.integer("nchunksperloop", 1, Limits::kChunks);
    const bool joins = algorithm_.kind == CollectiveKind::all_gather || algorithm_.kind == CollectiveKind::gather;
    if (joins && chunks % ranks_ != 0) {
      algo_.fail(fmt::format("expected nchunksperloop to be a multiple of {} gpus, got {}", ranks_, chunks));
    }
    algorithm_.input_chunks = static_cast<std::uint32_t>(joins ? chunks / ranks_ : chunks);
    algorithm_.ranks.resize(static_cast<std::size_t>(ranks_));
    std::vector<bool> seen(algorithm_.ranks.size());
    algo_.children("gpu", [&](const Tree& tree) {
      const auto id = static_cast<std::size_t>(algo_.child(tree, "gpu").integer("id", 0, ranks_ - 1));
      const Element gpu = algo_.child(tree, fmt::format("gpu {}", id));
      if (seen[id]) gpu.fail("expected each gpu once, got it again");
      seen[id] = true;
      read_gpu(gpu, static_cast<std::uint32_t>(id), algorithm_.ranks[id]);
    });
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end()) {
      algo_.fail(fmt::format("expected {} gpus, got none with id {}", ranks_, missing - seen.begin()));
    }
    return std::move(algorithm_);
  }

 private:
  void read_gpu(const Element& gpu, std::uint32_t rank, UserAlgorithm::Rank& out) {
    out.scratch_chunks = static_cast<std::uint32_t>(gpu.integer_or("s_chunks", 0, Limits::kChunks, 0));
    // Blocks may come in any order; steps name them by id.
    std::map<std::uint32_t, const Tree*> blocks;
    gpu_blocks(gpu, blocks);
    std::map<std::uint32_t, std::uint32_t> index_of;
    for (const auto& entry : blocks) index_of.emplace(entry.first, static_cast<std::uint32_t>(index_of.size()));
    for (const auto& [id, tree] : blocks) {
      const Element tb = gpu.child(*tree, fmt::format("tb {}", id));
      UserAlgorithm::Block block;
      block.id = id;
      block.channel = static_cast<std::uint32_t>(tb.integer("chan", 0, Limits::kBlocks - 1));
      const std::int64_t send = tb.integer("send", -1, ranks_ - 1);
      const std::int64_t receive = tb.integer("recv", -1, ranks_ - 1);
      tb.children("step", [&](const Tree& step) {
        const auto number = static_cast<std::int64_t>(block.steps.size());
        const Element here = tb.child(step, fmt::format("step {}", number));
        if (here.integer("s", 0, INT32_MAX) != number) here.fail("expected steps in order, got another number");
        block.steps.push_back(read_step(here, rank, send, receive, index_of));
      });
      out.blocks.push_back(std::move(block));
    }
  }

  static void gpu_blocks(const Element& gpu, std::map<std::uint32_t, const Tree*>& blocks) {
    gpu.children("tb", [&](const Tree& tree) {
      const auto id = static_cast<std::uint32_t>(gpu.child(tree, "tb").integer("id", 0, Limits::kBlocks - 1));
      if (!blocks.emplace(id, &tree).second) gpu.fail(fmt::format("expected each tb once, got tb {} again", id));
    });
  }

  UserAlgorithm::Step read_step(const Element& element, std::uint32_t rank, std::int64_t send, std::int64_t receive,
                                const std::map<std::uint32_t, std::uint32_t>& index_of) {
    const std::string name = element.word("type");
    const auto* const type =
        std::find_if(kStepTypes.begin(), kStepTypes.end(), [&](const StepType& t) { return name == t.name; });
    if (type == kStepTypes.end()) {
      element.fail(
          fmt::format("expected a type s, r, rcs, rrs, rrc, rrcs, cpy, re or nop, got \"{}\"", name.substr(0, 40)));
    }
    UserAlgorithm::Step step;
    ScheduleStep& what = step.what;
    const bool moves = type->receives || type->reads;
    step.count = moves ? static_cast<std::uint32_t>(element.integer("cnt", 1, Limits::kChunks)) : 0;
    if (type->receives) what.receive(peer(element, receive, "recv"));
    if (type->sends) what.send(peer(element, send, "send"));
    if (type->reads) {
      const auto [buffer, chunk] = place(element, rank, "srcbuf", "srcoff");
      what.read(buffer, chunk);
    }
    if (type->writes || type->adds) {
      const auto [buffer, chunk] = place(element, rank, "dstbuf", "dstoff");
      what.write(buffer, chunk);
      what.accumulates = type->adds;
    }
    const std::int64_t block = element.integer_or("depid", -1, Limits::kBlocks - 1, -1);
    if (block >= 0) {
      const auto found = index_of.find(static_cast<std::uint32_t>(block));
      if (found == index_of.end()) element.fail(fmt::format("expected depid to be a tb of this gpu, got {}", block));
      const std::int64_t after = element.integer("deps", 0, INT32_MAX);
      what.start_after({found->second, 0, static_cast<std::uint64_t>(after) + 1});
    }
    return step;
  }

  static std::uint32_t peer(const Element& step, std::int64_t rank, const char* which) {
    if (rank < 0) step.fail(fmt::format("expected a tb with a {} peer, got none", which));
    return static_cast<std::uint32_t>(rank);
  }

  // In place one buffer is part of the other: steps then use the larger one.
  [[nodiscard]] std::pair<ScheduleBuffer, std::int64_t> place(const Element& step, std::uint32_t rank,
                                                              const char* buffer, const char* offset) const {
    const std::string name = step.word(buffer);
    const std::int64_t chunk = step.integer(offset, 0, Limits::kChunks);
    if (name == "s") return {ScheduleBuffer::scratch, chunk};
    if (name != "i" && name != "o") {
      step.fail(fmt::format("expected {} i, o or s, got \"{}\"", buffer, name.substr(0, 40)));
    }
    const ScheduleBuffer written = name == "i" ? ScheduleBuffer::input : ScheduleBuffer::output;
    if (!algorithm_.in_place) return {written, chunk};
    if (algorithm_.kind == CollectiveKind::all_gather) {
      return {ScheduleBuffer::output, name == "i" ? rank * algorithm_.input_chunks + chunk : chunk};
    }
    if (algorithm_.kind == CollectiveKind::reduce_scatter) {
      return {ScheduleBuffer::input, name == "o" ? rank * (algorithm_.input_chunks / ranks_) + chunk : chunk};
    }
    return {ScheduleBuffer::output, chunk};
  }

  Element algo_;
  UserAlgorithm algorithm_;
  std::int64_t ranks_ = 0;
};

}  // namespace

UserAlgorithm read_msccl_algorithm(const std::string& text, const std::string& file) {
  const Tree document = parse(text, file);
  const auto algo = document.find("algo");
  if (algo == document.not_found()) throw InputError(file, "", "expected an element algo, got none");
  return Reader(algo->second, file).read();
}

}  // namespace weft
