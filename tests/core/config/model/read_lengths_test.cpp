#include "core/config/model/read_lengths.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/dstune_section.hpp"
#include "core/config/model/length_file.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_lengths_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  TuningConfig config;
  Faults faults;
};

/// Of a "dstune" section with these keys, of a file in `folder`.
Read read(std::string_view keys, const std::filesystem::path& folder = ".") {
  Problems problems("config.json");
  Read result;
  result.config.source = (folder / "c.json").string();
  const bool has_model = keys.starts_with(R"("model")");
  const std::string section = concat(has_model ? "{" : R"({"model": "gpt2", )", keys, "}");
  read_dstune(json::parse(section), {}, result.config, problems);
  result.faults = faults_in(problems);
  return result;
}

RunSettings settings_of(std::string_view keys) {
  const Read result = read(keys);
  EXPECT_EQ(result.faults, Faults{}) << keys;
  return result.config.settings;
}

TEST(ReadLengths, OneLengthIsTheSequenceLength) {
  EXPECT_EQ(settings_of(R"("seed": 1)").sequence_length, 1024);
  EXPECT_EQ(settings_of(R"("sequence_length": 200)").sequence_length, 200);
  EXPECT_EQ(settings_of(R"("lengths": 200)").sequence_length, 200);
  EXPECT_FALSE(settings_of(R"("lengths": [200])").lengths.varies());
}

TEST(ReadLengths, AListIsTunedOver) {
  const Read result = read(R"("lengths": [512, 256, 512])");

  EXPECT_EQ(result.faults, Faults{});
  EXPECT_THAT(result.config.sequence_lengths, ElementsAre(512, 256));
  EXPECT_EQ(result.config.settings.sequence_length, 512);
  EXPECT_TRUE(read(R"("lengths": [512])").config.sequence_lengths.empty());
}

TEST(ReadLengths, ReadsDistributions) {
  const RunSettings lognormal = settings_of(
      R"("lengths": {"distribution": "lognormal", "mean": 300, "sigma": 0.8, "max": 1000,
                     "pad_to_multiple_of": 64})");
  EXPECT_EQ(lognormal.sequence_length, 1024);
  EXPECT_EQ(lognormal.lengths, (LengthSettings{.law = LengthLaw::lognormal,
                                               .mean = 300,
                                               .sigma = 0.8,
                                               .least = 2,
                                               .most = 1000,
                                               .pad_to_multiple_of = 64}));

  const RunSettings uniform =
      settings_of(R"("lengths": {"distribution": "uniform", "min": 8, "max": 90})");
  EXPECT_EQ(uniform.sequence_length, 90);
  EXPECT_EQ(uniform.lengths, (LengthSettings{.law = LengthLaw::uniform, .least = 8, .most = 90}));
}

TEST(ReadLengths, PackedRowsAreAsLongAsTheSequenceLength) {
  const RunSettings settings = settings_of(
      R"("attention": "flash", "sequence_length": 512,
         "lengths": {"distribution": "uniform", "max": 800, "batches": "packed"})");

  EXPECT_EQ(settings.sequence_length, 512);
  EXPECT_TRUE(settings.lengths.is_packed);
  EXPECT_EQ(settings.lengths.most, 512);
}

TEST(ReadLengths, ReadsHistogramsInEveryForm) {
  const std::vector<LengthCount> expected = {{5, 3}, {9, 1}};
  for (const char* text : {"length,count\n9,1\n5,3\n", "5\n9\n\n5\r\n5\n", R"({"9": 1, "5": 3})",
                           "[5, 9, 5, 5]", "[[5, 2], [9, 1], [5, 1]]"}) {
    const testing_support::TemporaryDirectory folder;
    testing_support::write_file(folder / "h", text);

    const Read result = read(R"("lengths": "h")", folder.path());

    EXPECT_EQ(result.faults, Faults{}) << text;
    EXPECT_EQ(result.config.settings.lengths.counts, expected) << text;
    EXPECT_EQ(result.config.settings.lengths.law, LengthLaw::histogram);
    EXPECT_EQ(result.config.settings.sequence_length, 9);
  }
}

TEST(ReadLengths, CutsAHistogramAsATrainerDoes) {
  const testing_support::TemporaryDirectory folder;
  testing_support::write_file(folder / "h.csv", "1,2\n30,3\n5000,4\n70,1\n");

  const Read result = read(R"("lengths": {"file": "h.csv", "max": 50})", folder.path());

  EXPECT_EQ(result.faults, Faults{});
  EXPECT_EQ(result.config.settings.lengths.counts,
            (std::vector<LengthCount>{{2, 2}, {30, 3}, {50, 5}}));
}

