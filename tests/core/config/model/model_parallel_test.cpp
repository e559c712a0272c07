#include "core/config/model/model_parallel.hpp"

#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::model_parallel_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

ModelSpec part_of(const ModelSpec& model, int mp_size) {
  Problems problems("config.json");
  const auto part = part_of_one_rank(model, mp_size, problems);
  EXPECT_TRUE(faults_in(problems).empty());
  return part;
}

TEST(PartOfOneRank, IsTheModelWithoutModelParallelism) {
  EXPECT_EQ(part_of(ModelSpec{}, 1), ModelSpec{});
}

TEST(PartOfOneRank, HasItsShareOfTheParameters) {
  const ModelSpec whole;  // gpt2
  const auto parameters = static_cast<double>(make_model_parameters(whole).total());

  for (const int mp_size : {2, 3, 4, 6, 12}) {
    const ModelSpec part = part_of(whole, mp_size);
    const auto own = static_cast<double>(make_model_parameters(part).total());

    // Positions and the last norm are whole on every rank: 788,736 parameters.
    EXPECT_GE(own, parameters / mp_size);
    EXPECT_LE(own, parameters / mp_size + 788'736 + 768);
    EXPECT_EQ(part.hidden_size, whole.hidden_size);
  }
}

TEST(PartOfOneRank, IsTheLargestPartWhereTheyDiffer) {
  const ModelSpec part = part_of(ModelSpec{}, 5);

  EXPECT_EQ(part.num_layers, 3);       // of 12
  EXPECT_EQ(part.vocab_size, 10'052);  // of 50257
  EXPECT_EQ(part.name, "gpt2/5");
}

TEST(PartOfOneRank, NeedsALayerPerRank) {
  Problems problems("config.json");

  part_of_one_rank(ModelSpec{}, 16, problems);

  EXPECT_EQ(faults_in(problems),
            Faults{"/autotuning/mp_size  is 16; accepted: at most 12, the layers of dstune.model"});
}

TEST(NoteOfModelParallelism, SaysWhatIsNotModelled) {
  EXPECT_EQ(note_of_model_parallelism(1, 100, 100), "");
  const auto note = note_of_model_parallelism(2, 100, 52);

  EXPECT_NE(note.find("mp_size 2: a rank holds 52 of 100 parameters"), std::string::npos) << note;
  EXPECT_NE(note.find("are not modelled"), std::string::npos) << note;
}

}  // namespace
}  // namespace dstune::model_parallel_test
