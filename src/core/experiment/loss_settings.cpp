#include "core/experiment/loss_settings.hpp"

#include <array>
#include <cstddef>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::array<std::string_view, 4> kNames{"plain", "chunked", "tiled", "fused"};

}  // namespace

std::string_view name_of(LossKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

std::optional<LossKind> loss_from(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) return static_cast<LossKind>(i);
  }
  return std::nullopt;
}

std::string describe(const LossSettings& settings) {
  return concat(name_of(settings.kind), settings.keep_logits ? ", logits kept" : "");
}

}  // namespace dstune
