// T5Attention: of one sequence to itself, or of a target to its source.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/t5/t5_eager.hpp"
#include "core/train/families/t5/t5_position_bias.hpp"
#include "core/train/families/t5/t5_sdpa.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

class T5Attention {
 public:
  /// @param is_first  of its stack: it makes the bias
  T5Attention(const ModelSpec& spec, const ModelNames& names, const std::string& name,
              bool is_first);

  Call call(const layers::Workspace& queries, const layers::Workspace& keys,
            std::uint64_t seed) const;

  /// @param x       (rows of queries, h)
  /// @param states  (rows of keys, h), which somebody else saves; nullptr: x
  /// @returns (rows of queries, h)
  Buffer forward(const Call& call, ModuleHooks& hooks, Buffer x, const Buffer* states,
                 PositionBias& bias);

  /// Frees what was saved.
  /// @param d_states  the gradient by `states` is added to it; the first makes it
  /// @returns the gradient by x
  Buffer backward(const Call& call, ModuleHooks& hooks, const Buffer& d_out, const Buffer* states,
                  Buffer* d_states, PositionBias& bias);

 private:
  Gradients attend_back(const Call& call, Buffer d_out, PositionBias& bias);
  static bool is_eager(const Call& call) { return call.queries.attention == AttentionKind::eager; }
  void forget_heads();

  std::int64_t heads_;
  std::int64_t head_size_;
  double dropout_;
  bool is_first_;

  std::size_t module_;
  layers::Linear q_proj_;
  layers::Linear k_proj_;
  layers::Linear v_proj_;
  layers::Linear o_proj_;

  EagerScores eager_;
  SdpaScores sdpa_;
  Buffer input_;  ///< saved by the projections of x
  Buffer q_;      ///< (rows of queries, width)
  Buffer k_;      ///< (rows of keys, width), as v
  Buffer v_;
  Buffer out_;  ///< saved by o
};

}  // namespace dstune::t5
