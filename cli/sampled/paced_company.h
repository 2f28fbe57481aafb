// Operations that run beside each other, each at its pace: as long as by itself, times what its company makes of it.
// When one begins or ends, the others' paces change.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cli/sampled/company_pace.h"
#include "sim/program.h"

namespace weft {

class PacedCompany {
 public:
  // Of a kernel beside a collective; null: nothing is known.
  using Known = std::function<const CompanyPace*(OpId kernel, OpId collective)>;
  explicit PacedCompany(Known known) : known_(std::move(known)) {}

  // `alone`: what it takes by itself; in whatever unit, as all times here.
  void begin(OpId op, bool collective, double alone, double now);
  // When the next one ends, if none begins before.
  [[nodiscard]] std::optional<double> next_end() const;

  struct Ended {
    OpId op;
    KernelLedger ledger;  // of the company it was in last; of a collective, or without company: empty
    double together = 0;  // for so long
  };
  // Those that have ended by then, one after the other.
  [[nodiscard]] std::optional<Ended> end_one(double now);

 private:
  struct Running {
    OpId op;
    bool collective = false;
    double left = 0;  // of its time by itself, at `since`
    double since = 0;
    double pace = 1;
    double together = 0;
    bool has_company = false;
    const CompanyPace* beside = nullptr;  // that it was in last
    [[nodiscard]] double end() const { return since + left * pace; }
  };
  void come_to(double now);
  void set_paces();

  Known known_;
  std::vector<Running> running_;
};

}  // namespace weft
