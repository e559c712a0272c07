#include "tests/toy_family/toy_mlp.hpp"

#include "core/input/section_reader.hpp"

namespace dstune::toy_mlp {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr KeyRule kRules[] = {
    text("model_type"),
    integer("vocab_size", 1, 1000),
    integer("hidden_size", 1, 1000),
    integer("inner_size", 1, 1000),
    integer("max_positions", 2, 1000),
};
constexpr Section kToyMlp{.rules = kRules};

}  // namespace

std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& /*warnings*/) {
  const auto faults = problems.count();
  const SectionReader reader(config, kToyMlp, pointer, problems);
  ModelSpec spec;
  reader.read("vocab_size", spec.vocab_size);
  reader.read("hidden_size", spec.hidden_size);
  reader.read("inner_size", spec.inner_size);
  reader.read("max_positions", spec.max_positions);
  if (problems.count() > faults) return std::nullopt;
  return spec;
}

ModelParameters parameters(const ModelSpec& spec) {
  const std::int64_t h = spec.hidden_size;
  const std::int64_t f = spec.inner_size;
  const double stddev = spec.initializer_range;
  ModelBuilder builder;
  const std::size_t root = builder.add_module("", "ToyMlp", 0);
  builder.takes_numbers_only(root);
  builder.add_embedding("embed", root, spec.vocab_size, h, stddev);
  const std::size_t mlp = builder.add_module("mlp", "Mlp", root);
  builder.add_linear("mlp.fc_in", "Conv1D", mlp, {h, f}, f, stddev);
  builder.add_module("mlp.act", "NewGELUActivation", mlp);
  builder.add_linear("mlp.fc_out", "Conv1D", mlp, {f, h}, h, stddev);
  const std::size_t head = builder.add_module("head", "Linear", root);
  builder.add_tensor(head, "weight", {spec.vocab_size, h}, {.stddev = stddev});
  return builder.take();
}

double training_flops(const ModelSpec& spec, std::int64_t tokens,
                      std::int64_t /*sequence_length*/) {
  const auto h = static_cast<double>(spec.hidden_size);
  const double weights =
      2 * h * static_cast<double>(spec.inner_size) + static_cast<double>(spec.vocab_size) * h;
  return 6 * static_cast<double>(tokens) * weights;
}

}  // namespace dstune::toy_mlp
