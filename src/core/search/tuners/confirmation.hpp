// The optimum is repeated against those that may be better before it is announced.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/search/tuners/contenders.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// How a confirmation chooses and decides.
enum class ConfirmBy {
  duels,   ///< the best of the search are repeated until they are told apart
  stages,  ///< the best of every stage once, where something ran beside one of them: they decide
};

/// When the tuner inside has finished, its best experiments are run again, one at a time and alone:
/// each once, as the first numbers of the best are flattered by having been chosen, or disturbed by
/// what ran beside them. Only repetitions decide.
///
/// By stages that is all: the first whose repetition no later one is clearly better than wins.
///
/// By duels the leader and whoever is most likely to be faster follow in turn, until nobody has a
/// real chance (5 %) or each of the two has been repeated five times. Once their noise is half of
/// what the host-overhead profile leaves open of two (profile_spread()) or less, these are not
/// repeated for each other's sake: no repetition tells what a profile does not.
///
/// Of those that are not told apart from the leader and at most 1 % slower the simplest is the
/// optimum (simplicity.hpp): so that runs repeated agree. The others are its ties.
class Confirmation : public Tuner {
 public:
  Confirmation(std::unique_ptr<Tuner> tuner, Metric metric, ConfirmBy by = ConfirmBy::duels);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override;
  /// By duels: with how the optimum was confirmed, its ties, and which repetitions were far from
  /// the first.
  std::vector<std::string> remarks() override;

 private:
  /// The indices of two contenders that are measured against each other.
  struct Duel {
    std::size_t leader = 0;
    std::size_t rival = 0;
    double chance = 0;  ///< that the rival is faster
  };

  std::optional<Candidate> repetition();
  /// Who leads, and who threatens most; none with fewer than two that have numbers.
  std::optional<Duel> duel() const;
  /// Who has been repeated with numbers and leads; none: nobody.
  std::optional<std::size_t> leader() const;
  /// The chosen one's index among the contenders.
  std::optional<std::size_t> winner() const;
  std::optional<std::size_t> winner_of_duels() const;
  std::optional<std::size_t> winner_of_stages() const;
  bool is_tie(std::size_t index, std::size_t leader) const;
  /// Their repetitions' noise is small beside what the host-overhead profile leaves open.
  bool is_settled(std::size_t index, std::size_t leader) const;
  Candidate again(std::size_t index);
  double log_speed_of(const Record& record) const;
  void compare_with_first(const Contender& contender, const Record& repetition);
  std::string ties_of(std::size_t winner) const;

  std::unique_ptr<Tuner> tuner_;
  Metric metric_;
  ConfirmBy by_;
  std::vector<Record> found_;                 ///< by the tuner inside
  std::vector<Contender> contenders_;         ///< once it has finished
  std::map<std::string, std::size_t> asked_;  ///< repetitions by name: of whom
  std::vector<std::string> far_;              ///< repetitions that were, with by how much
};

}  // namespace dstune