TEST(ReadLengths, GathersWhatIsTooManyUpwards) {
  std::vector<LengthCount> counts;
  for (std::int64_t length = 1; length <= 2 * static_cast<std::int64_t>(kMostLengths); ++length) {
    counts.push_back({length, 1});
  }

  const auto all = gathered(counts);

  EXPECT_EQ(all.size(), kMostLengths);
  EXPECT_EQ(all.front(), (LengthCount{2, 2}));
  EXPECT_EQ(all.back(), (LengthCount{2048, 2}));
}

TEST(ReadLengths, NamesEveryFault) {
  const auto fault = [](std::string_view keys) { return join(read(keys).faults, "\n"); };

  EXPECT_THAT(fault(R"("lengths": true)"), HasSubstr("/dstune/lengths  is true; accepted: a len"));
  EXPECT_THAT(fault(R"("lengths": [])"), HasSubstr("has 0 lengths; accepted: 1 to"));
  EXPECT_THAT(fault(R"("lengths": [64, 4096])"),
              HasSubstr("/dstune/lengths/1  is 4096; accepted: an integer from 2 to 1024"));
  EXPECT_THAT(fault(R"("lengths": {})"), HasSubstr("has neither \"file\" nor \"distribution\""));
  EXPECT_THAT(fault(R"("lengths": {"distribution": "lognormal", "mean": 9})"),
              HasSubstr("/dstune/lengths/sigma  is missing"));
  EXPECT_THAT(fault(R"("lengths": {"distribution": "normal", "max": 9})"),
              HasSubstr("is \"normal\"; accepted: \"lognormal\", \"uniform\""));
  EXPECT_THAT(fault(R"("lengths": {"distribution": "uniform", "max": 9, "sigma": 1})"),
              HasSubstr("belongs to a \"lognormal\" distribution"));
  EXPECT_THAT(fault(R"("lengths": {"distribution": "uniform", "max": 9, "min": 10})"),
              HasSubstr("/dstune/lengths/max  is 9; accepted: at least \"min\", 10"));
  EXPECT_THAT(fault(R"("lengths": {"distribution": "uniform", "max": 1000,
                                   "pad_to_multiple_of": 600})"),
              HasSubstr("makes rows of up to 1200 tokens; accepted: at most 1024"));
  EXPECT_THAT(fault(R"("lengths": 100, "sequence_length": 100)"), HasSubstr("are both given"));
  EXPECT_THAT(fault(R"("lengths": {"distribution": "uniform", "max": 9, "batches": "packed"})"),
              HasSubstr("/dstune/attention  is \"sdpa\""));
  EXPECT_THAT(fault(R"("attention": "flash", "lengths": {"distribution": "uniform", "max": 9})"),
              HasSubstr("/dstune/attention  is \"flash\""));
  EXPECT_THAT(fault(R"("model": "bert-base-uncased", "attention": "flash",
                       "lengths": {"distribution": "uniform", "max": 9, "batches": "packed"})"),
              HasSubstr("varies, which is not modelled for masked_lm with packed batches of"));
  EXPECT_EQ(fault(R"("model": "bert-base-uncased",
                     "lengths": {"distribution": "uniform", "max": 9})"),
            "");
}

TEST(ReadLengths, RefusesToVaryWhereThatIsNotModelled) {
  const auto fault = [](std::string_view model) {
    constexpr const char* kVaries = R"(, "lengths": {"distribution": "uniform", "max": 9})";
    return join(read(concat(R"("model": )", model, kVaries)).faults, "\n");
  };

  EXPECT_THAT(fault(R"("deberta-v3-base")"), HasSubstr("models of type \"deberta-v2\""));
  EXPECT_THAT(fault(R"("t5-small")"), HasSubstr("not modelled for seq2seq_lm"));
  EXPECT_THAT(fault(R"("llama-3.2-1b", "task": "sequence_classification")"),
              HasSubstr("not modelled for sequence_classification"));
  EXPECT_THAT(fault(R"({"model_type": "mixtral", "output_router_logits": true})"),
              HasSubstr("with \"output_router_logits\""));
  EXPECT_EQ(fault(R"("mixtral-8x7b")"), "");
  EXPECT_EQ(fault(R"("phi-3-mini-4k")"), "");
}

TEST(ReadLengths, NamesTheLineThatIsWrong) {
  const testing_support::TemporaryDirectory folder;
  testing_support::write_file(folder / "h.csv", "length,count\n5,1\n-3,2\n");

  EXPECT_THAT(join(read(R"("lengths": "h.csv")", folder.path()).faults, "\n"),
              HasSubstr("line 3  is \"-3,2\"; accepted: LENGTH or LENGTH,COUNT"));
  EXPECT_FALSE(read(R"("lengths": "none.csv")", folder.path()).faults.empty());
}

}  // namespace
}  // namespace dstune::read_lengths_test
