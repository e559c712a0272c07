#include "tests/support/offload_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::test {
namespace {

std::string text(const json::value& value) { return std::string(value.as_string()); }

const json::object& fixture() {
  static const json::value root = parse_json(read_text_file(test_data("offload_fixture.json")));
  return root.as_object();
}

ModelParameters model_of(const json::object& row) {
  const json::object& model = fixture().at("models").at(row.at("model").as_string()).as_object();
  ModelParameters result;
  for (const json::value& entry : model.at("parameters").as_array()) {
    ParameterSpec tensor;
    tensor.name = text(entry.at(0));
    for (const json::value& side : entry.at(1).as_array()) {
      tensor.shape.push_back(side.to_number<std::int64_t>());
    }
    result.tensors.push_back(std::move(tensor));
  }
  result.modules.push_back({"", "Model", 0, {}, false});
  for (const json::value& entry : model.at("modules").as_array()) {
    ModuleSpec module{text(entry.at(0)), text(entry.at(1)), 0, {}, true};
    for (const json::value& tensor : entry.at(2).as_array()) {
      module.parameters.push_back(tensor.to_number<std::size_t>());
    }
    module.input_has_gradient = module.class_name != "embedding";
    result.modules.push_back(std::move(module));
  }
  return result;
}

/// The two groups of the fixture are those of weights and of biases, as of a client's optimizer.
void set_groups(const json::array& groups, StepConfig& config, ModelParameters& model) {
  config.optimizer.client = groups.size() > 1;
  config.optimizer.weight_decay = groups.front().at(0).to_number<double>();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const json::value& tensor : groups[i].at(1).as_array()) {
      model.tensors.at(tensor.to_number<std::size_t>()).weight_decay = i == 0;
    }
  }
}

}  // namespace

std::vector<json::object> offload_rows(std::initializer_list<std::string_view> placements) {
  std::vector<json::object> rows;
  for (const json::value& row : fixture().at("rows").as_array()) {
    const std::string_view placement(row.at("placement").as_string());
    if (std::find(placements.begin(), placements.end(), placement) == placements.end()) continue;
    rows.push_back(row.as_object());
  }
  return rows;
}

const json::array& offload_deaths() { return fixture().at("deaths").as_array(); }

HostUse host_use(const json::object& object) {
  HostUse use{object.at("pinned").to_number<Bytes>(), object.at("host").to_number<Bytes>()};
  if (const json::value* const locked = object.if_contains("locked")) {
    use.locked = locked->to_number<Bytes>();
  }
  return use;
}

Bytes sum_without_numbers(const json::object& bytes_by_purpose) {
  Bytes sum = 0;
  for (const auto& [purpose, bytes] : bytes_by_purpose) {
    const bool is_number = purpose == "norm" || purpose == "overflow" || purpose == "swapping";
    if (!is_number) sum += bytes.to_number<Bytes>();
  }
  return sum;
}

void* PinnedRequests::do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) {
  if (tier == Tier::pinned) sizes_.push_back(size);
  use_.at(tier) += size;
  if (use_.total() > peak_.total()) peak_ = use_;
  return do_allocate(category, size);
}

void PinnedRequests::do_free_on_host(Tier tier, void* data, Bytes size) noexcept {
  use_.at(tier) -= size;
  do_free(data, size);
}

RankOfRow::RankOfRow(const json::object& row)
    : config_(make_step_config(row.at("ds_config").as_object())),
      model_(model_of(row)),
      collectives_(device_, row.at("rank").to_number<int>(), row.at("ranks").to_number<int>()) {
  set_groups(row.at("parameter_groups").as_array(), config_, model_);
  EXPECT_EQ(config_.unsupported, std::vector<std::string>{});
  engine_ = make_zero_engine(config_, model_, device_, collectives_, 1);
}

std::map<std::string, Ledger> RankOfRow::step() {
  std::map<std::string, Ledger> phases;
  const auto end = [&](std::int64_t micro_step, std::string_view phase) {
    phases[concat(micro_step, " ", phase)] = device_.ledger();
    device_.ledger().clear();
  };
  device_.ledger().clear();
  device_.begin_peak();
  const std::int64_t last = config_.accumulation_steps - 1;
  for (std::int64_t micro_step = 0; micro_step <= last; ++micro_step) {
    engine_->begin_micro_step(micro_step == last);
    forward();
    end(micro_step, "forward");
    backward();
    end(micro_step, "backward");
  }
  device_after_backward_ = device_.memory().use().total();
  EXPECT_FALSE(engine_->step().overflow);
  end(last, "step");
  return phases;
}

void RankOfRow::forward() {
  engine_->fetch(0);
  for (std::size_t module = 1; module < model_.modules.size(); ++module) {
    engine_->fetch(module);
    engine_->release(module);
  }
  engine_->release(0);
}

void RankOfRow::backward() {
  engine_->fetch_for_backward(0);
  for (std::size_t module = model_.modules.size() - 1; module > 0; --module) {
    engine_->fetch_for_backward(module);
    back_through(model_.modules[module]);
    engine_->release_after_backward(module);
  }
  engine_->release_after_backward(0);
  engine_->end_backward();
}

void RankOfRow::back_through(const ModuleSpec& module) {
  for (auto tensor = module.parameters.rbegin(); tensor != module.parameters.rend(); ++tensor) {
    engine_->gradient_ready(*tensor, make_buffer(device_, MemoryCategory::gradients,
                                                 model_.tensors[*tensor].numel(), config_.dtype));
  }
}

}  // namespace dstune::test
