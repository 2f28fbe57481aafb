#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/sweep/slurm.h"

namespace weft {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(SweepShards, AreAsManyAsFillTheirTime) {
  EXPECT_EQ(shard_count(480, 1, 1, 60), 10U);  // of an hour each, four fifths of it planned for
  EXPECT_EQ(shard_count(481, 1, 1, 60), 11U);
  EXPECT_EQ(shard_count(480, 1, 4, 60), 3U);
  EXPECT_EQ(shard_count(3, 1000, 1, 60), 3U);  // not more than runs
  EXPECT_EQ(shard_count(0, 1, 1, 60), 1U);
  EXPECT_EQ(shard_count(1000000, 60, 1, 60), 1000U);  // not more than an array may have
}

TEST(SweepShards, AreSubmittedByOneScript) {
  SlurmOptions options;
  options.cpus = 4;
  options.shard_minutes = 90;
  options.arguments = {"-j", "4"};
  const std::string script = batch_script(options, "/opt/weft", "/shared/it's", 7);
  EXPECT_THAT(script, StartsWith("#!/bin/sh\n#SBATCH "));
  EXPECT_THAT(script, HasSubstr("#SBATCH --time=90\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --cpus-per-task=4\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --requeue\n"));
  EXPECT_THAT(script, Not(HasSubstr("--partition")));
  EXPECT_THAT(script,
              EndsWith("exec '/opt/weft' sweep '/shared/it'\\''s' --shard \"$SLURM_ARRAY_TASK_ID/7\" '-j' '4'\n"));
  options.partition = "gpu";
  options.account = "me";
  EXPECT_THAT(batch_script(options, "w", "d", 1), HasSubstr("#SBATCH --partition=gpu\n#SBATCH --account=me\n"));
}

}  // namespace
}  // namespace weft
