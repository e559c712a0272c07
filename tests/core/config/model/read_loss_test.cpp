#include "core/config/model/read_loss.hpp"

#include <string>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/dstune_section.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::read_loss_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  LossSettings loss;
  Faults faults;
};

/// Of a "dstune" section with these keys.
Read read(std::string_view keys) {
  Problems problems("config.json");
  TuningConfig config;
  config.source = "c.json";
  const std::string section = concat(R"({"model": "gpt2", )", keys, "}");
  read_dstune(json::parse(section), {}, config, problems);
  return {config.settings.loss, faults_in(problems)};
}

LossSettings loss_of(std::string_view keys) {
  const Read result = read(keys);
  EXPECT_EQ(result.faults, Faults{});
  return result.loss;
}

constexpr LossSettings kPlain{LossKind::plain, false};
constexpr LossSettings kKept{LossKind::plain, true};
constexpr LossSettings kChunked{LossKind::chunked, false};
constexpr LossSettings kTiled{LossKind::tiled, false};
constexpr LossSettings kFused{LossKind::fused, false};

TEST(ReadLoss, IsThatOfTransformersByDefault) { EXPECT_EQ(loss_of(R"("seed": 1)"), kPlain); }

TEST(ReadLoss, ReadsEveryKind) {
  EXPECT_EQ(loss_of(R"("loss": "plain")"), kPlain);
  EXPECT_EQ(loss_of(R"("loss": "chunked")"), kChunked);
  EXPECT_EQ(loss_of(R"("loss": "tiled")"), kTiled);
  EXPECT_EQ(loss_of(R"("loss": "fused")"), kFused);
  EXPECT_EQ(loss_of(R"("keep_logits": true)"), kKept);
}

TEST(ReadLoss, ATrainerNamesWhatItDoesByItself) {
  EXPECT_EQ(loss_of(R"("trainer": "transformers")"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "custom")"), kKept);
  EXPECT_EQ(loss_of(R"("trainer": "trl")"), kTiled);
}

TEST(ReadLoss, TheVersionDecides) {
  EXPECT_EQ(loss_of(R"("trainer": "transformers==4.49.0")"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "transformers == 5.1")"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "trl==0.29.1")"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "trl==1.6.2")"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "trl==1.7")"), kChunked);
  EXPECT_EQ(loss_of(R"("trainer": "trl==1.14.2")"), kChunked);
  EXPECT_EQ(loss_of(R"("trainer": "trl==1.15.0")"), kTiled);
}

TEST(ReadLoss, OwnKeysWinOverTheTrainer) {
  EXPECT_EQ(loss_of(R"("trainer": "trl", "loss": "plain")"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "custom", "loss": "fused")"), kFused);
  EXPECT_EQ(loss_of(R"("trainer": "custom", "keep_logits": false)"), kPlain);
  EXPECT_EQ(loss_of(R"("trainer": "transformers", "keep_logits": true)"), kKept);
}

TEST(ReadLoss, NamesEveryFault) {
  EXPECT_EQ(read(R"("loss": "chunk", "trainer": "tlr", "keep_logits": 1)").faults.size(), 3U);
  EXPECT_EQ(
      read(R"("loss": "fused", "keep_logits": true)").faults,
      Faults{"/dstune/keep_logits  is true, but a loss that is \"fused\" has no logits to keep; "
             "accepted: false, or true with \"loss\": \"plain\""});
  EXPECT_EQ(
      read(R"("trainer": "transformers==4.48.3")").faults,
      Faults{"/dstune/trainer  is \"transformers==4.48.3\"; accepted: transformers from 4.49 on; "
             "before that it copied the shifted logits, which is not modelled"});
  const std::string accepted =
      "; accepted: \"transformers\", \"trl\", each alone or with a version such as "
      "\"trl==1.7.0\", or \"custom\"";
  for (const char* trainer : {"trl==new", "trl==", "trl==1.x", "custom==1"}) {
    EXPECT_EQ(read(concat(R"("trainer": ")", trainer, "\"")).faults,
              Faults{concat("/dstune/trainer  is \"", trainer, "\"", accepted)});
  }
}

TEST(ReadLoss, OtherTasksHaveTheUsualOneOnly) {
  const auto faults_of = [](const LossSettings& loss, Task task) {
    Problems problems("config.json");
    check_loss(loss, task, problems);
    return faults_in(problems);
  };

  EXPECT_EQ(faults_of(kPlain, Task::masked_lm), Faults{});
  EXPECT_EQ(faults_of(kFused, Task::causal_lm), Faults{});
  EXPECT_EQ(faults_of(kFused, Task::masked_lm),
            Faults{"/dstune/loss  is \"fused\", which only causal language models have, not "
                   "masked_lm; accepted: \"plain\" without kept logits"});
  EXPECT_EQ(faults_of(kKept, Task::sequence_classification).size(), 1U);
}

}  // namespace
}  // namespace dstune::read_loss_test
