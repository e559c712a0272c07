#include "core/config/model/model_parallel.hpp"

#include "core/base/text.hpp"

namespace dstune {

namespace {

std::int64_t divided(std::int64_t number, std::int64_t parts) {
  return (number + parts - 1) / parts;
}

}  // namespace

ModelSpec part_of_one_rank(ModelSpec model, int mp_size, Problems& problems) {
  if (mp_size == 1) return model;
  if (mp_size > model.num_layers) {
    problems.add("/autotuning/mp_size", concat("is ", mp_size, "; accepted: at most ",
                                               model.num_layers, ", the layers of dstune.model"));
    return model;
  }
  model.name = concat(model.name, "/", mp_size);
  model.num_layers = divided(model.num_layers, mp_size);
  model.vocab_size = divided(model.vocab_size, mp_size);
  return model;
}

std::string note_of_model_parallelism(int mp_size, std::int64_t whole, std::int64_t part) {
  if (mp_size == 1) return "";
  return concat("mp_size ", mp_size, ": a rank holds ", part, " of ", whole, " parameters, one of ",
                mp_size,
                " parts of the layers and of the vocabulary; communication within a model-parallel "
                "group, its waits and what it splits otherwise are not modelled");
}

}  // namespace dstune
