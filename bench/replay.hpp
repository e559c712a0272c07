// A tuner against a table of measurements, instead of a machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/luck.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/space/pool.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune::bench {

/// An exhaustive measurement: one record per configuration.
struct Table {
  std::vector<Record> records;
  Metric metric = Metric::throughput;

  double best() const;  ///< score of the best
};

/// The first measurement of each configuration of a journal.
Table table_of_journal(const std::string& path);

/// The table as a pool, in the order of a seed; 0: as it stands.
Pool pool_of(const Table& table, std::uint64_t seed);

struct ReplayOptions {
  std::uint64_t seed = 0;
  double noise = 0;      ///< standard deviation of the logarithm of every measurement told
  std::size_t most = 0;  ///< measurements; 0: until the tuner ends
  double close = 0.01;   ///< what counts as having come to the best
};

/// What a tuner told after each measurement would have lost against the best of the table.
struct Replay {
  std::vector<double> regrets;  ///< relative, by number of measurements
  std::size_t needed = 0;       ///< measurements until the best so far was close; 0: never
};

/// Tells the tuner what the table holds until it ends, or `most` have been told and the best so far
/// is close. The best so far is the one that the tuner was told to be best: with noise another than
/// the true one.
Replay replay(const Table& table, Tuner& tuner, const ReplayOptions& options);

/// How a search with its confirmation ended.
struct Ending {
  double regret = 0;         ///< of the announced optimum, relative
  double missed = 0;         ///< what the best untried one would gain over it, relative
  std::size_t searched = 0;  ///< measurements of the search
  std::size_t repeated = 0;  ///< repetitions of its confirmation
};

/// Runs the tuner to its own end; every measurement has noise of its own.
Ending run_to_its_end(const Table& table, Tuner& tuner, const Noise& noise, std::uint64_t seed);

}  // namespace dstune::bench
