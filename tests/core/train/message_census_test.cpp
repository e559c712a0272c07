#include "core/train/message_census.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny_experiment.hpp"

namespace dstune::message_census_test {
namespace {

using test::TinyExperiment;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::IsEmpty;
using testing::Not;

TEST(MessagesOf, AreThoseOfTheWholeGroupInTheModelsType) {
  const auto messages = messages_of(TinyExperiment{.stage = 2, .ranks = 4}.make());

  EXPECT_THAT(messages, Not(IsEmpty()));
  EXPECT_THAT(messages, Each(AllOf(Field(&GroupMessage::ranks, 4), Field(&GroupMessage::spacing, 1),
                                   Field(&GroupMessage::dtype, DType::fp32))));
}

TEST(MessagesOf, HaveTheTypeOfCommunication) {
  const auto messages = messages_of(TinyExperiment{
      .stage = 3, .ranks = 2, .dtype = DType::bf16, .root = {{"communication_data_type", "fp32"}}}
                                        .make());

  EXPECT_THAT(messages, Contains(GroupMessage{CollectiveKind::reduce_scatter, DType::fp32, 2, 1}));
  EXPECT_THAT(messages, Contains(GroupMessage{CollectiveKind::all_gather, DType::bf16, 2, 1}));
}

// hpZ's secondary shards are among neighbours.
TEST(MessagesOf, GoThroughPartsOfTheGroup) {
  const auto messages = messages_of(
      TinyExperiment{.stage = 3, .ranks = 8, .zero = {{"zero_hpz_partition_size", 2}}}.make());

  EXPECT_THAT(messages, Contains(GroupMessage{CollectiveKind::all_gather, DType::fp32, 2, 1}));
  EXPECT_THAT(messages, Contains(GroupMessage{CollectiveKind::all_gather, DType::fp32, 8, 1}));
}

// MiCS's copies are neighbours, its replicas as far from each other as a copy is large.
TEST(MessagesOf, KnowHowFarRanksAreFromEachOther) {
  const auto messages =
      messages_of(TinyExperiment{.stage = 3, .ranks = 8, .zero = {{"mics_shard_size", 2}}}.make());

  EXPECT_THAT(messages, Contains(GroupMessage{CollectiveKind::all_gather, DType::fp32, 2, 1}));
  EXPECT_THAT(messages, Contains(GroupMessage{CollectiveKind::all_reduce, DType::fp32, 4, 2}));
}

TEST(MessagesOf, AreNoneOfAStepThatIsNotModelled) {
  EXPECT_THAT(
      messages_of(
          TinyExperiment{.stage = 3, .ranks = 2, .zero = {{"cpu_offload_param", true}}}.make()),
      IsEmpty());
}

}  // namespace
}  // namespace dstune::message_census_test
