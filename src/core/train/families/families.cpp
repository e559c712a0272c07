#include "core/train/families/families.hpp"

#include <stdexcept>

#include "core/base/text.hpp"
#include "core/model/adapted_parameters.hpp"

namespace dstune {

const Family* find_family(std::string_view model_type) {
  for (const Family& family : families()) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

const Family& family_of(const ModelSpec& spec) {
  const Family* family = find_family(spec.family);
  if (family == nullptr) throw std::invalid_argument(concat("no family of models: ", spec.family));
  return *family;
}

std::shared_ptr<const ModelParameters> LastModel::parameters_of(const ModelSpec& spec) {
  if (!parameters_ || spec != spec_) {
    parameters_ = std::make_shared<const ModelParameters>(make_model_parameters(spec));
    spec_ = spec;
  }
  return parameters_;
}

ModelParameters make_model_parameters(const ModelSpec& spec) {
  return fine_tuned(family_of(spec).parameters(spec), spec);
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  return family_of(spec).training_flops(spec, tokens, sequence_length);
}

}  // namespace dstune
