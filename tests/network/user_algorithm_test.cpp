// Algorithms from files: what is right computes at any size, what is wrong is refused with its place.
#include "network/user_algorithm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/schedule_check.h"
#include "sim/error.h"
#include "tests/traces/temporary_file.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

std::shared_ptr<const UserAlgorithm> load(const std::string& text) {
  const testing::TemporaryFolder folder;
  return std::make_shared<const UserAlgorithm>(load_user_algorithm(folder.write("algorithm", text), 2, 4));
}

std::string error_of(const std::string& text) {
  try {
    (void)load(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

ScheduleTotals run(const std::shared_ptr<const UserAlgorithm>& algorithm, std::int64_t bytes) {
  const ScheduleRequest request{.kind = algorithm->kind,
                                .bytes = bytes,
                                .ranks = static_cast<std::uint32_t>(algorithm->ranks.size()),
                                .root = algorithm->root,
                                .piece_bytes = 512};
  return check_schedule(*make_user_schedule(algorithm, request), request, 4);
}

// Two ranks: each sends its half to the other, adds, and sends the sum back.
const char* const kPair = R"({
  "name": "pair", "collective": "all_reduce", "chunks": 2,
  "ranks": [
    { "blocks": [ { "steps": [
      { "read": {"input": 1}, "send": [1] },
      { "receive": [1], "read": {"input": 0}, "write": {"output": 0}, "send": [1] },
      { "receive": [1], "write": {"output": 1} } ] } ] },
    { "blocks": [ { "steps": [
      { "read": {"input": 0}, "send": [0] },
      { "receive": [0], "read": {"input": 1}, "write": {"output": 1}, "send": [0] },
      { "receive": [0], "write": {"output": 0} } ] } ] } ] })";

TEST(UserAlgorithm, JsonScalesToAnySizeOfWholeChunks) {
  const auto pair = load(kPair);
  EXPECT_EQ(pair->name, "pair");
  for (const std::int64_t bytes : {8, 16, 2048, 2056, 100'000}) {
    EXPECT_THAT(run(pair, bytes).sent_bytes, Each(bytes)) << bytes;
  }
}

TEST(UserAlgorithm, SizesThatChunksDoNotDivideAreRefused) {
  const auto pair = load(kPair);
  EXPECT_THROW((void)run(pair, 4), InputError);
  EXPECT_THROW((void)run(pair, 12), InputError);
}

TEST(UserAlgorithm, IsOnlyForItsOwnCollectiveAndGroup) {
  const auto pair = load(kPair);
  EXPECT_THROW((void)make_user_schedule(pair, {.kind = CollectiveKind::reduce, .bytes = 8, .ranks = 2}), InputError);
  EXPECT_THROW((void)make_user_schedule(pair, {.bytes = 8, .ranks = 3}), InputError);
}

TEST(UserAlgorithm, MissingContributionIsNamed) {
  const std::string text =
      replaced(kPair, R"("receive": [1], "read": {"input": 0}, "write")", R"("receive": [1], "write")");
  EXPECT_THAT(error_of(text),
              AllOf(HasSubstr("/ranks/0/blocks/0/steps/1: element 0 of the output"),
                    HasSubstr("expected the sum of element 0 of all ranks, got rank 1's element alone")));
}

TEST(UserAlgorithm, DoubledContributionIsNamed) {
  const std::string text = replaced(kPair, R"({ "receive": [1], "write": {"output": 1} })",
                                    R"({ "receive": [1], "read": {"input": 1}, "write": {"output": 1} })");
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("steps/2"), HasSubstr("got rank 0's contribution twice")));
}

TEST(UserAlgorithm, MissingStepLeavesAPieceOver) {
  const std::string text = replaced(kPair, R"(,
      { "receive": [1], "write": {"output": 1} })",
                                    "");
  EXPECT_THAT(error_of(text), HasSubstr("rank 0: expected to receive all that rank 1 sends on channel 0"));
}

