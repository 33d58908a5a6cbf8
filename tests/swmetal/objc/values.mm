// Numbers, collections, errors, URLs, process information and dispatch data.
#include <utility>
#include <vector>

#include "dispatch_data.h"
#include "support.h"

NSErrorUserInfoKey const NSLocalizedDescriptionKey = @"NSLocalizedDescription";

void swm::set_error(NSError** error, NSErrorDomain domain, NSInteger code,
                    const std::string& text) {
  if (!error) return;
  *error = [NSError errorWithDomain:domain
                               code:code
                           userInfo:@{NSLocalizedDescriptionKey : ns(text)}];
}

@implementation NSNumber
static NSNumber* make_number(double real, long integer) {
  NSNumber* n = [[NSNumber new] autorelease];
  n->_real = real;
  n->_integer = integer;
  return n;
}
+ (NSNumber*)numberWithInt:(int)value {
  return make_number(value, value);
}
+ (NSNumber*)numberWithUnsignedInt:(unsigned)value {
  return make_number(value, value);
}
+ (NSNumber*)numberWithLong:(long)value {
  return make_number(double(value), value);
}
+ (NSNumber*)numberWithUnsignedLong:(unsigned long)value {
  return make_number(double(value), long(value));
}
+ (NSNumber*)numberWithLongLong:(long long)value {
  return make_number(double(value), value);
}
+ (NSNumber*)numberWithUnsignedLongLong:(unsigned long long)value {
  return make_number(double(value), long(value));
}
+ (NSNumber*)numberWithBool:(BOOL)value {
  return make_number(value, value);
}
+ (NSNumber*)numberWithFloat:(float)value {
  return make_number(value, long(value));
}
+ (NSNumber*)numberWithDouble:(double)value {
  return make_number(value, long(value));
}
- (int)intValue {
  return int(_integer);
}
- (NSUInteger)unsignedIntegerValue {
  return NSUInteger(_integer);
}
- (BOOL)boolValue {
  return _real != 0;
}
- (double)doubleValue {
  return _real;
}
- (NSString*)stringValue {
  return _real == double(_integer) ? [NSString stringWithFormat:@"%ld", _integer]
                                   : [NSString stringWithFormat:@"%.9g", _real];
}
- (NSString*)description {
  return self.stringValue;
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && ((NSNumber*)other)->_real == _real &&
         ((NSNumber*)other)->_integer == _integer;
}
SWM_COPY_IS_RETAIN
@end

struct SwmNSArrayState {
  std::vector<id> objects;
};

@implementation NSArray
+ (instancetype)array {
  return [self arrayWithObjects:nullptr count:0];
}
+ (instancetype)arrayWithObject:(id)object {
  return [self arrayWithObjects:&object count:1];
}
+ (instancetype)arrayWithObjects:(const id[])objects count:(NSUInteger)count {
  NSArray* a = [[NSArray new] autorelease];
  a->_state = new SwmNSArrayState;
  for (NSUInteger i = 0; i < count; i++) {
    if (!objects[i]) swm::misuse("nil in an array");
    a->_state->objects.push_back([objects[i] retain]);
  }
  return a;
}
- (void)dealloc {
  for (id object : _state->objects) [object release];
  delete _state;
  [super dealloc];
}
- (id)objectAtIndex:(NSUInteger)index {
  if (index >= _state->objects.size()) swm::misuse("an index beyond the end of an array");
  return _state->objects[index];
}
- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return [self objectAtIndex:index];
}
- (NSUInteger)count {
  return _state->objects.size();
}
- (id)firstObject {
  return _state->objects.empty() ? nil : _state->objects[0];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id*)buffer
                                    count:(NSUInteger)count {
  (void)buffer, (void)count;
  if (state->state) return 0;
  state->state = 1;
  state->itemsPtr = _state->objects.data();
  state->mutationsPtr = &state->extra[0];
  return _state->objects.size();
}
SWM_COPY_IS_RETAIN
@end

