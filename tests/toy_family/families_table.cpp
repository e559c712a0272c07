// The table of a program that knows one family more.
#include "core/model/gpt2.hpp"
#include "core/train/families/families.hpp"
#include "core/train/families/gpt2_model.hpp"
#include "tests/toy_family/toy_mlp.hpp"

namespace dstune {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      {"gpt2", gpt2::presets, gpt2::read, gpt2::parameters, gpt2::training_flops, gpt2::make_model},
      {"toy_mlp", toy_mlp::presets, toy_mlp::read, toy_mlp::parameters, toy_mlp::training_flops,
       toy_mlp::make_model},
  };
  return kFamilies;
}

}  // namespace dstune
