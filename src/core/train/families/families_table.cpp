#include "core/train/families/bert/bert_model.hpp"
#include "core/train/families/deberta/deberta_model.hpp"
#include "core/train/families/families.hpp"
#include "core/train/families/gpt2/gpt2_model.hpp"
#include "core/train/families/gpt_neox/gpt_neox_model.hpp"
#include "core/train/families/llama/llama_model.hpp"
#include "core/train/families/opt/opt_model.hpp"
#include "core/train/families/t5/t5_model.hpp"

namespace dstune {

std::span<const Family> families() {
  using llama::Kin;
  static const Family table[] = {
      gpt2::kFamily,
      gpt_neox::kFamily,
      opt::kFamily,
      llama::family<Kin::llama>(),
      llama::family<Kin::mistral>(),
      llama::family<Kin::qwen2>(),
      llama::family<Kin::qwen3>(),
      llama::family<Kin::gemma>(),
      llama::family<Kin::gemma2>(),
      llama::family<Kin::gemma3_text>(),
      llama::family<Kin::phi3>(),
      llama::family<Kin::mixtral>(),
      llama::family<Kin::qwen2_moe>(),
      llama::family<Kin::qwen3_moe>(),
      bert::kBertFamily,
      bert::kRobertaFamily,
      bert::kDistilbertFamily,
      deberta::kFamily,
      t5::kT5Family,
      t5::kMt5Family,
  };
  return table;
}

}  // namespace dstune
