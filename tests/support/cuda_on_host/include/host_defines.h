// CUDA's qualifiers, on the host.
#pragma once
#pragma GCC system_header

#include "device_language/qualifiers.h"
