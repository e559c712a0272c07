#include "core/train/nn/kept_weight.hpp"

#include <utility>

namespace dstune::nn {

Value kept_by_view(const Tape& on, std::size_t weight) {
  auto memory = on.hooks().memory_of(weight);
  if (!memory) return {};
  return {.storage = StoragePtr(new ParameterStorage(std::move(memory)))};
}

}  // namespace dstune::nn
