#include "core/model/model_parameters.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

std::int64_t ParameterSpec::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t ModelParameters::total() const {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.numel();
  return sum;
}

std::int64_t ModelParameters::trainable_total() const {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.trainable ? tensor.numel() : 0;
  return sum;
}

std::size_t ModelParameters::end_of(std::size_t module) const {
  std::size_t end = module + 1;
  while (end < modules.size() && modules[end].parent >= module) ++end;
  return end;
}

std::vector<std::size_t> ModelParameters::tensors_within(std::size_t module) const {
  std::set<std::size_t> all;
  for (std::size_t inner = module; inner < end_of(module); ++inner) {
    all.insert(modules[inner].parameters.begin(), modules[inner].parameters.end());
  }
  return {all.begin(), all.end()};
}

namespace {

constexpr std::string_view kPeftPrefix = "base_model.model";
constexpr std::string_view kPeftInfixes[] = {".base_layer", ".modules_to_save.default"};

}  // namespace

std::string plain_name(std::string_view name) {
  if (name.substr(0, kPeftPrefix.size()) == kPeftPrefix) {
    name.remove_prefix(
        std::min(kPeftPrefix.size() + 1, name.size()));  // of the model there is no dot
  }
  std::string plain(name);
  for (const std::string_view infix : kPeftInfixes) {
    const std::size_t place = plain.find(infix);
    if (place != std::string::npos) plain.erase(place, infix.size());
  }
  return plain;
}

ModelNames::ModelNames(const ModelParameters& parameters) : parameters_(&parameters) {
  // A layer that PEFT wraps comes before what it wraps, which gets the same name.
  for (std::size_t i = 0; i < parameters.modules.size(); ++i) {
    modules_.emplace(key_of(parameters.modules[i].name), i);
  }
  for (std::size_t i = 0; i < parameters.tensors.size(); ++i) {
    tensors_.emplace(key_of(parameters.tensors[i].name), i);
  }
}

std::string_view ModelNames::key_of(const std::string& name) {
  if (name.compare(0, kPeftPrefix.size(), kPeftPrefix) != 0) return name;
  plain_.push_back(plain_name(name));
  return plain_.back();
}

std::optional<std::size_t> ModelNames::find_module(std::string_view name) const {
  const auto found = modules_.find(name);
  return found == modules_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::size_t> ModelNames::find_tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t ModelNames::module(std::string_view name) const { return find(modules_, name); }

std::size_t ModelNames::tensor(std::string_view name) const { return find(tensors_, name); }

std::size_t ModelNames::find(const Indices& indices, std::string_view name) {
  const auto found = indices.find(name);
  if (found == indices.end()) throw std::logic_error(concat("ModelNames: no ", name));
  return found->second;
}

std::size_t ModelBuilder::add_module(std::string name, std::string class_name, std::size_t parent) {
  result_.modules.push_back({std::move(name), std::move(class_name), parent, {}, true});
  return result_.modules.size() - 1;
}

std::size_t ModelBuilder::add_tensor(std::size_t module, std::string_view name,
                                     std::vector<std::int64_t> shape, InitialValue initial) {
  const std::size_t index = result_.tensors.size();
  ModuleSpec& owner = result_.modules.at(module);
  const bool decays = shape.size() > 1;
  std::string path = owner.name + ".";  // a dry run makes all names: a stream would take longer
  path += name;
  result_.tensors.push_back({std::move(path), std::move(shape), decays, initial, true});
  owner.parameters.push_back(index);
  return index;
}

void ModelBuilder::tie(std::size_t module, std::size_t tensor) {
  result_.modules.at(module).parameters.push_back(tensor);
}

void ModelBuilder::takes_numbers_only(std::size_t module) {
  result_.modules.at(module).input_has_gradient = false;
}

std::size_t ModelBuilder::add_layer_norm(std::string name, std::size_t parent, std::int64_t size) {
  const std::size_t module = add_module(std::move(name), "LayerNorm", parent);
  add_tensor(module, "weight", {size}, {.constant = 1});
  add_tensor(module, "bias", {size}, {});
  return module;
}

std::size_t ModelBuilder::add_linear(std::string name, std::string class_name, std::size_t parent,
                                     std::vector<std::int64_t> shape, std::int64_t bias_size,
                                     double stddev) {
  const std::size_t module = add_module(std::move(name), std::move(class_name), parent);
  add_tensor(module, "weight", std::move(shape), {.stddev = stddev});
  add_tensor(module, "bias", {bias_size}, {});
  return module;
}

std::size_t ModelBuilder::add_embedding(std::string name, std::size_t parent, std::int64_t rows,
                                        std::int64_t size, double stddev) {
  const std::size_t module = add_module(std::move(name), "Embedding", parent);
  add_tensor(module, "weight", {rows, size}, {.stddev = stddev});
  takes_numbers_only(module);
  return module;
}

std::size_t add_nn_linear(ModelBuilder& builder, std::string name, std::size_t parent,
                          std::int64_t inputs, std::int64_t outputs, bool has_bias, double stddev) {
  const std::size_t module = builder.add_module(std::move(name), "Linear", parent);
  builder.add_tensor(module, "weight", {outputs, inputs}, {.stddev = stddev});
  if (has_bias) builder.add_tensor(module, "bias", {outputs}, {});
  return module;
}

}  // namespace dstune
