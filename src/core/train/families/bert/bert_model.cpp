#include "core/train/families/bert/bert_model.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "core/device/operations/mask_tokens.hpp"
#include "core/train/families/bert/bert_block.hpp"
#include "core/train/families/bert/bert_classifier.hpp"
#include "core/train/families/bert/bert_embeddings.hpp"
#include "core/train/families/bert/bert_labels.hpp"
#include "core/train/families/bert/bert_masked_head.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

namespace {

class Bert final : public Model {
 public:
  Bert(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override;
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  auto block_forward() {
    return [this](std::size_t layer, ModuleHooks& hooks, Buffer x) {
      return blocks_[layer].forward(work_, hooks, std::move(x), seed_);
    };
  }

  ModelSpec spec_;
  layers::Workspace work_;
  MaskTokens masking_;

  layers::Scopes scopes_;
  Embeddings embeddings_;
  layers::LayerStack<EncoderBlock> blocks_;
  std::optional<MaskedHead> masked_head_;
  std::optional<Classifier> classifier_;

  std::uint64_t seed_ = 0;  ///< of the micro-step that runs
};

std::span<const layers::Scope> scopes_of(const ModelSpec& spec) {
  const Names& names = names_of(kin_of(spec));
  return spec.task == Task::masked_lm ? names.of_masked_lm : names.of_classification;
}

Bert::Bert(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : spec_(spec),
      work_(batch, device),
      masking_(masking_of(spec, mask_token(spec), settings_of(spec).pad_token)),
      scopes_(names, "", scopes_of(spec)),
      embeddings_(spec, names),
      blocks_(
          work_, names, spec.num_layers,
          [this](const ModelNames& all, std::int64_t index) {
            return EncoderBlock(spec_, all, index);
          },
          names.frozen_layers(std::string(names_of(kin_of(spec)).block.stem), spec.num_layers)) {
  if (spec.task == Task::masked_lm) {
    masked_head_.emplace(spec, names, embeddings_.word_table());
  } else {
    classifier_.emplace(spec, names, batch, device);
  }
}

void Bert::set_lengths(const RowLengths& lengths) {
  if (lengths.is_packed) throw std::invalid_argument("BERT and its kin take no packed batches");
  work_.take(lengths);
}

void Bert::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  seed_ = work_.seed = seed;
  Buffer labels = mask_tokens(work_, masking_, tokens, seed_);
  if (classifier_) labels = draw_labels(work_, settings_of(spec_).num_labels, seed_);
  Buffer states;
  scopes_.forward(hooks, kEmbed,
                  [&] { states = embeddings_.forward(work_, hooks, tokens, seed_); });
  scopes_.forward(hooks, kEncode,
                  [&] { states = blocks_.forward(hooks, std::move(states), block_forward()); });
  blocks_.front().forget_input(work_);
  scopes_.forward(hooks, kHead, [&] {
    if (masked_head_) {
      masked_head_->forward(work_, hooks, std::move(states), std::move(labels), loss);
    } else {
      classifier_->forward(work_, hooks, std::move(states), std::move(labels), seed_, loss);
    }
  });
}

void Bert::backward(ModuleHooks& hooks, double factor) {
  Buffer d_words;
  Buffer d_states;
  scopes_.backward(hooks, kHead, [&] {
    d_states = masked_head_ ? masked_head_->backward(work_, hooks, factor, d_words)
                            : classifier_->backward(work_, hooks, factor);
  });
  scopes_.backward(hooks, kEncode, [&] {
    const auto block_backward = [this](std::size_t layer, ModuleHooks& inner, Buffer d_out) {
      return blocks_[layer].backward(work_, inner, std::move(d_out), seed_);
    };
    d_states = blocks_.backward(hooks, std::move(d_states), block_forward(), block_backward);
  });
  scopes_.backward(hooks, kEmbed, [&] {
    embeddings_.backward(work_, hooks, std::move(d_states), std::move(d_words));
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Bert>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::bert
