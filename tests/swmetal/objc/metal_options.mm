// Compile options and values of function constants.
#include <map>

#include "metal_library.h"
#include "support.h"

@implementation MTLCompileOptions
@synthesize preprocessorMacros = _preprocessorMacros;
@synthesize languageVersion = _languageVersion, mathMode = _mathMode;
- (instancetype)init {
  _mathMode = MTLMathModeFast;
  _languageVersion = MTLLanguageVersion3_1;
  return self;
}
- (BOOL)fastMathEnabled {
  return _mathMode == MTLMathModeFast;
}
- (void)setFastMathEnabled:(BOOL)enabled {
  _mathMode = enabled ? MTLMathModeFast : MTLMathModeSafe;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLCompileOptions* copy = [MTLCompileOptions new];
  copy->_preprocessorMacros = [_preprocessorMacros copy];
  copy->_mathMode = _mathMode;
  copy->_languageVersion = _languageVersion;
  return copy;
}
- (void)dealloc {
  [_preprocessorMacros release];
  [super dealloc];
}
@end

struct SwmMTLFunctionConstantValuesState {
  std::map<NSUInteger, swm::ConstantValue> by_index;
  std::map<std::string, swm::ConstantValue> by_name;
};

const swm::ConstantValue* swm::find_constant(MTLFunctionConstantValues* values, unsigned index,
                                             const char* name) {
  const auto& state = *values->_state;
  if (const auto at = state.by_index.find(index); at != state.by_index.end()) return &at->second;
  if (const auto at = state.by_name.find(name); at != state.by_name.end()) return &at->second;
  return nullptr;
}

namespace {

size_t bytes_of(MTLDataType type) {
  switch (type) {
    case MTLDataTypeBool:
    case MTLDataTypeChar:
    case MTLDataTypeUChar:
      return 1;
    case MTLDataTypeHalf:
    case MTLDataTypeShort:
    case MTLDataTypeUShort:
      return 2;
    case MTLDataTypeFloat:
    case MTLDataTypeInt:
    case MTLDataTypeUInt:
      return 4;
    case MTLDataTypeLong:
    case MTLDataTypeULong:
      return 8;
    default:
      swm::misuse("a function constant of type " + std::to_string(type));
  }
}

swm::ConstantValue value_of(const void* value, MTLDataType type) {
  if (!value) swm::misuse("setConstantValue: a null pointer");
  const char* bytes = static_cast<const char*>(value);
  return {type, std::vector<char>(bytes, bytes + bytes_of(type))};
}

}  // namespace

@implementation MTLFunctionConstantValues
- (instancetype)init {
  _state = new SwmMTLFunctionConstantValuesState;
  return self;
}
- (void)dealloc {
  delete _state;
  [super dealloc];
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  _state->by_index[index] = value_of(value, type);
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type withName:(NSString*)name {
  _state->by_name[name.UTF8String] = value_of(value, type);
}
- (void)setConstantValues:(const void*)values type:(MTLDataType)type withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; i++)
    _state->by_index[range.location + i] =
        value_of(static_cast<const char*>(values) + i * bytes_of(type), type);
}
- (void)reset {
  *_state = {};
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLFunctionConstantValues* copy = [MTLFunctionConstantValues new];
  *copy->_state = *_state;
  return copy;
}
@end
