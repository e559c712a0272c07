#include "core/train/families/bert/bert_labels.hpp"

#include "core/device/operations/nll_loss.hpp"
#include "core/device/operations/random.hpp"
#include "core/train/families/bert/bert_seeds.hpp"

namespace dstune::bert {

namespace {

constexpr double kMasked = 0.15;  // DataCollatorForLanguageModeling's default

}  // namespace

MaskTokens masking_of(const ModelSpec& spec, std::int64_t mask_token,
                      const std::optional<std::int64_t>& pad_token) {
  constexpr std::int64_t kNoPadding = -1;
  return {.probability = spec.task == Task::masked_lm ? kMasked : 0,
          .mask_token = mask_token,
          .pad_token = pad_token.value_or(kNoPadding),
          .vocab_size = spec.vocab_size};
}

Buffer mask_tokens(const layers::Workspace& work, MaskTokens masking, Tensor tokens,
                   std::uint64_t seed) {
  Buffer labels = make_buffer(*work.device, MemoryCategory::activations, work.rows(), DType::int64);
  masking.tokens = masking.inputs = tokens;
  masking.labels = labels.tensor(DType::int64);
  masking.seed = seed_at(seed, Chance::batch);
  work.device->run(masking);
  for (const TokenSpan& padding : layers::padding_of(work)) {
    const Tensor none = masking.labels.slice(padding.begin, padding.length);
    work.device->run(NextTokens{.tokens = none, .sequence = 1, .labels = none});
  }
  return labels;
}

Buffer draw_labels(const layers::Workspace& work, std::int64_t num_labels, std::uint64_t seed) {
  Buffer labels =
      make_buffer(*work.device, MemoryCategory::activations, work.micro_batch, DType::int64);
  work.device->run(FillTokens{.out = labels.tensor(DType::int64),
                              .vocab = num_labels,
                              .seed = seed_at(seed, Chance::batch)});
  return labels;
}

}  // namespace dstune::bert
