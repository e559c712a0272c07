// A results directory for the length of one test.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/report/files/results_directory.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::testing_support {

class ResultsDirectoryTest : public testing::Test {
 protected:
  ResultsDirectory prepare(ExistingResults existing) const {
    return ResultsDirectory::prepare(results_, exps_, existing);
  }

  // A finished run: journal, a folder, an experiment's file.
  void make_results() const {
    const auto directory = prepare(ExistingResults::refuse);
    Journal journal(directory.journal_path(), Journal::Mode::create, make_identity());
    const Record record = make_record(make_experiment(2, 4), make_measured(10));
    journal.finished(record);
    directory.write_record(record);
  }

  json::value read_json(const std::string& name) const {
    return parse_json(read_text_file(results_ + "/" + name));
  }

  void put(const std::string& name) const {
    ensure_directory(results_);
    write_file_atomically(results_ + "/" + name, "{}");
  }

  TemporaryDirectory directory_;
  std::string results_ = directory_ / "results";
  std::string exps_ = directory_ / "exps";
};

}  // namespace dstune::testing_support
