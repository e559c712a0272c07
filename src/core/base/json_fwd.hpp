// The names of JSON types without Boost.JSON, for headers that only pass JSON on.
#pragma once

#include <boost/json/fwd.hpp>

namespace dstune {

namespace json = boost::json;

}  // namespace dstune
