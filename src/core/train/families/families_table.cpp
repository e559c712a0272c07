#include "core/train/families/families.hpp"
#include "core/train/families/gpt2_model.hpp"

namespace dstune {

std::span<const Family> families() {
  static const Family kFamilies[] = {
      gpt2::family(),
  };
  return kFamilies;
}

}  // namespace dstune
