// "autotuning.model_info": what the user says of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// The sizes of the whole model, not of a model-parallel rank.
struct GivenModelInfo {
  std::optional<std::int64_t> num_params;
  std::optional<std::int64_t> hidden_size;
  std::optional<std::int64_t> num_layers;
};

/// DeepSpeed's form: num_params, hidden_size, num_layers and profile, which has no effect, since
/// nothing is profiled.
GivenModelInfo read_model_info(const json::value& section, std::string_view pointer,
                               Problems& problems);

/// Sizes that are not those of `model`, whose parameters are `parameters`, are problems. The number
/// of parameters may be a round one, or count a head that is not trained here: 5 % are no
/// contradiction.
void check_model_info(const GivenModelInfo& info, const ModelSpec& model, std::int64_t parameters,
                      Problems& problems);

}  // namespace dstune
