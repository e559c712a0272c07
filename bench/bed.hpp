// A table of measurements on which tuners are tried, and what each truth makes of its times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/replay.hpp"
#include "bench/truths.hpp"
#include "core/config/tuning_config.hpp"

namespace dstune::bench {

struct Bed {
  Table table;              ///< what needs no more memory than the limit
  std::vector<Case> cases;  ///< in the order of the table
  TuningConfig config;      ///< the limit on memory is one that 85 % of the source kept
  int ranks = 1;
  bool is_physics_the_truth = false;  ///< the table is physics itself, so that rates are made wrong
};

/// Reads a journal, or measures examples/gpt2-30m on the simulated machine.
/// @param source  its path, or "sim:RANKS"
Bed make_bed(const std::string& source);

/// A truth by name, and the bed's table with its times.
struct TableOfTruth {
  std::string_view name;
  std::function<Table(std::uint64_t seed)> table;
};

/// Those whose names contain `only`. The bed must outlive them.
std::vector<TableOfTruth> tables_of_truths(const Bed& bed, std::string_view only);

}  // namespace dstune::bench
