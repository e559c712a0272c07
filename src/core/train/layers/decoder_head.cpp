#include "core/train/layers/decoder_head.hpp"

#include <utility>

#include "core/model/labels.hpp"

namespace dstune::layers {

namespace {

std::variant<Head, SequenceHead> head_of(const ModelSpec& spec, const ModelNames& names,
                                         std::int64_t size, std::optional<std::size_t> tied_weight,
                                         double softcap) {
  if (spec.task == Task::sequence_classification) {
    return SequenceHead{
        Linear(names, "score", size, label_count(spec), WeightOrder::out_in, false)};
  }
  return Head{.module = names.module("lm_head"),
              .weight = tied_weight ? *tied_weight : names.tensor("lm_head.weight"),
              .size = size,
              .vocab_size = spec.vocab_size,
              .is_tied = tied_weight.has_value(),
              .softcap = softcap};
}

}  // namespace

DecoderHead::DecoderHead(const ModelSpec& spec, const ModelNames& names, std::int64_t size,
                         std::optional<std::size_t> tied_weight, double softcap)
    : head_(head_of(spec, names, size, tied_weight, softcap)) {}

void DecoderHead::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor tokens,
                          std::uint64_t seed, Tensor loss) {
  if (auto* language = std::get_if<Head>(&head_)) {
    language->forward(work, hooks, std::move(x), tokens, loss);
  } else {
    std::get<SequenceHead>(head_).forward(work, hooks, std::move(x), seed, loss);
  }
}

Buffer DecoderHead::backward(const Workspace& work, ModuleHooks& hooks, double factor,
                             Buffer& d_tied) {
  if (auto* language = std::get_if<Head>(&head_)) {
    return language->backward(work, hooks, factor, d_tied);
  }
  return std::get<SequenceHead>(head_).backward(work, hooks, factor);
}

}  // namespace dstune::layers
