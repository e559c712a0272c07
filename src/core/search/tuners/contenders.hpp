// The experiments that may be the best after a search, and how repeated measurements tell them
// apart.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// An experiment that may be the best, and the results of its repetitions.
struct Contender {
  Record record;               ///< its record in the search
  std::vector<double> speeds;  ///< the log-speeds of the repetitions
  int repetitions = 0;         ///< how many there were, including those without numbers
  std::optional<Measured> last = std::nullopt;  ///< the last repetition with numbers

  double mean() const;  ///< the mean of `speeds`, which must not be empty
};

/// The experiments of a search that noise may have put in the wrong order: the best and, best
/// first, those whose score is less than `window` below it (relative); the second best in any case;
/// at most `most`. A score that was measured while the machine was slower counts as if it had not
/// been (Record::slowed): too many contenders cost repetitions, too few the optimum.
std::vector<Contender> choose_contenders(const std::vector<Record>& records, Metric metric,
                                         double window, std::size_t most);

/// True if `record` ran beside an experiment of another name.
bool overlaps_another(const Record& record, const std::vector<Record>& records);

/// The contenders of `stage_bests` (all measured) if one of them ran beside another of `records`,
/// which disturbs both; else none.
std::vector<Contender> choose_finalists(std::vector<Record> stage_bests,
                                        const std::vector<Record>& records);

/// The standard deviation of a repetition's log-speed, estimated from all contenders together, with
/// a prior of 1 % that has the weight of two degrees of freedom.
double repetition_noise(const std::vector<Contender>& contenders);

/// The same without the prior; none unless a contender was repeated at least twice with numbers.
std::optional<double> measured_spread(const std::vector<Contender>& contenders);

/// The standard error of the difference of both means; both must have repetitions with numbers.
double standard_error(const Contender& a, const Contender& b, double noise);

/// The chance that `a` is truly faster than `b`; both must have repetitions with numbers.
double chance_of_being_faster(const Contender& a, const Contender& b, double noise);

}  // namespace dstune