struct SwmNSDictionaryState {
  std::vector<std::pair<id, id>> pairs;
};

@implementation NSDictionary
+ (instancetype)dictionary {
  return [self dictionaryWithObjects:nullptr forKeys:nullptr count:0];
}
+ (instancetype)dictionaryWithObjects:(const id[])objects
                              forKeys:(const id[])keys
                                count:(NSUInteger)count {
  NSDictionary* d = [[NSDictionary new] autorelease];
  d->_state = new SwmNSDictionaryState;
  for (NSUInteger i = 0; i < count; i++) {
    if (!objects[i] || !keys[i]) swm::misuse("nil in a dictionary");
    d->_state->pairs.emplace_back([keys[i] retain], [objects[i] retain]);
  }
  return d;
}
- (void)dealloc {
  for (auto& [key, object] : _state->pairs) {
    [key release];
    [object release];
  }
  delete _state;
  [super dealloc];
}
- (id)objectForKey:(id)wanted {
  for (auto& [key, object] : _state->pairs)
    if ([key isEqual:wanted]) return object;
  return nil;
}
- (id)objectForKeyedSubscript:(id)key {
  return [self objectForKey:key];
}
- (NSUInteger)count {
  return _state->pairs.size();
}
- (NSArray*)allKeys {
  std::vector<id> keys;
  for (auto& pair : _state->pairs) keys.push_back(pair.first);
  return [NSArray arrayWithObjects:keys.data() count:keys.size()];
}
SWM_COPY_IS_RETAIN
@end

@implementation NSError
+ (instancetype)errorWithDomain:(NSErrorDomain)domain
                           code:(NSInteger)code
                       userInfo:(NSDictionary*)userInfo {
  NSError* e = [[NSError new] autorelease];
  e->_domain = [domain retain];
  e->_code = code;
  e->_userInfo = [userInfo retain];
  return e;
}
- (void)dealloc {
  [_domain release];
  [_userInfo release];
  [super dealloc];
}
- (NSErrorDomain)domain {
  return _domain;
}
- (NSInteger)code {
  return _code;
}
- (NSDictionary*)userInfo {
  return _userInfo;
}
- (NSString*)localizedDescription {
  return [_userInfo objectForKey:NSLocalizedDescriptionKey];
}
- (NSString*)description {
  return [NSString stringWithFormat:@"%@ %ld: %@", _domain, _code, self.localizedDescription];
}
SWM_COPY_IS_RETAIN
@end

@implementation NSURL
+ (NSURL*)fileURLWithPath:(NSString*)path {
  NSURL* u = [[NSURL new] autorelease];
  u->_path = [path copy];
  return u;
}
- (void)dealloc {
  [_path release];
  [super dealloc];
}
- (NSString*)path {
  return _path;
}
SWM_COPY_IS_RETAIN
@end

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  return [[NSProcessInfo new] autorelease];
}
- (NSOperatingSystemVersion)operatingSystemVersion {
  return {15, 0, 0};
}
- (NSString*)operatingSystemVersionString {
  return @"Version 15.0 (software Metal)";
}
@end

struct SwmOS_dispatch_dataState {
  std::string bytes;
  dispatch_block_t destructor = nil;
};

@implementation OS_dispatch_data
- (void)dealloc {
  if (_state->destructor) {
    _state->destructor();
    _Block_release((void*)_state->destructor);
  }
  delete _state;
  [super dealloc];
}
@end

dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue,
                                     dispatch_block_t destructor) {
  (void)queue;
  OS_dispatch_data* d = [OS_dispatch_data new];
  d->_state = new SwmOS_dispatch_dataState;
  d->_state->bytes.assign(static_cast<const char*>(bytes), size);
  if (destructor) d->_state->destructor = (dispatch_block_t)_Block_copy((void*)destructor);
  return d;
}

const std::string& swm::bytes_of(dispatch_data_t data) { return data->_state->bytes; }
