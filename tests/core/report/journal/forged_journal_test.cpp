// Journals that somebody changed and sealed again: what cannot be true is not believed, and the run
// goes on.

#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/journal/journal_line.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/result_table.hpp"
#include "core/report/tables/summary.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_size.hpp"

namespace dstune::forged_journal_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::MemoryDirectory;

/// A value of a line, and where it stands: names of members, numbers of elements.
struct Leaf {
  std::vector<std::string> place;
  json::value value;
};

void collect(const json::value& value, const std::vector<std::string>& place,
             std::vector<Leaf>& leaves) {
  const auto inside = [&](const std::string& step, const json::value& inner) {
    auto deeper = place;
    deeper.push_back(step);
    collect(inner, deeper, leaves);
  };
  leaves.push_back({place, value});
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) inside(std::string(member.key()), member.value());
  } else if (const auto* array = value.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) inside(std::to_string(i), (*array)[i]);
  }
}

json::value& at(json::value& root, const std::vector<std::string>& place) {
  json::value* value = &root;
  for (const auto& step : place) {
    value = value->is_object() ? &value->get_object().at(step)
                               : &value->get_array().at(std::stoul(step));
  }
  return *value;
}

// What a program can only take as it stands: labels, reasons, the user's own section, and settings
// that a later experiment is compared with as a whole.
bool is_free(const std::vector<std::string>& place) {
  static const std::set<std::string> names = {
      "time",      "name",         "reason",    "host",       "network", "first_loss",
      "last_loss", "seed",         "ds_config", "overlapped", "own",     "origin",
      "crc32",     "failed_tries", "ranks",     "device_use"};
  for (const auto& step : place) {
    if (names.contains(step)) return true;
  }
  return place.empty();
}

json::value nested(int depth) {
  json::value value = 1;
  for (int i = 0; i < depth; ++i) {
    json::array outer;
    outer.push_back(std::move(value));
    value = std::move(outer);
  }
  return value;
}

class ForgedJournal : public testing::Test {
 protected:
  ForgedJournal() {
    {
      Journal journal(path_, Journal::Mode::create, make_identity());
      for (int i = 0; i < 6; ++i) {
        const Experiment experiment = make_experiment(i % 4, 1 << i);
        journal.started(experiment, {1, 2});
        Measured measured = make_measured(3.1 * (i + 1));
        CollectiveLine line;
        line.ranks = 2;
        line.elements = 124'439'808;
        line.bytes = 248'879'616;
        measured.ledger.add(line);
        measured.compute_times = {0.5, 0.6};
        measured.device_peaks = DevicePeaks{1e12, 1e11};
        journal.finished(make_record(experiment, measured));
      }
      const Experiment large = make_experiment(3, 512);
      journal.started(large, {1, 2});
      journal.finished(
          make_record(large, OutOfMemory{1, MemoryCategory::activations, 5000, 4000, 6000, 4500}));
    }
    for (const auto& line : split(read_text_file(path_), '\n')) {
      if (!line.empty()) lines_.push_back(line);
    }
  }

  std::size_t below(std::size_t end) { return random_() % end; }

  /// A line with one absurd value, sealed; also says what it is.
  std::string forged(const std::string& line, std::string& what) {
    json::value content = parse_json(line);
    content.get_object().erase("crc32");
    std::vector<Leaf> leaves;
    collect(content, {}, leaves);
    std::erase_if(leaves, [](const Leaf& leaf) { return is_free(leaf.place); });
    const Leaf& leaf = leaves.at(below(leaves.size()));
    const json::value absurd = absurd_instead_of(leaf.value);
    at(content, leaf.place) = absurd;
    what = concat(join(leaf.place, "."), " = ", json::serialize(absurd).substr(0, 40));
    return seal_line(content.get_object());
  }

  json::value absurd_instead_of(const json::value& value) {
    static const json::value numbers[] = {-1,  -1e308, 1e308, -9e18, 9'000'000'000'000'000'000,
                                          1e31};
    static const json::value others[] = {nested(3), nested(200), json::object{{"a", 1}}, "x"};
    if (value.is_number() && below(3) > 0) return numbers[below(std::size(numbers))];
    if (value.is_string() && below(2) > 0) return "no such name";
    const json::value& other = others[below(std::size(others))];
    return other.kind() == value.kind() ? json::value(true) : other;
  }

  void expect_disbelief(const std::string& text, std::size_t kept, const std::string& what) {
    write_file_atomically(path_, text, Durability::process_crash);
    try {
      const Journal journal(path_, Journal::Mode::resume, make_identity(), false, 0);
      EXPECT_EQ(journal.records().size(), kept) << what;
      EXPECT_NE(result_table(journal.records(), Metric::throughput, {}), "");
      EXPECT_NE(summary_text(journal.records(), Metric::throughput, nullptr, "", 1), "");
    } catch (const std::exception& fault) {
      ADD_FAILURE() << what << ": " << fault.what();
    }
    std::filesystem::remove(path_ + ".bak");
  }

  MemoryDirectory directory_;
  std::string path_ = directory_ / "journal.jsonl";
  std::vector<std::string> lines_;
  std::mt19937 random_{20'26};  // NOLINT(cert-msc51-cpp): the same forgeries every time
};

std::string whole(const std::vector<std::string>& lines) { return join(lines, "\n") + "\n"; }

TEST_F(ForgedJournal, OfNoneARecordIsBelievedOrEndsTheRun) {
  const int count = test::takes_all() ? 10'000 : 300;
  for (int trial = 0; trial < count; ++trial) {
    std::vector<std::string> lines = lines_;
    const std::size_t record = 2 + 2 * below(7);
    std::string what;
    lines[record] = forged(lines[record], what);
    expect_disbelief(whole(lines), 6, concat("trial ", trial, ": ", what));
  }
}

TEST_F(ForgedJournal, ASecondResultOfTheSameExperimentIsNot) {
  std::vector<std::string> lines = lines_;
  json::object again = parse_json(lines[2]).as_object();
  again.erase("crc32");
  again["outcome"].as_object()["samples_per_s"] = 1e6;
  lines.push_back(seal_line(again));

  expect_disbelief(whole(lines), 7, "a second result");
}

TEST_F(ForgedJournal, AnotherModelsResultIsNot) {
  std::vector<std::string> lines = lines_;
  json::object other = parse_json(lines[2]).as_object();
  other.erase("crc32");
  other["experiment"].as_object()["settings"].as_object()["model"].as_object()["num_layers"] = 1e9;
  lines[2] = seal_line(other);

  expect_disbelief(whole(lines), 6, "another model");
}

TEST_F(ForgedJournal, ASchemaThatNobodyWroteEndsNoRun) {
  std::vector<std::string> lines = lines_;
  json::object line = parse_json(lines[2]).as_object();
  line.erase("crc32");
  line["schema"] = 2'000'000'000;
  lines[2] = seal_line(line);

  expect_disbelief(whole(lines), 6, "a schema");
}

}  // namespace
}  // namespace dstune::forged_journal_test
