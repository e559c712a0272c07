// CUDA's qualifiers, on the host.
#pragma once

#include "device_language/qualifiers.h"