TEST(UserAlgorithm, DeadlockNamesWhoWaitsForWhom) {
  std::string text = replaced(kPair, R"({ "read": {"input": 1}, "send": [1] },)", "");
  text = replaced(text, R"({ "read": {"input": 0}, "send": [0] },)", "");
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("/ranks/0/blocks/0/steps/0 waits for a piece of rank 1"),
                                    HasSubstr("In a circle: rank 0 waits for rank 1 waits for rank 0")));
}

TEST(UserAlgorithm, UnknownRanksKeysAndStepsAreRefused) {
  EXPECT_THAT(error_of(replaced(kPair, R"("send": [1])", R"("send": [2])")),
              HasSubstr("/ranks/0/blocks/0/steps/0/send: expected ranks below 2, got 2"));
  EXPECT_THAT(error_of(replaced(kPair, R"("send": [1])", R"("send": [0])")),
              HasSubstr("/ranks/0/blocks/0/steps/0: expected another rank below 2, got 0"));
  EXPECT_THAT(error_of(replaced(kPair, R"("send")", R"("sends")")), HasSubstr("/ranks/0/blocks/0/steps/0"));
  EXPECT_THAT(error_of(replaced(kPair, R"("send": [1])", R"("send": [1], "after": [{"block": 0, "step": 9}])")),
              HasSubstr("expected to wait for a step that exists, got block 0, step 9"));
  EXPECT_THAT(error_of(replaced(kPair, R"({"input": 1})", R"({"input": 2})")),
              HasSubstr("/ranks/0/blocks/0/steps/0: expected a range of whole elements in the input"));
  EXPECT_THAT(error_of(replaced(kPair, R"({"input": 1})", R"({"output": 1})")),
              HasSubstr("expected to read what was written"));
}

// One block sends on what another one receives, with and without waiting for it.
TEST(UserAlgorithm, ForgottenDependencyIsFound) {
  const std::string text = R"({
    "name": "chain", "collective": "broadcast", "chunks": 1,
    "ranks": [
      { "blocks": [ { "channel": 0, "steps": [ { "read": {"input": 0}, "write": {"output": 0}, "send": [1] } ] } ] },
      { "blocks": [ { "channel": 0, "steps": [ { "receive": [0], "write": {"output": 0} } ] },
                    { "channel": 0, "steps": [ { "read": {"output": 0}, "send": [2],
                                                 "after": [{"block": 0, "step": 0}] } ] } ] },
      { "blocks": [ { "channel": 0, "steps": [ { "receive": [1], "write": {"output": 0} } ] } ] } ] })";
  EXPECT_EQ(run(load(text), 4096).longest_chain, 2U);
  EXPECT_THAT(error_of(replaced(text, R"(,
                                                 "after": [{"block": 0, "step": 0}])",
                                "")),
              HasSubstr("/ranks/1/blocks/1/steps/0: expected to read what was written"));
}

std::string msccl_step(int s, const char* type, const char* source, int from, const char* destination, int to,
                       int depid = -1, int deps = -1) {
  return fmt::format(
      R"(<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="1" depid="{}" deps="{}" hasdep="0"/>)",
      s, type, source, from, destination, to, depid, deps);
}

// A ring all-reduce in place, one chunk a GPU.
std::string msccl_ring(int gpus, const char* destination = "i") {
  std::string text = fmt::format(
      R"(<algo name="ring" nchunksperloop="{0}" nchannels="1" proto="Simple" ngpus="{0}" coll="allreduce" inplace="1">)",
      gpus);
  for (int g = 0; g < gpus; ++g) {
    text +=
        fmt::format(R"(<gpu id="{}" i_chunks="{}" o_chunks="0" s_chunks="0"><tb id="0" send="{}" recv="{}" chan="0">)",
                    g, gpus, (g + 1) % gpus, (g + gpus - 1) % gpus);
    for (int s = 0; s < 2 * gpus - 1; ++s) {
      const int chunk = (g + 2 * gpus - 1 - s) % gpus;
      const char* const type = s == 0             ? "s"
                               : s < gpus - 1     ? "rrs"
                               : s == gpus - 1    ? "rrcs"
                               : s < 2 * gpus - 2 ? "rcs"
                                                  : "r";
      text += msccl_step(s, type, "i", chunk, destination, chunk);
    }
    text += "</tb></gpu>";
  }
  return text + "</algo>";
}

