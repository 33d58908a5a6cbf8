// What the Objective-C parts of the emulator share: the runtime's functions, misuse, strings,
// errors.
#pragma once

#import <Foundation/Foundation.h>

#include <string>

extern "C" {
size_t class_getInstanceSize(Class);
const char* class_getName(Class);
Class class_getSuperclass(Class);
BOOL class_respondsToSelector(Class, SEL);
BOOL class_conformsToProtocol(Class, Protocol*);
void (*class_getMethodImplementation(Class, SEL))(void);
Class objc_getClass(const char*);
SEL sel_registerName(const char*);
const char* sel_getName(SEL);
void* _Block_copy(const void*);
void _Block_release(const void*);
}

namespace swm {

// What Metal's validation layer or the runtime would stop: says what, and aborts.
[[noreturn]] void misuse(const std::string& what);

inline NSString* ns(const std::string& text) {
  return [NSString stringWithUTF8String:text.c_str()];
}
// As -[NSString stringWithFormat:], %@ included.
std::string format(NSString* format, va_list arguments);
// Sets *error, if anyone asks for it.
void set_error(NSError** error, NSErrorDomain domain, NSInteger code, const std::string& text);

}  // namespace swm

#define SWM_COPY_IS_RETAIN            \
  -(id)copyWithZone : (NSZone*)zone { \
    (void)zone;                       \
    return [self retain];             \
  }
