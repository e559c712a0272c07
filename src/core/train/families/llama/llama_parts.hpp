// What a decoder layer of Llama's kin consists of, and how some of the kin have it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device/operations/attention.hpp"
#include "core/model/llama/llama.hpp"
#include "core/train/nn/experts.hpp"
#include "core/train/nn/rotary.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::llama {

/// The values that the model gives the parts of a layer.
struct LayerContext {
  const nn::Rotary* rotary;  ///< outlives the step
  Value mask;                ///< the argument of nn::attend()
  AttentionShape shape;
  std::uint64_t expert_seed;  ///< draws experts by lot
  /// Where a layer with experts puts its routes; nullptr: nobody asks for them.
  std::vector<nn::Routes>* routes;
};

class AttentionPart {
 public:
  virtual ~AttentionPart() = default;
  virtual Value operator()(Tape& on, const Value& x, const LayerContext& context) const = 0;
};

class MlpPart {
 public:
  virtual ~MlpPart() = default;
  virtual Value operator()(Tape& on, Value x, const LayerContext& context) const = 0;
};

/// @param name  of the module, such as "model.layers.0.self_attn"
std::unique_ptr<AttentionPart> make_attention(const ModelSpec& spec, const LlamaSettings& settings,
                                              const ModelNames& names, const std::string& name);
/// @param name  of the module, such as "model.layers.0.mlp"
std::unique_ptr<MlpPart> make_mlp(const ModelSpec& spec, const LlamaSettings& settings,
                                  const ModelNames& names, const std::string& name,
                                  std::int64_t layer);

}  // namespace dstune::llama
