// Access to the bytes of a dispatch_data_t.
#pragma once

#import <dispatch/dispatch.h>

#include <string>

namespace swm {

const std::string& bytes_of(dispatch_data_t data);

}  // namespace swm
