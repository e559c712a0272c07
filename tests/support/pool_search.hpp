// A pool, a machine and a predictor that are tables, and a search through them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/search/predict/forecaster.hpp"
#include "core/search/space/pool.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune::testing_support {

/// A candidate, what it truly takes and what is predicted.
struct Row {
  std::string name;
  int stage = 0;
  Seconds step_time = 1;           ///< 0: it is out of memory
  Bytes memory = 100;              ///< by dry run
  Prediction prediction = {1, 1};  ///< before anything was learnt
};

/// Of micro-batch 1, in their order.
Pool make_pool(const std::vector<Row>& rows);

/// Answers with the rows' predictions, times the median ratio of what it learnt to what it
/// predicted; without learning if `learns` is false.
class TableForecaster final : public Forecaster {
 public:
  explicit TableForecaster(const std::vector<Row>& rows, bool learns = false);

  Prediction predict(const Experiment& experiment) override;
  /// The rows' predictions, whose errors are the steps' own.
  void expect(std::vector<Experiment> experiments) override { expected_ = std::move(experiments); }
  std::vector<PhysicsGuess> physics() override;
  void learn(const Experiment& experiment, const Measured& measured) override;

 private:
  std::vector<Experiment> expected_;
  std::map<std::string, Prediction> table_;
  bool learns_;
  std::vector<double> ratios_;
};

/// Numbers of the candidate `name` that took `step_time` (0: out of memory), as record number
/// `trial` of a run in which everything takes a second.
Record make_record(const Candidate& candidate, Seconds step_time, int trial,
                   double noise_percent = 0.1);

/// One search: batches of names until the tuner is finished or `most` experiments were run.
struct PoolSearch {
  std::vector<std::vector<std::string>> batches;
  std::vector<Record> records;

  /// All names, in the order they were asked for.
  std::vector<std::string> names() const;
};
using StepTimeOf = std::function<Seconds(const Candidate& candidate)>;
PoolSearch search(Tuner& tuner, const StepTimeOf& step_time, int groups = 1,
                  std::size_t most = 10000);
PoolSearch search(Tuner& tuner, const std::vector<Row>& rows, int groups = 1,
                  std::size_t most = 10000);

}  // namespace dstune::testing_support
