#include "core/train/families/families.hpp"
#include "core/train/families/gpt2_model.hpp"

namespace dstune {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      gpt2::kFamily,
  };
  return kFamilies;
}

}  // namespace dstune
