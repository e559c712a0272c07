// For headers that only pass JSON on: its names without Boost.JSON behind them.
#pragma once

#include <boost/json/fwd.hpp>

namespace dstune {

namespace json = boost::json;

}  // namespace dstune
