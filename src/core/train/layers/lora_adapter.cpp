#include "core/train/layers/lora_adapter.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/scale.hpp"

namespace dstune::layers {

namespace {

// In the order of registration.
constexpr std::size_t kDropout = 2;
constexpr std::size_t kA = 3;
constexpr std::size_t kB = 4;

}  // namespace

LoraAdapter::LoraAdapter(const ModelNames& names, const std::string& name, std::size_t module,
                         std::int64_t inputs, std::int64_t outputs)
    : module_(module),
      outputs_(outputs),
      scaling_(names.lora().scaling),
      dropout_{.module = module + kDropout, .probability = names.lora().dropout},
      a_(module + kA, names.tensor(name + ".lora_A.default.weight"), std::nullopt, inputs,
         names.lora().rank, WeightOrder::out_in),
      b_(module + kB, names.tensor(name + ".lora_B.default.weight"), std::nullopt,
         names.lora().rank, outputs, WeightOrder::out_in) {}

void LoraAdapter::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                          const Buffer& y) {
  dropped_ = dropout_.forward_beside(work, hooks, seed_of(work.seed, module_), x);
  hidden_ = a_.forward(work, hooks, dropped_ ? dropped_ : x);
  const Buffer update = b_.forward(work, hooks, hidden_);
  work.device->run(Scale{update.tensor(work.dtype), scaling_});
  work.device->run(Add{y.tensor(work.dtype), update.tensor(work.dtype)});
}

Buffer LoraAdapter::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                             const Buffer& x) {
  Buffer d_hidden;
  {
    const Buffer d_update = work.activation(outputs_);
    work.device->run(ScaleTo{d_y.tensor(work.dtype), scaling_, d_update.tensor(work.dtype)});
    d_hidden = b_.backward(work, hooks, d_update, hidden_);
  }
  hidden_.reset();
  Buffer d_x = a_.backward(work, hooks, d_hidden, dropped_ ? dropped_ : x);
  dropped_.reset();
  if (Buffer before = dropout_.backward(work, hooks, d_x)) d_x = std::move(before);
  return d_x;
}

}  // namespace dstune::layers
