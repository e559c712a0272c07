// Who may be the best after a search, by repeated measurements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// An experiment that may be the best, and what its repetitions gave.
struct Contender {
  Record record;                                ///< of the search
  std::vector<double> speeds;                   ///< log-speeds of the repetitions
  int repetitions = 0;                          ///< those without numbers included
  std::optional<Measured> last = std::nullopt;  ///< repetition with numbers

  double mean() const;  ///< of speeds, not empty
};

/// The experiments of a search that noise may have put in the wrong order: the best and, best
/// first, those whose score is less than `window` below it (relative); the second best in any case;
/// at most `most`.
std::vector<Contender> choose_contenders(const std::vector<Record>& records, Metric metric,
                                         double window, std::size_t most);

/// It ran beside an experiment of another name.
bool overlaps_another(const Record& record, const std::vector<Record>& records);

/// `stage_bests` (measured), if one of them ran beside another of `records`, which disturbs both;
/// else none.
std::vector<Contender> choose_finalists(std::vector<Record> stage_bests,
                                        const std::vector<Record>& records);

/// Standard deviation of a repetition's log-speed: that of all contenders together, with 1 % as if
/// it had been seen twice.
double repetition_noise(const std::vector<Contender>& contenders);

/// Likewise, of what was seen alone: none unless a contender was repeated twice with numbers.
std::optional<double> measured_spread(const std::vector<Contender>& contenders);

/// Of the difference of both means; both have repetitions with numbers.
double standard_error(const Contender& a, const Contender& b, double noise);

/// That `a` is truly faster than `b`; both have repetitions with numbers.
double chance_of_being_faster(const Contender& a, const Contender& b, double noise);

}  // namespace dstune
