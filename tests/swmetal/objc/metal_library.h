// Loading of libraries, and the values of function constants.
#pragma once

#import <Metal/Metal.h>

#include <string>
#include <vector>

namespace swm {

struct ConstantValue {
  MTLDataType type = MTLDataTypeNone;
  std::vector<char> bytes;
};
// nullptr: not set.
const ConstantValue* find_constant(MTLFunctionConstantValues* values, unsigned index,
                                   const char* name);

std::string temporary_file(const std::string& ending);
id<MTLLibrary> library_from_archive(const std::string& archive,
                                    NSError** error) NS_RETURNS_RETAINED;
// Runs tools/build_module.sh; its output is the error's text.
id<MTLLibrary> library_from_source(const std::string& source, const std::string& flags,
                                   NSError** error) NS_RETURNS_RETAINED;

}  // namespace swm
