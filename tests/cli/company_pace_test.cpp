// Paces of operations beside each other: what is made of those that were seen, and how they go on by them.
#include "cli/sampled/company_pace.h"

#include <gtest/gtest.h>

#include "cli/sampled/paced_company.h"
#include "cli/sampled/regime_memory.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

CompanyPace seen(double rate, double kernel, double collective = 1, double seconds = 1) {
  return {.rate = rate, .seconds = seconds, .kernel = kernel, .collective = collective, .ledger = {}};
}

CompanyPaces all_of(std::initializer_list<CompanyPace> some) {
  CompanyPaces paces;
  for (const CompanyPace& one : some) learn(one, paces);
  return paces;
}

TEST(CompanyPaces, OfOneRateAreTheirMeanByTime) {
  const CompanyPaces paces = all_of({seen(100e9, 1.2, 1.0, 3), seen(101e9, 1.6, 1.4, 1)});
  ASSERT_EQ(paces.size(), 1U);
  EXPECT_NEAR(paces.front().kernel, 1.3, 1e-9);
  EXPECT_NEAR(paces.front().collective, 1.1, 1e-9);
  EXPECT_NEAR(paces.front().rate, 100.25e9, 1);
  EXPECT_EQ(paces.front().seconds, 4);
}

TEST(CompanyPaces, BetweenTwoRatesGoStraight) {
  const CompanyPaces paces = all_of({seen(200e9, 1.4), seen(100e9, 1.2)});  // in whatever order
  ASSERT_EQ(paces.size(), 2U);
  EXPECT_NEAR(pace_at(150e9, paces).value().kernel, 1.3, 1e-9);
  EXPECT_NEAR(pace_at(200e9, paces).value().kernel, 1.4, 1e-9);
}

TEST(CompanyPaces, FarFromWhatIsKnownHaveToBeSeen) {
  EXPECT_FALSE(pace_at(100e9, {}).has_value());
  const CompanyPaces paces = all_of({seen(100e9, 1.2), seen(300e9, 1.6)});
  EXPECT_NEAR(pace_at(95e9, paces).value().kernel, 1.2, 1e-9);
  EXPECT_NEAR(pace_at(105e9, paces).value().kernel, 1.2, 1e-9);
  EXPECT_NEAR(pace_at(320e9, paces).value().kernel, 1.6, 1e-9);
  for (const double rate : {80e9, 200e9, 400e9}) EXPECT_FALSE(pace_at(rate, paces).has_value()) << rate;
}

TEST(CompanyPaces, AreTheSameInAFile) {
  CompanyPaces paces = all_of({seen(100e9, 1.2, 1.1, 0.5), seen(300e9, 1.6)});
  paces.front().ledger.stall = 7;
  paces.front().ledger.displaced = true;
  const CompanyPaces read = company_paces_from_bytes(to_bytes(paces));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read.front().kernel, 1.2);
  EXPECT_EQ(read.front().collective, 1.1);
  EXPECT_EQ(read.front().seconds, 0.5);
  EXPECT_EQ(read.front().ledger.stall, 7);
  EXPECT_TRUE(read.front().ledger.displaced);
}

TEST(CompanyPaces, ThatNobodySawAreRefused) {
  const CompanyPace twice = seen(1e9, 1);
  for (const CompanyPaces& wrong : {CompanyPaces{seen(0, 1)}, CompanyPaces{seen(1e9, -1)},
                                    CompanyPaces{seen(1e9, 1, 0)}, CompanyPaces{twice, twice}}) {
    EXPECT_THROW(static_cast<void>(company_paces_from_bytes(to_bytes(wrong))), InternalError);
  }
  EXPECT_THROW(static_cast<void>(company_paces_from_bytes("no CBOR")), InternalError);
}

TEST(RegimeMemory, KeepsPacesOfAllThatLearned) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "regimes.sqlite";
  {
    RegimeMemory one(file);
    RegimeMemory other(file);  // at the same time
    EXPECT_FALSE(one.knows_paces());
    one.learn("a", seen(100e9, 1.2));
    EXPECT_TRUE(one.knows_paces());
    other.learn("a", seen(200e9, 1.4));
    other.learn("b", seen(1e9, 1));
  }
  RegimeMemory later(file);
  EXPECT_TRUE(later.knows_paces());
  EXPECT_EQ(later.paces("a").size(), 2U);
  EXPECT_EQ(later.paces("b").size(), 1U);
  EXPECT_TRUE(later.paces("c").empty());
  later.learn("a", seen(400e9, 1.8));
  EXPECT_EQ(later.paces("a").size(), 3U);
}

constexpr OpId kCollective{0};
constexpr OpId kFirst{1};
constexpr OpId kSecond{2};

// To the end of all: when each one ended.
std::map<std::uint32_t, double> ends_of(PacedCompany& company) {
  std::map<std::uint32_t, double> ends;
  while (const auto next = company.next_end()) {
    const auto ended = company.end_one(*next);
    if (!ended) break;
    ends[ended->op.value] = *next;
  }
  return ends;
}

TEST(PacedCompany, AloneTakesItsTime) {
  PacedCompany company([](OpId, OpId) -> const CompanyPace* { return nullptr; });
  company.begin(kFirst, false, 10, 5);
  EXPECT_FALSE(company.end_one(14).has_value());
  EXPECT_EQ(ends_of(company), (std::map<std::uint32_t, double>{{1, 15}}));
}

// A collective of 100 beside a kernel of 30 that it makes twice as long, and which makes it a quarter longer.
TEST(PacedCompany, GoesAtThePaceOfWhatRuns) {
  const CompanyPace pace = seen(1, 2, 1.25);
  PacedCompany company([&](OpId, OpId) { return &pace; });
  company.begin(kCollective, true, 100, 0);
  company.begin(kFirst, false, 30, 20);  // to 80, in which the collective does 48
  const auto first = company.end_one(*company.next_end());
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->op, kFirst);
  EXPECT_NEAR(first->together, 60, 1e-9);
  company.begin(kSecond, false, 50, 80);  // 32 of the collective are left: to 120, in which the kernel does 20
  EXPECT_NEAR(company.next_end().value(), 120, 1e-9);
  const auto ended = company.end_one(120);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->op, kCollective);
  EXPECT_NEAR(company.next_end().value(), 150, 1e-9);
  const auto last = company.end_one(150);
  ASSERT_TRUE(last.has_value());
  EXPECT_NEAR(last->together, 40, 1e-9);
}

TEST(PacedCompany, SaysWhatHeldAKernelUp) {
  CompanyPace pace = seen(1, 2);
  pace.ledger.stall = 3;
  PacedCompany company([&](OpId, OpId) { return &pace; });
  company.begin(kFirst, false, 10, 0);
  company.begin(kCollective, true, 5, 0);
  EXPECT_EQ(company.end_one(5)->op, kCollective);
  const auto ended = company.end_one(12.5);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->ledger.stall, 3);
}

}  // namespace
}  // namespace weft