TEST(UserAlgorithm, MscclRingSendsWhatARingSends) {
  for (const int gpus : {2, 3, 8}) {
    const auto ring = load(msccl_ring(gpus));
    EXPECT_TRUE(ring->in_place);
    EXPECT_THAT(run(ring, 4000 * gpus).sent_bytes, Each(2 * (gpus - 1) * 4000)) << gpus;
  }
}

// Two GPUs, a block for each direction and a third that adds what came into scratch.
std::string msccl_scratch() {
  std::string text =
      R"(<?xml version="1.0"?><!-- halves by scratch --><algo name="scratch" nchunksperloop="2" nchannels="1"
         proto="Simple" ngpus="2" coll="reducescatter" inplace="0">)";
  for (int g = 0; g < 2; ++g) {
    text += fmt::format(R"(<gpu id="{}" i_chunks="2" o_chunks="1" s_chunks="1">)", g);
    text += fmt::format(R"(<tb id="4" send="{0}" recv="{0}" chan="0">)", 1 - g);
    text += msccl_step(0, "s", "i", 1 - g, "s", 0) + msccl_step(1, "r", "i", 0, "s", 0) + "</tb>";
    text += R"(<tb id="7" send="-1" recv="-1" chan="0">)" + msccl_step(0, "cpy", "i", g, "o", 0) +
            msccl_step(1, "nop", "i", -1, "o", -1, 4, 1) + msccl_step(2, "re", "s", 0, "o", 0) + "</tb></gpu>";
  }
  return text + "</algo>";
}

TEST(UserAlgorithm, MscclThatWorksEitherWayKeepsItsBuffersApart) {
  const auto ring = load(replaced(msccl_ring(3, "o"), R"(inplace="1")", R"(inplace="1" outofplace="1")"));
  EXPECT_FALSE(ring->in_place);
  EXPECT_THAT(run(ring, 12'000).sent_bytes, Each(2 * 2 * 4000));
}

TEST(UserAlgorithm, MscclBlocksWaitForEachOther) {
  EXPECT_THAT(run(load(msccl_scratch()), 8000).sent_bytes, Each(4000));
  EXPECT_THAT(error_of(replaced(msccl_scratch(), R"(depid="4" deps="1")", R"(depid="-1" deps="-1")")),
              HasSubstr("gpu 0, tb 7, step 2: expected to read what was written"));
}

TEST(UserAlgorithm, MscclErrorsNameGpuBlockAndStep) {
  const std::string text = msccl_scratch();
  EXPECT_THAT(error_of(replaced(text, R"(depid="4")", R"(depid="5")")),
              HasSubstr("algo, gpu 0, tb 7, step 1: expected depid to be a tb of this gpu, got 5"));
  EXPECT_THAT(error_of(replaced(text, R"(type="cpy")", R"(type="copy")")),
              HasSubstr("algo, gpu 0, tb 7, step 0: expected a type s, r"));
  EXPECT_THAT(error_of(replaced(text, R"(send="1")", R"(send="2")")),
              HasSubstr("algo, gpu 0, tb 4: expected send from -1 to 1, got \"2\""));
  EXPECT_THAT(error_of(replaced(text, R"(<gpu id="1")", R"(<gpu id="0")")), HasSubstr("expected each gpu once"));
  EXPECT_THAT(error_of(replaced(text, R"(s="1" type)", R"(s="3" type)")), HasSubstr("expected steps in order"));
  EXPECT_THAT(error_of(replaced(text, "</gpu>", "")), HasSubstr("expected XML"));
  EXPECT_THAT(error_of("<algo/>"), HasSubstr("algo: expected an attribute name, got none"));
}

TEST(UserAlgorithm, FilesThatAskForTooMuchAreRefused) {
  std::string deep = "<algo>";
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_THAT(error_of(deep), HasSubstr("expected at most 16 levels"));
  EXPECT_THAT(error_of(replaced(kPair, R"("chunks": 2)", R"("chunks": 1000000)")), HasSubstr("/chunks: expected"));
  EXPECT_THAT(error_of(replaced(kPair, R"({ "blocks")", R"({ "scratch_chunks": 99999999, "blocks")")),
              HasSubstr("/ranks/0/scratch_chunks: expected"));
}

// Four chunks a step: one block sends, one receives, or the connection would have to hold them all.
const char* const kFourChunks = R"({
  "name": "swap", "collective": "all_gather", "chunks": 4,
  "ranks": [
    { "blocks": [ { "channel": 0, "steps": [ { "count": 4, "read": {"input": 0}, "write": {"output": 0}, "send": [1] } ] },
                  { "channel": 0, "steps": [ { "count": 4, "receive": [1], "write": {"output": 4} } ] } ] },
    { "blocks": [ { "channel": 0, "steps": [ { "count": 4, "read": {"input": 0}, "write": {"output": 4}, "send": [0] } ] },
                  { "channel": 0, "steps": [ { "count": 4, "receive": [0], "write": {"output": 0} } ] } ] } ] })";

