// NSString, its formats, and NSLog.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support.h"

namespace {

char* duplicate(const void* bytes, size_t length) {
  char* copy = static_cast<char*>(std::malloc(length + 1));
  std::memcpy(copy, bytes, length);
  copy[length] = 0;
  return copy;
}

// Formats one conversion such as "%-5.2lf", whose last letter is `kind`.
std::string convert(const std::string& conversion, char kind, va_list* arguments) {
  if (kind == '@') {
    id object = va_arg(*arguments, id);
    return object ? [[object description] UTF8String] : "(null)";
  }
  char text[512];
  if (std::strchr("fFgGeE", kind)) {
    std::snprintf(text, sizeof text, conversion.c_str(), va_arg(*arguments, double));
  } else if (kind == 's') {
    return va_arg(*arguments, const char*);
  } else if (conversion.find('l') != std::string::npos ||
             conversion.find('z') != std::string::npos || kind == 'p') {
    std::snprintf(text, sizeof text, conversion.c_str(), va_arg(*arguments, long));
  } else {
    std::snprintf(text, sizeof text, conversion.c_str(), va_arg(*arguments, int));
  }
  return text;
}

}  // namespace

std::string swm::format(NSString* format, va_list arguments) {
  std::string result;
  va_list rest;
  va_copy(rest, arguments);
  for (const char* p = format.UTF8String; *p; p++) {
    if (*p != '%') {
      result += *p;
      continue;
    }
    std::string conversion = "%";
    while (*++p && std::strchr("0123456789.-+ #lzh", *p)) conversion += *p;
    if (!*p) break;
    conversion += *p;
    result += *p == '%' ? "%" : convert(conversion, *p, &rest);
  }
  va_end(rest);
  return result;
}

@implementation NSString
+ (instancetype)string {
  return [self stringWithUTF8String:""];
}
+ (instancetype)stringWithUTF8String:(const char*)text {
  return [[[NSString alloc] initWithUTF8String:text] autorelease];
}
+ (instancetype)stringWithFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = swm::format(format, arguments);
  va_end(arguments);
  return [self stringWithUTF8String:text.c_str()];
}
- (instancetype)initWithUTF8String:(const char*)text {
  if (!text) swm::misuse("a string of a null pointer");
  return [self initWithBytes:text length:std::strlen(text) encoding:NSUTF8StringEncoding];
}
- (instancetype)initWithBytes:(const void*)bytes
                       length:(NSUInteger)length
                     encoding:(NSStringEncoding)encoding {
  if (encoding != NSUTF8StringEncoding) swm::misuse("strings are UTF-8 here");
  _text = duplicate(bytes, length);
  _length = unsigned(length);
  return self;
}
- (void)dealloc {
  std::free(const_cast<char*>(_text));
  [super dealloc];
}
- (const char*)UTF8String {
  return _text;
}
- (NSUInteger)length {
  return _length;
}
SWM_COPY_IS_RETAIN
- (NSString*)description {
  return self;
}
- (NSUInteger)hash {
  NSUInteger h = 5381;
  for (const char* p = self.UTF8String; *p; p++) h = h * 33 + static_cast<unsigned char>(*p);
  return h;
}
- (NSString*)stringByAppendingString:(NSString*)other {
  return swm::ns(std::string(self.UTF8String) + other.UTF8String);
}
- (BOOL)isEqualToString:(NSString*)other {
  return other && !std::strcmp(self.UTF8String, other.UTF8String);
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSString class]] && [self isEqualToString:other];
}
- (BOOL)hasPrefix:(NSString*)prefix {
  return !std::strncmp(self.UTF8String, prefix.UTF8String, prefix.length);
}
@end

namespace {

// What the compiler writes for @"...": there is no room for a reference count.
struct Literal {
  Class isa;
  const char* text;
  unsigned length;
};

const Literal& literal(NSConstantString* s) { return *reinterpret_cast<Literal*>((void*)s); }

}  // namespace

@implementation NSConstantString
- (const char*)UTF8String {
  return literal(self).text;
}
- (NSUInteger)length {
  return literal(self).length;
}
- (instancetype)retain {
  return self;
}
- (oneway void)release {
}
- (instancetype)autorelease {
  return self;
}
- (NSUInteger)retainCount {
  return ~0ul;
}
@end

void NSLog(NSString* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = swm::format(format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "%s\n", text.c_str());
}
