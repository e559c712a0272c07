#include "core/model/adapted_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/pattern.hpp"
#include "core/model/lora_targets.hpp"

namespace dstune {

namespace {

constexpr const char* kPrefix = "base_model.model.";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Makes PEFT's model of `base`.
class Adapter {
 public:
  Adapter(const ModelParameters& base, const LoraSettings& lora, Task task)
      : base_(base),
        lora_(lora),
        is_target_(base.modules.size(), false),
        saved_in_(base.modules.size()),
        owner_(base.tensors.size()),
        new_tensor_(base.tensors.size()),
        new_module_(base.modules.size()),
        adapters_(base.modules.size()) {
    for (const std::size_t module : find_lora_targets(lora, base, task)) is_target_[module] = true;
    for (const std::size_t root : find_saved_modules(lora, base)) {
      for (std::size_t inner = root; inner < base.end_of(root); ++inner) saved_in_[inner] = root;
    }
    for (std::size_t module = base.modules.size(); module-- > 0;) {
      for (const std::size_t tensor : base.modules[module].parameters) owner_[tensor] = module;
    }
    result_.lora = {lora.rank, lora.scaling(), lora.dropout};
  }

  ModelParameters take() {
    add_tensors();
    for (std::size_t module = 0; module < base_.modules.size(); ++module) add_module(module);
    result_.modules.front().name.pop_back();  // the prefix alone, with its dot
    return std::move(result_);
  }

 private:
  void add_tensors() {
    for (std::size_t tensor = 0; tensor < base_.tensors.size(); ++tensor) {
      const std::size_t owner = owner_[tensor];
      if (saved_in_[owner]) {
        const std::size_t root = *saved_in_[owner];
        if (base_.tensors_within(root).front() == tensor) add_saved(root);
        continue;
      }
      new_tensor_[tensor] = add_tensor(tensor, is_target_[owner] ? ".base_layer" : "",
                                       base_.modules[owner].name.size(), is_trained_bias(tensor));
      if (is_target_[owner] && base_.modules[owner].parameters.back() == tensor) {
        add_adapters(owner);
      }
    }
  }

  /// Adds the tensor with `infix` in its name, `place` letters behind its beginning.
  std::size_t add_tensor(std::size_t tensor, std::string_view infix, std::size_t place,
                         bool trainable) {
    ParameterSpec copy = base_.tensors[tensor];
    if (!infix.empty()) copy.name.insert(place, infix);  // else its owner may have another name
    copy.name.insert(0, kPrefix);
    copy.trainable = trainable;
    result_.tensors.push_back(std::move(copy));
    return result_.tensors.size() - 1;
  }

  bool is_trained_bias(std::size_t tensor) const {
    if (lora_.bias == LoraSettings::Bias::none) return false;
    if (!ends_with(base_.tensors[tensor].name, ".bias")) return false;
    return lora_.bias == LoraSettings::Bias::all || is_target_[owner_[tensor]];
  }

  void add_saved(std::size_t root) {
    const std::size_t place = base_.modules[root].name.size();
    const auto tensors = base_.tensors_within(root);
    for (const std::size_t tensor : tensors) add_tensor(tensor, ".original_module", place, false);
    for (const std::size_t tensor : tensors) {
      new_tensor_[tensor] = add_tensor(tensor, ".modules_to_save.default", place, true);
    }
  }

  void add_adapters(std::size_t module) {
    const ModuleSpec& layer = base_.modules[module];
    const auto& shape = base_.tensors[layer.parameters.front()].shape;
    const bool stored_in_out = layer.class_name == "Conv1D";
    const std::int64_t in = shape[stored_in_out ? 0 : 1];
    const std::int64_t out = shape[stored_in_out ? 1 : 0];
    adapters_[module] = result_.tensors.size();
    const InitialValue initial{.stddev = 1 / std::sqrt(3.0 * static_cast<double>(in))};
    const auto add = [&](const char* name, std::int64_t rows, std::int64_t cols,
                         InitialValue value) {
      result_.tensors.push_back({kPrefix + layer.name + name, {rows, cols}, true, value, true});
    };
    add(".lora_A.default.weight", lora_.rank, in, initial);
    add(".lora_B.default.weight", out, lora_.rank, {});
  }

  void add_module(std::size_t module) {
    ModuleSpec copy = base_.modules[module];
    if (saved_in_[module]) {
      const std::size_t place = base_.modules[*saved_in_[module]].name.size();
      copy.name.insert(place, ".modules_to_save.default");
    }
    copy.name.insert(0, kPrefix);
    copy.parent = module == 0 ? 0 : new_module_[copy.parent];
    for (std::size_t& tensor : copy.parameters) tensor = new_tensor_[tensor];
    const std::size_t index = result_.modules.size();
    new_module_[module] = index;
    if (!is_target_[module]) {
      result_.modules.push_back(std::move(copy));
      return;
    }
    const std::string name = copy.name;
    const std::size_t a = adapters_[module];
    // PEFT's forward reads the type of lora_A before lora_A runs, so DeepSpeed takes it for an
    // external parameter of this module.
    result_.modules.push_back({name, "Linear", copy.parent, {a}, copy.input_has_gradient});
    copy.name += ".base_layer";
    copy.parent = index;
    result_.modules.push_back(std::move(copy));
    const char* dropout = lora_.dropout > 0 ? "Dropout" : "Identity";
    result_.modules.push_back({name + ".lora_dropout.default", dropout, index, {}, true});
    result_.modules.push_back({name + ".lora_A.default", "Linear", index, {a}, true});
    result_.modules.push_back({name + ".lora_B.default", "Linear", index, {a + 1}, true});
  }

  const ModelParameters& base_;
  const LoraSettings& lora_;
  std::vector<bool> is_target_;
  std::vector<std::optional<std::size_t>> saved_in_;  // by module: the module to save around it
  std::vector<std::size_t> owner_;                    // by tensor: the first module that has it
  std::vector<std::size_t> new_tensor_;
  std::vector<std::size_t> new_module_;
  std::vector<std::size_t> adapters_;  // by module: its lora_A, before lora_B
  ModelParameters result_;
};

void freeze(ModelParameters& parameters, const std::vector<std::string>& patterns) {
  for (ParameterSpec& tensor : parameters.tensors) {
    tensor.trainable =
        std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return matches_glob(pattern, tensor.name); });
  }
}

}  // namespace

ModelParameters fine_tuned(ModelParameters base, const ModelSpec& spec) {
  const FineTuning& tuning = spec.fine_tuning;
  if (tuning.lora) return Adapter(base, *tuning.lora, spec.task).take();
  if (!tuning.trainable.empty()) freeze(base, tuning.trainable);
  return base;
}

}  // namespace dstune
