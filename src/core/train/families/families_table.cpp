#include "core/train/families/families.hpp"
#include "core/train/families/gpt2_model.hpp"
#include "core/train/families/gpt_neox_model.hpp"
#include "core/train/families/opt_model.hpp"

namespace dstune {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      gpt2::kFamily,
      gpt_neox::kFamily,
      opt::kFamily,
  };
  return kFamilies;
}

}  // namespace dstune
