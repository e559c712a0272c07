// The rules of DeBERTa's config.json that no table of keys can say.
#pragma once

#include <string_view>

#include "core/base/json_fwd.hpp"
#include "core/input/problems.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::deberta {

/// pos_att_type: "c2p|p2c", or a list of the two.
void read_pos_att_type(const json::object& config, std::string_view pointer,
                       DebertaSettings& settings, Problems& problems);

/// Reports which of the values that were read contradict each other, or are not modelled together.
void check(const json::object& config, const ModelSpec& spec, const DebertaSettings& settings,
           std::string_view pointer, Problems& problems);

}  // namespace dstune::deberta
