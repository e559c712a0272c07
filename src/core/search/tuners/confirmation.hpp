// Repeats the optimum against experiments that may be better, before it is announced.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/search/tuners/contenders.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// How a confirmation chooses and decides.
enum class ConfirmBy {
  duels,  ///< the best experiments of the search are repeated until they are told apart
  /// The best of every stage is repeated once if something ran beside one of them; the repetitions
  /// decide.
  stages,
};

/// When the tuner inside has finished, its contenders (Tuner::contenders(), or else its best
/// experiments) are run again, one at a time and alone:
/// each once, because the first numbers of the best are flattered by having been chosen, or
/// disturbed by experiments that ran beside them. Only repetitions decide.
///
/// By stages there are no more repetitions: the first of them wins than which no later one is
/// clearly better.
///
/// By duels all contenders are repeated in turn, at least twice each. After some rounds those leave
/// that are told apart from the fastest, by a bound of 5 % that all looks at all pairs share
/// (contenders.hpp), and no others are called slower. It ends when one is left, after six rounds,
/// or when more rounds would hardly tell the others apart and a wrong choice costs next to nothing.
/// Two are not repeated against each other once their noise is less than half of what the
/// host-overhead profile leaves open between them (profile_spread()), because no repetition tells
/// what a profile does not.
///
/// Of those that are not told apart from the leader and are at most 0.5 % slower, the simplest is
/// the optimum (compare/tie_rule.hpp), so that repeated runs agree. The others are its ties.
class Confirmation : public Tuner {
 public:
  Confirmation(std::unique_ptr<Tuner> tuner, Metric metric, ConfirmBy by = ConfirmBy::duels);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override;
  std::vector<PredictedStep> predictions() override { return tuner_->predictions(); }
  /// The repetitions up to the next look count, and before there are any, those up to the first.
  std::optional<int> still_to_come() override;
  std::optional<Seconds> foretold(const std::string& name) override;
  /// The remarks of the tuner inside; by duels also how the optimum was confirmed, its ties, and
  /// the repetitions that were far from the first measurement.
  std::vector<std::string> remarks() override;

  /// By duels: the names of all that may be as fast as best(); empty before there is a choice.
  std::vector<std::string> ties() const;

 private:
  std::vector<Contender> chosen_contenders();
  /// The repetitions until the contenders are compared next.
  int until_next_look() const;
  std::optional<Candidate> repetition();
  std::optional<Candidate> repetition_of_duels();
  /// The indices of the contenders that are repeated until they are beaten or fail.
  std::vector<std::size_t> left_in_race() const;
  void mark_beaten();
  bool goes_on(const std::vector<std::size_t>& left) const;
  /// The index of the fastest contender among those with measured repetitions that are not beaten;
  /// none if there are none.
  std::optional<std::size_t> leader() const;
  /// The index of the chosen contender.
  std::optional<std::size_t> winner() const;
  std::optional<std::size_t> winner_of_duels() const;
  std::optional<std::size_t> winner_of_stages() const;
  /// Whether a contender was repeated and not told apart from the fastest.
  bool is_tie(std::size_t index) const;
  /// Whether the noise of the two contenders' repetitions is small beside what the host-overhead
  /// profile leaves open.
  bool is_settled(std::size_t index, std::size_t leader, double noise) const;
  /// Whether what was measured once, and not repeated, may be as fast as the winner.
  bool may_be_as_fast(const Record& record, const Contender& winner, const Spread& noise,
                      double chance) const;
  Candidate again(std::size_t index);
  double log_speed_of(const Record& record) const;
  void compare_with_first(const Contender& contender, const Record& repetition);

  std::unique_ptr<Tuner> tuner_;
  Metric metric_;
  ConfirmBy by_;
  std::vector<Record> found_;          ///< the records of the tuner inside
  std::vector<Contender> contenders_;  ///< chosen once the tuner inside has finished
  /// By the name of a repetition: the index of its contender.
  std::map<std::string, std::size_t> asked_;
  std::vector<std::string> far_;  ///< repetitions far from the first measurement, and by how much
};

}  // namespace dstune
