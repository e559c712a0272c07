#include "core/train/families/deberta_model.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/device/operations/add.hpp"
#include "core/device/operations/fill.hpp"
#include "core/train/families/bert_classifier.hpp"
#include "core/train/families/bert_labels.hpp"
#include "core/train/families/bert_masked_head.hpp"
#include "core/train/families/deberta_block.hpp"
#include "core/train/families/deberta_convolution.hpp"
#include "core/train/families/deberta_embeddings.hpp"
#include "core/train/families/deberta_names.hpp"
#include "core/train/families/deberta_relative_table.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

namespace {

class Deberta final : public Model {
 public:
  Deberta(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
          const MicroBatch& batch, Device& device);

  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  Buffer encode(ModuleHooks& hooks, Buffer states);
  Buffer encode_backward(ModuleHooks& hooks, Buffer d_states);
  RelativeTable* table() { return table_ ? &*table_ : nullptr; }

  std::int64_t num_labels_;
  layers::Workspace work_;
  MaskTokens masking_;

  layers::Scopes scopes_;
  DebertaEmbeddings embeddings_;
  std::optional<RelativeTable> table_;
  std::vector<DebertaBlock> blocks_;
  std::optional<Convolution> convolution_;
  std::optional<bert::MaskedHead> masked_head_;
  std::optional<bert::Classifier> classifier_;

  std::uint64_t seed_ = 0;  ///< of the micro-step that runs
};

Deberta::Deberta(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
                 const MicroBatch& batch, Device& device)
    : num_labels_(settings.common.num_labels),
      work_(batch, device),
      masking_(bert::masking_of(spec, mask_token(spec), settings.common.pad_token)),
      scopes_(names, "", model_scopes()),
      embeddings_(spec, settings, names) {
  if (settings.relative_attention) table_.emplace(spec, settings, names);
  blocks_.reserve(static_cast<std::size_t>(spec.num_layers));
  for (std::int64_t index = 0; index < spec.num_layers; ++index) {
    blocks_.emplace_back(spec, settings, names, index);
  }
  if (settings.conv_kernel_size > 0) convolution_.emplace(spec, settings, names);
  if (spec.task == Task::masked_lm) {
    masked_head_.emplace(spec, names, embeddings_.word_table(), kLegacyHead,
                         settings.common.activation, settings.embedding_size);
  } else {
    classifier_.emplace(spec, names, batch, device, kClassifier,
                        bert::ClassifierTraits{.activation = settings.pooler_activation,
                                               .num_labels = num_labels_,
                                               .loss_in_fp32 = settings.loss_in_fp32});
  }
}

Buffer Deberta::encode(ModuleHooks& hooks, Buffer states) {
  // transformers' mask of all pairs of tokens, from which each layer makes its own.
  const std::int64_t pairs = work_.rows() * work_.sequence_length;
  const Buffer mask = make_buffer(*work_.device, MemoryCategory::activations, pairs, DType::fp32);
  work_.device->run(FillConstant{mask.tensor(DType::fp32), 1});
  if (table_) table_->forward(work_, hooks);
  for (auto& block : blocks_) {
    states = block.forward(work_, hooks, std::move(states), table(), seed_);
    if (convolution_ && &block == &blocks_.front()) {
      states = convolution_->forward(work_, hooks, block.input(), std::move(states), seed_);
    }
    work_.device->tick();
  }
  if (table_) table_->end_forward();
  return states;
}

void Deberta::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  seed_ = seed;
  Buffer labels = bert::mask_tokens(work_, masking_, tokens, seed_);
  if (classifier_) labels = bert::draw_labels(work_, num_labels_, seed_);
  Buffer states;
  scopes_.forward(hooks, bert::kEmbed,
                  [&] { states = embeddings_.forward(work_, hooks, tokens, seed_); });
  scopes_.forward(hooks, bert::kEncode, [&] { states = encode(hooks, std::move(states)); });
  scopes_.forward(hooks, bert::kHead, [&] {
    if (masked_head_) {
      masked_head_->forward(work_, hooks, std::move(states), std::move(labels), loss);
    } else {
      classifier_->forward(work_, hooks, std::move(states), std::move(labels), seed_, loss);
    }
  });
}

// The convolution's input is the first layer's: its gradient waits for that layer's.
Buffer Deberta::encode_backward(ModuleHooks& hooks, Buffer d_states) {
  Buffer d_convolved;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (convolution_ && &*block == &blocks_.front()) {
      Convolution::Gradients d = convolution_->backward(work_, hooks, std::move(d_states));
      d_states = std::move(d.residual);
      d_convolved = std::move(d.x);
    }
    d_states = block->backward(work_, hooks, std::move(d_states), table());
    work_.device->tick();
  }
  if (table_) table_->backward(work_, hooks);
  if (d_convolved) {
    work_.device->run(Add{d_states.tensor(work_.dtype), d_convolved.tensor(work_.dtype)});
  }
  return d_states;
}

void Deberta::backward(ModuleHooks& hooks, double factor) {
  Buffer d_words;
  Buffer d_states;
  scopes_.backward(hooks, bert::kHead, [&] {
    d_states = masked_head_ ? masked_head_->backward(work_, hooks, factor, d_words)
                            : classifier_->backward(work_, hooks, factor);
  });
  scopes_.backward(hooks, bert::kEncode,
                   [&] { d_states = encode_backward(hooks, std::move(d_states)); });
  scopes_.backward(hooks, bert::kEmbed, [&] {
    embeddings_.backward(work_, hooks, std::move(d_states), std::move(d_words));
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Deberta>(spec, settings_of(spec), ModelNames(parameters), batch, device);
}

}  // namespace dstune::deberta
