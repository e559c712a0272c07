#include "core/search/space/dominance.hpp"

#include <algorithm>
#include <array>

namespace dstune {
namespace {

using Needs = std::array<double, 9>;

template <class Lines, class Value>
double sum(const Lines& lines, Value value) {
  double total = 0;
  for (const auto& line : lines) total += static_cast<double>(value(line));
  return total;
}

Needs needs_of(const Measured& dry) {
  const Ledger& ledger = dry.ledger;
  const auto calls = [](const auto& line) { return line.calls; };
  return {static_cast<double>(dry.peak_memory.counted()),
          sum(ledger.collectives(), calls),
          sum(ledger.collectives(), [](const CollectiveLine& line) { return line.wire_bytes; }),
          sum(ledger.collectives(),
              [](const CollectiveLine& line) {
                return line.stream == Stream::compute ? line.wire_bytes : 0;
              }),
          sum(ledger.passes(), calls),
          sum(ledger.passes(), [](const PassLine& line) { return line.read + line.written; }),
          sum(ledger.syncs(), calls),
          sum(ledger.transfers(), calls),
          sum(ledger.host(), calls)};
}

}  // namespace

bool is_dominated(const Measured& a, const Measured& b) {
  const Needs more = needs_of(a);
  const Needs less = needs_of(b);
  return more != less && std::equal(more.begin(), more.end(), less.begin(),
                                    [](double x, double y) { return x >= y; });
}

}  // namespace dstune
