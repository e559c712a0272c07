// The table of a program that knows one family more.
#include "core/train/families/families.hpp"
#include "core/train/families/gpt2/gpt2_model.hpp"
#include "tests/toy_family/toy_mlp.hpp"

namespace dstune {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      gpt2::kFamily,
      toy_mlp::kFamily,
  };
  return kFamilies;
}

}  // namespace dstune
