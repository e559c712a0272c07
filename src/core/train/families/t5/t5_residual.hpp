// What T5's sublayers have in common: x + dropout(inner(norm(x))), and in fp16 nothing infinite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/device/scalar.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/rms_norm_layer.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

/// T5Block's torch.clamp() in fp16: keeps what it was given. In other types nothing at all.
class FiniteNumbers {
 public:
  Buffer forward(const layers::Workspace& work, Buffer x);
  /// In d_y's memory; frees what was saved.
  void backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_y);

 private:
  std::unique_ptr<Scalar> flag_;
  Buffer input_;
};

/// T5LayerSelfAttention, T5LayerCrossAttention or T5LayerFF. T5LayerNorm multiplies x itself, not
/// its fp32 copy, so that x is kept in every type.
class Residual {
 public:
  using Inner = std::function<Buffer(Buffer)>;
  using InnerBackward = std::function<Buffer(const Buffer&)>;

  Residual(const ModelSpec& spec, const ModelNames& names, const std::string& name);

  /// @param x  (M, h)
  /// @param inner  of the normalised x
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed,
                 const Inner& inner);
  /// Forward's x.
  Buffer take_input() { return std::move(input_); }
  /// Frees what was saved.
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_y,
                  const InnerBackward& inner);

 private:
  std::size_t module_;
  layers::RmsNormLayer norm_;
  layers::DropoutLayer dropout_;
  FiniteNumbers finite_;
  Buffer input_;
};

}  // namespace dstune::t5