TEST(UserAlgorithm, SmallChunksOfOneStepGoTogether) {
  const auto swap = load(kFourChunks);
  EXPECT_THAT(run(swap, 128).sent_pieces, Each(1U));
  EXPECT_THAT(run(swap, 1024).sent_pieces, Each(2U));  // two slices
  EXPECT_THAT(run(swap, 4 * 1024).sent_pieces, Each(8U));
  EXPECT_THAT(run(swap, 4 * 1028).sent_bytes, Each(4 * 1028));
}

// One block that sends and then receives: right as long as its connections hold what it sends first.
TEST(UserAlgorithm, WhatIsRightForSmallMessagesOnlyIsRefusedForLongOnes) {
  const auto swap = load(R"({
    "name": "swap", "collective": "all_gather", "chunks": 4,
    "ranks": [
      { "blocks": [ { "steps": [ { "count": 4, "read": {"input": 0}, "write": {"output": 0}, "send": [1] },
                                 { "count": 4, "receive": [1], "write": {"output": 4} } ] } ] },
      { "blocks": [ { "steps": [ { "count": 4, "read": {"input": 0}, "write": {"output": 4}, "send": [0] },
                                 { "count": 4, "receive": [0], "write": {"output": 0} } ] } ] } ] })");
  EXPECT_THAT(run(swap, 1024).sent_bytes, Each(1024));
  EXPECT_THAT(::weft::testing::input_error([&] { (void)run(swap, 1040); }),
              AllOf(HasSubstr("got 1040 B: for larger ones a deadlock"), HasSubstr("waits for a free slot of rank 1")));
}

TEST(UserAlgorithm, CountsThatDifferOnBothEndsAreFound) {
  const std::string text = replaced(kFourChunks, R"({ "count": 4, "receive": [1], "write": {"output": 4} })",
                                    R"({ "count": 2, "receive": [1], "write": {"output": 4} },
                                       { "count": 2, "receive": [1], "write": {"output": 6} })");
  EXPECT_THAT(error_of(text), HasSubstr("/ranks/0/blocks/1/steps/0: expected 384 B from rank 1, got 768 B"));
}

}  // namespace
}  // namespace weft
