#include "core/model/labels.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/model/config_keys.hpp"

namespace dstune {

namespace {

constexpr std::int64_t kUsualLabels = 2;
constexpr const char* kUsualProblem = "single_label_classification";

}  // namespace

// The usual labels leave the text as it is.
std::string with_labels(const std::string& own, const json::object& config) {
  std::int64_t labels = kUsualLabels;
  std::string problem = kUsualProblem;
  take_value(config, "num_labels", labels);
  take_value(config, "problem_type", problem);
  const auto* names = config.if_contains("id2label");
  if (names != nullptr && names->is_object()) {
    labels = static_cast<std::int64_t>(names->get_object().size());
  }
  if (labels == kUsualLabels && problem == kUsualProblem) return own;
  json::object object = json::parse(own).as_object();
  if (labels != kUsualLabels) object["num_labels"] = labels;
  if (problem != kUsualProblem) object["problem_type"] = problem;
  return json::serialize(object);
}

std::int64_t label_count(const ModelSpec& spec) {
  std::int64_t labels = kUsualLabels;
  take_value(json::parse(spec.own).as_object(), "num_labels", labels);
  return labels;
}

std::int64_t head_rows(const ModelSpec& spec) {
  return spec.task == Task::sequence_classification ? label_count(spec) : spec.vocab_size;
}

std::string fault_of_labels(const ModelSpec& spec) {
  std::string problem = kUsualProblem;
  take_value(json::parse(spec.own).as_object(), "problem_type", problem);
  if (problem != kUsualProblem) {
    return concat("the model's problem_type is ", problem, ", modelled is ", kUsualProblem);
  }
  if (const std::int64_t labels = label_count(spec); labels < 2) {
    return concat("the model has num_labels ", labels, ", which is a regression; modelled are 2 ",
                  "or more");
  }
  return {};
}

}  // namespace dstune
