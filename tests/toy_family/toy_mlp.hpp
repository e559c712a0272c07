// A family that is added by files and one line of a table: an embedding, an MLP of two layers and a
// head with a weight of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.hpp"
#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::toy_mlp {

/// {"model_type": "toy_mlp", "vocab_size", "hidden_size", "inner_size", "max_positions"}
std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// embed (V, h); mlp.fc_in (h, f) and mlp.fc_out (f, h) with biases; head (V, h).
ModelParameters parameters(const ModelSpec& spec);

/// 6 * tokens * (2 h f + V h)
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

inline constexpr Family kFamily{"toy_mlp",      [] { return std::vector<ModelSpec>(); },
                                read,           parameters,
                                training_flops, make_model};

}  // namespace dstune::toy_mlp
