#include "core/train/zero/layout/leaf_modules.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace dstune {
namespace {

constexpr std::int64_t kLargestLeaf = 1'000'000'000;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_default(const ModuleSpec& module) {
  return std::any_of(
      std::begin(kDefaultLeafClasses), std::end(kDefaultLeafClasses),
      [&](std::string_view path) { return path.substr(path.rfind('.') + 1) == module.class_name; });
}

bool is_named(const LeafModuleConfig& named, const ModuleSpec& module) {
  if (named.default_classes && is_default(module)) return true;
  const auto any = [](const std::vector<std::string>& list, auto matches) {
    return std::any_of(list.begin(), list.end(), matches);
  };
  return any(named.classes,
             [&](const std::string& path) {  // "GPT2Block", or with the path of its Python module
               return path == module.class_name || ends_with(path, "." + module.class_name);
             }) ||
         any(named.names, [&](const std::string& name) { return name == module.name; }) ||
         any(named.name_suffixes,
             [&](const std::string& suffix) { return ends_with(module.name, suffix); });
}

/// The elements and the modules with parameters inside `module`, itself included. The tied head
/// counts its tensor again, as in DeepSpeed.
struct Contents {
  std::int64_t numel = 0;
  std::int64_t modules = 0;
};

Contents contents_of(const ModelParameters& parameters, std::size_t module) {
  Contents contents;
  for (std::size_t inner = module; inner < parameters.end_of(module); ++inner) {
    for (const std::size_t tensor : parameters.modules[inner].parameters) {
      contents.numel += parameters.tensors[tensor].numel();
    }
    if (!parameters.tensors_within(inner).empty()) ++contents.modules;
  }
  return contents;
}

bool is_fine_grained(const StepConfig& config, const ModelParameters& parameters,
                     std::size_t module) {
  if (config.module_granularity_threshold == 0) return false;
  if (parameters.end_of(module) == module + 1) return false;
  const Contents contents = contents_of(parameters, module);
  return contents.numel <= kLargestLeaf &&
         contents.numel / contents.modules <= config.module_granularity_threshold;
}

bool is_shared(const ModelParameters& parameters, std::size_t leaf) {
  for (const std::size_t tensor : parameters.tensors_within(leaf)) {
    for (std::size_t other = 0; other < parameters.modules.size(); ++other) {
      if (other >= leaf && other < parameters.end_of(leaf)) continue;
      const auto& used = parameters.modules[other].parameters;
      if (std::find(used.begin(), used.end(), tensor) != used.end()) return true;
    }
  }
  return false;
}

}  // namespace

bool names_leaf_modules(const StepConfig& config) {
  const LeafModuleConfig& named = config.leaf_module;
  return config.module_granularity_threshold != 0 || !named.classes.empty() ||
         !named.names.empty() || !named.name_suffixes.empty();
}

std::vector<std::size_t> find_leaf_modules(const StepConfig& config,
                                           const ModelParameters& parameters) {
  std::vector<std::size_t> leaves;
  std::size_t module = 0;
  while (module < parameters.modules.size()) {
    if (is_named(config.leaf_module, parameters.modules[module]) ||
        is_fine_grained(config, parameters, module)) {
      leaves.push_back(module);
      module = parameters.end_of(module);
    } else {
      ++module;
    }
  }
  return leaves;
}

std::vector<std::string> unsupported_leaf_modules(const StepConfig& config,
                                                  const ModelParameters& parameters) {
  if (config.stage < 3) return {};
  for (const std::size_t leaf : find_leaf_modules(config, parameters)) {
    const ModuleSpec& module = parameters.modules[leaf];
    if (parameters.tensors_within(leaf).empty()) continue;
    if (module.input_has_gradient && !is_shared(parameters, leaf)) continue;
    const bool named = is_named(config.leaf_module, module);
    return {std::string("zero_optimization.") +
            (named ? "leaf_module" : "stage3_module_granularity_threshold") + " with " +
            module.class_name + " as a leaf"};
  }
  return {};
}

}  // namespace dstune
