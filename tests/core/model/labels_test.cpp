#include "core/model/labels.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::labels_test {
namespace {

ModelSpec spec_with(const char* config) {
  ModelSpec spec;
  spec.own = with_labels(R"({"a":1})", json::parse(config).as_object());
  return spec;
}

TEST(Labels, AreTwoAndUnsaidUnlessTheFileSaysMore) {
  EXPECT_EQ(label_count(ModelSpec{}), 2);
  EXPECT_EQ(spec_with(R"({"id2label": {"0": "no", "1": "yes"}})").own, R"({"a":1})");
  EXPECT_EQ(label_count(spec_with(R"({"num_labels": 5})")), 5);
  EXPECT_EQ(label_count(spec_with(R"({"id2label": {"0": "x", "1": "y", "2": "z"}})")), 3);
}

TEST(Labels, AreTheRowsOfAClassifiersHead) {
  ModelSpec spec = spec_with(R"({"num_labels": 5})");

  EXPECT_EQ(head_rows(spec), spec.vocab_size);
  spec.task = Task::sequence_classification;
  EXPECT_EQ(head_rows(spec), 5);
}

TEST(Labels, OfARegressionOrSeveralAtOnceAreAFault) {
  EXPECT_EQ(fault_of_labels(ModelSpec{}), "");
  EXPECT_EQ(fault_of_labels(spec_with(R"({"problem_type": "single_label_classification"})")), "");
  EXPECT_NE(fault_of_labels(spec_with(R"({"num_labels": 1})")), "");
  EXPECT_NE(fault_of_labels(spec_with(R"({"problem_type": "regression"})")), "");
}

}  // namespace
}  // namespace dstune::labels_test
