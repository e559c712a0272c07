// T5 and mT5: forward and backward of one micro-batch.
#pragma once

#include <memory>
#include <string_view>

#include "core/device/device.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/model/t5/t5.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::t5 {

/// transformers' T5ForConditionalGeneration. The tokens are those of all source sequences, and
/// behind them the labels, size * target_tokens(); the decoder reads the labels shifted right.
std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

inline constexpr Task kTasks[] = {Task::seq2seq_lm};

template <T5Variant variant>
constexpr Family family(std::string_view model_type) {
  return {.model_type = model_type,
          .presets = [] { return presets(variant); },
          .read =
              [](const json::object& config, std::string_view pointer, Problems& problems,
                 std::vector<std::string>& warnings) {
                return read(variant, config, pointer, problems, warnings);
              },
          .parameters = parameters,
          .training_flops = training_flops,
          .make_model = make_model,
          .tasks = kTasks};
}

inline constexpr Family kT5Family = family<T5Variant::t5>("t5");
inline constexpr Family kMt5Family = family<T5Variant::mt5>("mt5");

}  // namespace dstune::t5
