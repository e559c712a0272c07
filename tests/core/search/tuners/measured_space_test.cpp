// A whole space of a small GPT-2 on two CPU ranks, measured once: what tuners need of it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "bench/replay.hpp"
#include "core/base/files/file.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/tuners/tuner_table.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::measured_space_test {
namespace {

class MeasuredSpace : public testing::Test {
 protected:
  MeasuredSpace() {
    const std::string path = test::test_data("measured_space.jsonl");
    for (Record& record : read_own_journal(read_text_file(path), path).records) {
      if (!record.experiment.measures_machine) table_.records.push_back(std::move(record));
    }
    if (table_.records.empty()) throw std::runtime_error(path + " holds no measurement");
    config_.settings = table_.records.front().experiment.settings;
    config_.autotuning.tuner_num_trials = static_cast<int>(table_.records.size());
    config_.autotuning.tuner_early_stopping = config_.autotuning.tuner_num_trials;
    config_.stop_at_chance = 0;
  }

  /// Measurements until the best so far is within 1 % of the best.
  std::size_t needed_by(const std::string& tuner, std::uint64_t seed) {
    config_.settings.seed = seed;
    TunerParts parts{config_, table_.records.front().experiment.ranks, {}, {}, {}};
    parts.make_forecaster = [this] {
      return std::make_unique<StepTimeForecaster>(
          StepTimePredictor(estimated_rates(config_.settings)));
    };
    const auto made = make_pool_tuner(tuner, parts, bench::pool_of(table_, seed));
    constexpr std::size_t kMost = 1;  // no longer than until it is close
    return bench::replay(table_, *made, {seed, 0, kMost, 0.01}).needed;
  }

  bench::Table table_;
  TuningConfig config_;
};

TEST_F(MeasuredSpace, IsOfMoreThanThreeHundredDistinctConfigurations) {
  EXPECT_GT(table_.records.size(), 300U);
  EXPECT_GT(table_.best(), 0);
}

TEST_F(MeasuredSpace, TakesGuidedLessThanAFifthOfRandom) {
  constexpr std::uint64_t kSeeds = 3;
  std::size_t random = 0;
  std::size_t guided = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    random += needed_by("random", seed);
    guided += needed_by("guided", seed);
  }

  EXPECT_GE(guided, kSeeds);  // none is 0, that is never
  EXPECT_LT(5 * guided, random);
}

}  // namespace
}  // namespace dstune::measured_space_test
