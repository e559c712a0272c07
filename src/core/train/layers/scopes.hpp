// Modules that hold several steps of a forward, where families name and nest them differently.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/module_hooks.hpp"

namespace dstune::layers {

/// A module that begins with a step and ends with another, numbered in the order of forward.
struct Scope {
  std::string_view name;  ///< behind its owner's
  int first;              ///< < 0: its owner begins it in forward
  int last;
  bool ends_in_backward = true;  ///< false where only token numbers come in
};

/// Fetches and releases such modules around each step.
class Scopes {
 public:
  /// @param owner   stands in front of the names
  /// @param scopes  outer ones first
  Scopes(const ModelNames& names, std::string_view owner, std::span<const Scope> scopes);

  /// Runs `body` as a step of forward.
  template <class Body>
  void forward(ModuleHooks& hooks, int step, Body body) const {
    begin(hooks, step);
    body();
    end(hooks, step);
  }
  /// Likewise of backward, which takes the steps in reverse.
  template <class Body>
  void backward(ModuleHooks& hooks, int step, Body body) const {
    begin_backward(hooks, step);
    body();
    end_backward(hooks, step);
  }

 private:
  struct Place {
    std::size_t module;
    Scope scope;
  };

  void begin(ModuleHooks& hooks, int step) const;
  void end(ModuleHooks& hooks, int step) const;
  void begin_backward(ModuleHooks& hooks, int step) const;
  void end_backward(ModuleHooks& hooks, int step) const;

  std::vector<Place> places_;
};

}  // namespace dstune::layers
