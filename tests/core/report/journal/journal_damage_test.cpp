// Whatever happens to a journal's bytes: nothing wrong is believed, nothing else is lost.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_size.hpp"

namespace dstune::journal_damage_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::MemoryDirectory;

constexpr std::size_t kHole = 4096;

Measured make_full_measured(double samples_per_s) {
  Measured measured = make_measured(samples_per_s);
  for (int i = 0; i < 8; ++i) {
    CollectiveLine line;
    line.purpose = static_cast<Purpose>(i % static_cast<int>(kPurposes));
    line.ranks = 2 + i;
    line.elements = 124'439'808;
    line.bytes = 248'879'616;
    measured.ledger.add(line);
    measured.ledger.add_pass(static_cast<MemoryPass>(i), 497'759'232, 248'879'616);
  }
  return measured;
}

class JournalDamageTest : public testing::Test {
 protected:
  JournalDamageTest() {
    for (int run = 0; run < 2; ++run) {
      Journal journal(path_, run == 0 ? Journal::Mode::create : Journal::Mode::resume,
                      make_identity());
      for (int i = 0; i < 8; ++i) {
        const Experiment experiment = make_experiment(i % 4, 1 << i, 1 + run);
        journal.started(experiment, {1, 2});
        journal.finished(make_record(experiment, make_full_measured(3.1 * (i + 1))));
      }
    }
    whole_ = read_text_file(path_);
    for (const auto& line : split(whole_, '\n')) lines_.insert(line);
  }

  std::size_t below(std::size_t end) { return random_() % end; }

  // Resumes `trials` journals, or a quarter of them, each damaged anew by `damage`.
  void expect_survival(const char* what, int trials, std::size_t most_lost,
                       const std::function<void(std::string&)>& damage) {
    Counts counts;
    if (!test::takes_all()) trials /= 4;
    for (int trial = 0; trial < trials; ++trial) {
      std::string text = whole_;
      damage(text);
      const std::size_t kept = resume(text, counts);
      EXPECT_LE(kRecords - kept, most_lost) << what << ", trial " << trial;
      counts.lost += kRecords - kept;
    }
    std::printf(
        "%d %s: %d noticed, %d believed, %d refused as a whole, %.2f of %zu records lost on "
        "average\n",
        trials, what, counts.noticed, counts.believed, counts.refused,
        static_cast<double>(counts.lost) / trials, kRecords);
    EXPECT_EQ(counts.noticed, trials) << what;
    EXPECT_EQ(counts.believed, 0) << what;
    EXPECT_EQ(counts.refused, 0) << what;
  }

 private:
  static constexpr std::size_t kRecords = 16;

  struct Counts {
    int noticed = 0;
    int believed = 0;
    int refused = 0;
    std::size_t lost = 0;
  };

  // @returns how many records a run that resumes `text` has
  std::size_t resume(const std::string& text, Counts& counts) {
    write_file_atomically(path_, text, Durability::process_crash);
    std::size_t records = 0;
    try {
      records = Journal(path_, Journal::Mode::resume, make_identity(), false, 0).records().size();
    } catch (const std::exception& fault) {
      ADD_FAILURE() << fault.what();
      ++counts.refused;
    }
    std::size_t kept = 0;
    auto lines = split(read_text_file(path_), '\n');
    lines.resize(lines.size() - 2);  // the line of the run that resumed
    for (const auto& line : lines) {
      if (lines_.count(line) == 0) ++counts.believed;
      if (line.find(R"("type":"finished")") != std::string::npos) ++kept;
    }
    counts.noticed += lines.size() + 1 < lines_.size() || text == whole_ ? 1 : 0;
    EXPECT_EQ(kept, records);
    expect_copy(text, lines);
    return records;
  }

  // What is not in the journal any more is in its copy, unless a crash tore it.
  void expect_copy(const std::string& text, const std::vector<std::string>& lines) {
    std::string whole;
    for (const auto& line : lines) whole += line + "\n";
    const bool has_copy = std::filesystem::exists(path_ + ".bak");
    EXPECT_TRUE(has_copy || text.starts_with(whole));
    EXPECT_EQ(has_copy ? read_text_file(path_ + ".bak") : text, text);
    std::filesystem::remove(path_ + ".bak");
  }

 protected:
  MemoryDirectory directory_;
  std::string path_ = directory_ / "journal.jsonl";
  std::string whole_;
  std::set<std::string> lines_;  // of the undamaged file, and ""
  std::mt19937 random_{20'26};   // NOLINT(cert-msc51-cpp): the same damage every time
};

TEST_F(JournalDamageTest, FlippedBitsAreNoticed) {
  // Two records at most: the line break between them.
  expect_survival("flipped bits", 400, 2, [this](std::string& text) {
    const std::size_t bit = below(8 * text.size());
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  });
}

TEST_F(JournalDamageTest, ChangedDigitsAreNoticed) {
  expect_survival("changed digits", 400, 1, [this](std::string& text) {
    const std::size_t at = text.find_first_of("0123456789", below(text.size() - 100));
    text[at] = static_cast<char>('0' + (text[at] - '0' + 1 + static_cast<int>(below(9))) % 10);
  });
}

TEST_F(JournalDamageTest, TruncationsCostWhatIsCutOff) {
  expect_survival("truncations", 300, 16,
                  [this](std::string& text) { text.resize(below(text.size())); });
}

TEST_F(JournalDamageTest, ZeroedTailsCostWhatIsZero) {
  expect_survival("zeroed tails", 60, 16, [this](std::string& text) {
    const std::size_t begin = below(text.size());
    text.replace(begin, std::string::npos, text.size() - begin, '\0');
  });
}

TEST_F(JournalDamageTest, HolesCostTheirLines) {
  int trial = 0;
  expect_survival("holes of 4 KiB", 30, 3, [&](std::string& text) {
    const std::size_t page = below(text.size() / kHole) * kHole;
    if (trial++ % 2 == 0) {
      text.replace(page, kHole, kHole, '\0');
    } else {
      text.erase(page, kHole);
    }
  });
}

TEST_F(JournalDamageTest, TheJournalIsAsLongAsARealOne) { EXPECT_GT(whole_.size(), 60'000U); }

}  // namespace
}  // namespace dstune::journal_damage_test
