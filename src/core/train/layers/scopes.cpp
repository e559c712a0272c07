#include "core/train/layers/scopes.hpp"

#include "core/base/text.hpp"

namespace dstune::layers {

Scopes::Scopes(const ModelNames& names, std::string_view owner, std::span<const Scope> scopes) {
  for (const Scope& scope : scopes) {
    places_.push_back({names.module(concat(owner, scope.name)), scope});
  }
}

void Scopes::begin(ModuleHooks& hooks, int step) const {
  for (const Place& place : places_) {
    if (place.scope.first == step) hooks.fetch(place.module);
  }
}

void Scopes::end(ModuleHooks& hooks, int step) const {
  for (auto place = places_.rbegin(); place != places_.rend(); ++place) {
    if (place->scope.last == step) hooks.release(place->module);
  }
}

void Scopes::begin_backward(ModuleHooks& hooks, int step) const {
  for (const Place& place : places_) {
    if (place.scope.last == step) hooks.fetch(place.module);
  }
}

void Scopes::end_backward(ModuleHooks& hooks, int step) const {
  for (auto place = places_.rbegin(); place != places_.rend(); ++place) {
    if (place->scope.first == step && place->scope.ends_in_backward) hooks.release(place->module);
  }
}

}  // namespace dstune::layers
