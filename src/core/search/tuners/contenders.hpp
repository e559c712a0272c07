// The experiments that may be the best after a search, and how repeated measurements tell them
// apart.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// An experiment that may be the best, and the results of its repetitions.
struct Contender {
  Record record = {};                ///< its record in the search
  std::vector<double> speeds = {};   ///< the log-speeds of the repetitions with numbers
  std::optional<double> first = {};  ///< that of the record, if it ran alone, as they do
  int repetitions = 0;               ///< how many there were, including those without numbers
  bool is_beaten = false;            ///< told apart from a faster one
  std::optional<Measured> last = std::nullopt;  ///< the last repetition with numbers

  double mean() const;  ///< the mean of `speeds`, which must not be empty
  bool has_failed() const { return static_cast<std::size_t>(repetitions) > speeds.size(); }
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

/// The standard deviation of a log-speed from run to run, by the run's own evidence, pooled over
/// all contenders: how their repetitions scatter, and how much more or less than the others each
/// has lost since its first measurement. What all have in common is the flattery of having been
/// chosen, or a drift, and what goes beyond three times the scatter of the repetitions a
/// measurement that was disturbed. It is at least what the steps within the repetitions say, which
/// any two runs differ by.
Spread run_to_run(const std::vector<Contender>& contenders);

/// The standard deviation of the repetitions alone; none unless some were repeated twice.
std::optional<double> measured_spread(const std::vector<Contender>& contenders);

/// The standard error of the difference of both means; both must have repetitions with numbers.
double standard_error(const Contender& a, const Contender& b, double noise);

/// The chances of an error that is allowed for: one look at one pair of contenders.
///
/// The looks at `count` contenders take place after 2, 3, 4 and 6 repetitions of each. All looks at
/// all pairs together may call two that are alike different in 5 % of the runs: each gets the same
/// part of it (Bonferroni's inequality, which holds however much the looks have in common; as an
/// alpha spending function, Lan and DeMets, Biometrika 70 (1983), this spends equal parts).
double chance_of_a_look(std::size_t count);
bool is_look(int repetitions);
inline constexpr int kMostRepetitions = 6;

/// What is at most this much slower may be chosen for being simpler.
inline constexpr double kSimplerFor = 0.005;

/// Whether the faster `a` is told apart from `b` by a t-test with `noise`, at most with this
/// `chance` if they are alike.
bool is_told_apart(const Contender& a, const Contender& b, const Spread& noise, double chance);

/// What is lost in the mean by taking the faster `a`, as `b` may truly be faster: relative, for
/// normal errors.
double expected_loss(const Contender& a, const Contender& b, double noise);

/// A difference of less does not matter.
inline constexpr double kMatters = 0.01;

/// Whether repetitions up to kMostRepetitions may still tell `b` from the faster `a`, and it
/// matters: the difference may be kMatters, and one standard error more of it would be enough at
/// the end.
/// @param left  the contenders that go on
bool may_be_told_apart(const Contender& a, const Contender& b, const Spread& noise, double chance,
                       int left);

}  // namespace dstune
