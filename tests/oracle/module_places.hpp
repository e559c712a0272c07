// Where a module stands in ModelParameters::modules, and its first tensor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dstune::module_places {

constexpr std::size_t kRoot = 0;
constexpr std::size_t kTransformer = 1;
constexpr std::size_t kWte = 2;
constexpr std::size_t kWpe = 3;
constexpr std::size_t kDrop = 4;

/// Within a block.
enum class Place : std::size_t {
  block,
  ln_1,
  attn,
  c_attn,
  attn_c_proj,
  resid_dropout,
  ln_2,
  mlp,
  c_fc,
  mlp_c_proj,
  act,
  dropout
};
constexpr std::size_t kPlaces = 12;

constexpr std::size_t in_block(std::int64_t layer, Place place) {
  return kDrop + 1 + kPlaces * static_cast<std::size_t>(layer) + static_cast<std::size_t>(place);
}
constexpr std::size_t ln_f(std::int64_t num_layers) {
  return kDrop + 1 + kPlaces * static_cast<std::size_t>(num_layers);
}
constexpr std::size_t lm_head(std::int64_t num_layers) { return ln_f(num_layers) + 1; }

}  // namespace dstune::module_places
