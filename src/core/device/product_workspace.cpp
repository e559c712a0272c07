#include "core/device/product_workspace.hpp"

#include "core/base/json.hpp"

namespace dstune {

json::object to_json(const ProductWorkspace& workspace) {
  return {{"products_bytes", workspace.of_products}, {"biases_bytes", workspace.of_biases}};
}

ProductWorkspace product_workspace_from_json(const json::object& object) {
  return {object.at("products_bytes").to_number<Bytes>(),
          object.at("biases_bytes").to_number<Bytes>()};
}

}  // namespace dstune
