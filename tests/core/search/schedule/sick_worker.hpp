// A journal and a scheduler for workers that fail.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/search/schedule/scheduler.hpp"
#include "tests/support/scripted_pool.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::testing_support {

inline std::vector<Experiment> make_batch(int count, int ranks) {
  std::vector<Experiment> batch;
  for (int i = 0; i < count; ++i) batch.push_back(make_named("x" + std::to_string(i), ranks));
  return batch;
}

inline Outcome measured(const Experiment&) { return Measured{}; }

inline int count_measured(const std::vector<Record>& records) {
  return static_cast<int>(std::count_if(records.begin(), records.end(), [](const Record& record) {
    return std::holds_alternative<Measured>(record.outcome);
  }));
}

/// How often `rank` was given something.
inline int count_starts(const ScriptedPool& pool, int rank) {
  return static_cast<int>(
      std::count_if(pool.starts().begin(), pool.starts().end(), [&](const auto& start) {
        return std::find(start.ranks.begin(), start.ranks.end(), rank) != start.ranks.end();
      }));
}

inline FailureKind kind_of(const Record& record) { return std::get<Failed>(record.outcome).kind; }

class SickWorkerTest : public testing::Test {
 protected:
  void reopen() {
    journal_.reset();
    journal_ = open(Journal::Mode::resume);
  }

  std::vector<Record> run(ScriptedPool& pool, const std::vector<Experiment>& batch) {
    return Scheduler(pool, *journal_, {}, {}).run(batch);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Journal> journal_ = open(Journal::Mode::create);

 private:
  std::unique_ptr<Journal> open(Journal::Mode mode) const {
    return std::make_unique<Journal>(directory_ / "journal.jsonl", mode,
                                     RunIdentity{{}, "cpu", "simulated"});
  }
};

}  // namespace dstune::testing_support
