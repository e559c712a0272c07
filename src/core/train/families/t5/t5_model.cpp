#include "core/train/families/t5/t5_model.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/shift_tokens.hpp"
#include "core/train/families/t5/t5_head.hpp"
#include "core/train/families/t5/t5_stack.hpp"
#include "core/train/layers/tied_gradient.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

namespace {

using layers::Workspace;

// Each stack has a seed of its own.
constexpr std::uint64_t kEncoder = 0;
constexpr std::uint64_t kDecoder = 1;

MicroBatch of_targets(MicroBatch batch, const ModelSpec& spec) {
  batch.sequence_length = spec.target_tokens(batch.sequence_length);
  return batch;
}

class T5 final : public Model {
 public:
  T5(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  /// @throws std::invalid_argument  in any case: sources and targets would have their own
  void set_lengths(const RowLengths& lengths) override;
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  Workspace source_;
  Workspace target_;
  bool tied_;
  std::int64_t start_token_;
  std::size_t root_;
  std::size_t shared_;
  T5Stack encoder_;
  T5Stack decoder_;
  T5Head head_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Buffer states_;         ///< of the encoder, saved by all cross attentions
  Buffer target_tokens_;  ///< int64
};

T5::T5(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : source_(batch, device),
      target_(of_targets(batch, spec), device),
      tied_(settings_of(spec).tied),
      start_token_(settings_of(spec).start_token),
      root_(names.module("")),
      shared_(names.tensor("shared.weight")),
      encoder_(spec, names, "encoder", source_, source_),
      decoder_(spec, names, "decoder", target_, source_),
      head_(spec, names) {}

void T5::set_lengths(const RowLengths& /*lengths*/) {
  throw std::invalid_argument("T5 takes sequences of one length only");
}

void T5::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  seed_ = source_.seed = target_.seed = seed;
  hooks.fetch(root_);
  states_ = encoder_.forward(hooks, tokens.slice(0, source_.rows()), nullptr,
                             layers::seed_of(seed, kEncoder));
  const Tensor labels = tokens.slice(source_.rows(), target_.rows());
  target_tokens_ =
      make_buffer(*target_.device, MemoryCategory::activations, target_.rows(), DType::int64);
  target_.device->run(ShiftTokens{.labels = labels,
                                  .sequence = target_.sequence_length,
                                  .start = start_token_,
                                  .out = target_tokens_.tensor(DType::int64)});
  Buffer x = decoder_.forward(hooks, target_tokens_.tensor(DType::int64), &states_,
                              layers::seed_of(seed, kDecoder));
  head_.forward(target_, hooks, std::move(x), labels, loss);
  hooks.release(root_);
}

// In the order of autograd, which adds the parts of the shared weight as they come.
void T5::backward(ModuleHooks& hooks, double factor) {
  hooks.fetch(root_);
  Buffer of_head;
  Buffer d_x = head_.backward(target_, hooks, factor, of_head);
  Buffer d_states;
  Buffer of_target = decoder_.backward(hooks, std::move(d_x), &states_, &d_states,
                                       layers::seed_of(seed_, kDecoder));
  states_.reset();
  target_tokens_.reset();
  if (tied_) of_target = layers::sum_of_tied(target_, std::move(of_head), std::move(of_target));
  const Buffer of_source = encoder_.backward(hooks, std::move(d_states), nullptr, nullptr,
                                             layers::seed_of(seed_, kEncoder));
  if (!of_target) return;
  target_.device->run(Add{of_target.tensor(target_.dtype), of_source.tensor(target_.dtype)});
  hooks.gradient_ready(shared_, std::move(of_target));
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<T5>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::t5
