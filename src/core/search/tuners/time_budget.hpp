// A tuner that ends when its time is over.
#pragma once

#include <memory>

#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// Asks the tuner inside as long as another experiment like those before (their median time) would
/// end within the budget; the first is always run. The time is that of the journal, in which the
/// runs that were resumed count as one: so a resumed run ends where it would have ended.
class TimeBudget final : public Tuner {
 public:
  /// @param budget  seconds since the start of the run
  /// @param share   of it that may be used up here
  TimeBudget(std::unique_ptr<Tuner> tuner, Seconds budget, double share = 1);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override { return tuner_->best(); }
  /// With what the budget left undone.
  std::vector<std::string> remarks() override;

 private:
  bool is_over() const;

  std::unique_ptr<Tuner> tuner_;
  Seconds budget_;
  double share_;
  Seconds spent_ = 0;
  std::vector<Seconds> durations_;  ///< of experiments
  bool has_cut_ = false;            ///< something was left undone
};

}  // namespace dstune
