// A tuner that ends when its time budget is used up.
#pragma once

#include <memory>

#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// Asks the tuner inside as long as another experiment of the median duration so far would end
/// within the budget; the first is always run. The time is that of the journal, in which a run and
/// its resumptions count as one, so a resumed run ends where it would have ended.
class TimeBudget final : public Tuner {
 public:
  /// @param budget  the seconds since the start of the run
  /// @param share   the share of the budget that may be used up here
  TimeBudget(std::unique_ptr<Tuner> tuner, Seconds budget, double share = 1);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override { return tuner_->best(); }
  std::vector<std::string> contenders() override { return tuner_->contenders(); }
  std::vector<PredictedStep> predictions() override { return tuner_->predictions(); }
  std::optional<int> still_to_come() override {
    return has_cut_ ? std::optional(0) : tuner_->still_to_come();
  }
  std::optional<Seconds> foretold(const std::string& name) override {
    return tuner_->foretold(name);
  }
  /// The remarks of the tuner inside, with one that the budget ended the search if it did.
  std::vector<std::string> remarks() override;

 private:
  bool is_over() const;

  std::unique_ptr<Tuner> tuner_;
  Seconds budget_;
  double share_;
  Seconds spent_ = 0;
  std::vector<Seconds> durations_;  ///< the durations of experiments
  bool has_cut_ = false;            ///< the budget ended the search before its end
};

}  // namespace dstune
