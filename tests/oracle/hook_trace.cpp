#include "tests/oracle/hook_trace.hpp"

#include "tests/oracle/module_places.hpp"

namespace dstune::oracle {
namespace {

using module_places::Place;

class Recorder {
 public:
  explicit Recorder(std::int64_t layer = 0) : layer_(layer) {}

  void fetch(std::size_t module) { events.push_back({HookEvent::Kind::fetch, module}); }
  void release(std::size_t module) { events.push_back({HookEvent::Kind::release, module}); }
  void gradient(std::size_t tensor) { events.push_back({HookEvent::Kind::gradient, tensor}); }

  void enter(Place place) { fetch(module_places::in_block(layer_, place)); }
  void leave(Place place) { release(module_places::in_block(layer_, place)); }
  void pass(Place place) {
    enter(place);
    leave(place);
  }
  void attend() {
    events.push_back({HookEvent::Kind::attention, module_places::in_block(layer_, Place::attn)});
  }

  /// Backward of a module with two tensors. @param pair  the first of them among the layer's
  void backward(Place place, std::size_t pair, bool bias_first) {
    enter(place);
    gradients(2 + 12 * static_cast<std::size_t>(layer_) + pair, bias_first);
    leave(place);
  }
  void gradients(std::size_t weight, bool bias_first) {
    gradient(bias_first ? weight + 1 : weight);
    gradient(bias_first ? weight : weight + 1);
  }
  void select(std::int64_t layer) { layer_ = layer; }

  std::vector<HookEvent> events;

 private:
  std::int64_t layer_;
};

void block_forward(Recorder& out) {
  out.enter(Place::block);
  out.pass(Place::ln_1);
  out.enter(Place::attn);
  out.pass(Place::c_attn);
  out.attend();
  out.pass(Place::attn_c_proj);
  out.pass(Place::resid_dropout);
  out.leave(Place::attn);
  out.pass(Place::ln_2);
  out.enter(Place::mlp);
  out.pass(Place::c_fc);
  out.pass(Place::act);
  out.pass(Place::mlp_c_proj);
  out.pass(Place::dropout);
  out.leave(Place::mlp);
  out.leave(Place::block);
}

void block_backward(Recorder& out) {
  out.enter(Place::block);
  out.enter(Place::mlp);
  out.pass(Place::dropout);
  out.backward(Place::mlp_c_proj, 10, true);
  out.pass(Place::act);
  out.backward(Place::c_fc, 8, true);
  out.leave(Place::mlp);
  out.backward(Place::ln_2, 6, false);
  out.enter(Place::attn);
  out.pass(Place::resid_dropout);
  out.backward(Place::attn_c_proj, 4, true);
  out.attend();
  out.backward(Place::c_attn, 2, true);
  out.leave(Place::attn);
  out.backward(Place::ln_1, 0, false);
  out.leave(Place::block);
}

std::vector<HookEvent> forward_events(std::int64_t num_layers) {
  Recorder out;
  out.fetch(module_places::kRoot);
  out.fetch(module_places::kTransformer);
  out.fetch(module_places::kWte);
  out.release(module_places::kWte);
  out.fetch(module_places::kWpe);
  out.release(module_places::kWpe);
  out.fetch(module_places::kDrop);
  out.release(module_places::kDrop);
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    out.select(layer);
    block_forward(out);
  }
  out.fetch(module_places::ln_f(num_layers));
  out.release(module_places::ln_f(num_layers));
  out.release(module_places::kTransformer);
  out.fetch(module_places::lm_head(num_layers));
  out.release(module_places::lm_head(num_layers));
  out.release(module_places::kRoot);
  return out.events;
}

std::vector<HookEvent> backward_events(std::int64_t num_layers) {
  Recorder out;
  out.fetch(module_places::kRoot);
  out.fetch(module_places::lm_head(num_layers));
  out.release(module_places::lm_head(num_layers));
  out.fetch(module_places::kTransformer);
  out.fetch(module_places::ln_f(num_layers));
  out.gradients(2 + 12 * static_cast<std::size_t>(num_layers), false);
  out.release(module_places::ln_f(num_layers));
  for (std::int64_t layer = num_layers; layer-- > 0;) {
    out.select(layer);
    block_backward(out);
  }
  out.fetch(module_places::kDrop);
  out.release(module_places::kDrop);
  out.fetch(module_places::kWpe);
  out.gradient(1);
  out.fetch(module_places::kWte);
  out.gradient(0);
  return out.events;
}

}  // namespace

std::int64_t num_layers_of(const ModelParameters& parameters) {
  return (static_cast<std::int64_t>(parameters.tensors.size()) - 4) / 12;
}

HookTrace make_hook_trace(std::int64_t num_layers) {
  return {forward_events(num_layers), backward_events(num_layers)};
}

}  // namespace dstune::oracle
