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

/// What the model gives a layer's parts.
struct LayerContext {
  const nn::Rotary* rotary;  ///< outlives the step
  Value mask;                ///< see nn::attend()
  AttentionShape shape;
  std::uint64_t expert_seed;  ///< of experts by lot
  /// Where the routes of a layer with experts go; nullptr: nobody asks for them.
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

/// @param name  "model.layers.0.self_attn"
std::unique_ptr<AttentionPart> make_attention(const ModelSpec& spec, const LlamaSettings& settings,
                                              const ModelNames& names, const std::string& name);
/// @param name  "model.layers.0.mlp"
std::unique_ptr<MlpPart> make_mlp(const ModelSpec& spec, const LlamaSettings& settings,
                                  const ModelNames& names, const std::string& name,
                                  std::int64_t layer);

}  // namespace dstune::llama
