// What of a kernel's ledger is remembered, in the order in which it stands in the file.
#pragma once

namespace weft {

template <class Ledger, class Visit>
void visit_ledger(Ledger& l, Visit&& visit) {
  visit(l.latency, l.held_by_port, l.held_by_cache, l.held_by_hbm, l.stall, l.held_by_pipe, l.held_by_links,
        l.displaced);
}

}  // namespace weft
