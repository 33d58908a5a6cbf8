// The part of Foundation that Metal host code touches, declared for Linux. Test only. Declarations
// follow Apple's documentation; the wording is ours.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define nil nullptr
#define Nil nullptr
#define FOUNDATION_EXPORT extern "C"
#else
#define nil ((id)0)
#define Nil ((Class)0)
#define FOUNDATION_EXPORT extern
#endif
#define NS_ENUM(type, name) \
  enum name : type name;    \
  enum name : type
// A plain integer type, as Apple's headers have it in C++.
#define NS_OPTIONS(type, name) \
  type name;                   \
  enum : type
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#define API_AVAILABLE(...)
#define API_DEPRECATED(...)
#if __has_feature(objc_arc)
#define SWM_NOT_UNDER_ARC __attribute__((unavailable("automatic reference counting does this")))
#else
#define SWM_NOT_UNDER_ARC
#endif

typedef bool BOOL;
#define YES true
#define NO false
typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef double CFTimeInterval;
typedef double NSTimeInterval;
typedef struct _NSRange {
  NSUInteger location, length;
} NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange range = {location, length};
  return range;
}
typedef struct _NSZone NSZone;
typedef struct {
  NSInteger majorVersion, minorVersion, patchVersion;
} NSOperatingSystemVersion;

@class NSString, NSError, NSArray, NSDictionary, Protocol;

@protocol NSObject
- (instancetype)retain SWM_NOT_UNDER_ARC;
- (oneway void)release SWM_NOT_UNDER_ARC;
- (instancetype)autorelease SWM_NOT_UNDER_ARC;
- (NSUInteger)retainCount SWM_NOT_UNDER_ARC;
- (instancetype)self;
- (Class)class;
- (BOOL)isKindOfClass:(Class)kind;
- (BOOL)respondsToSelector:(SEL)selector;
- (BOOL)conformsToProtocol:(Protocol*)protocol;
- (BOOL)isEqual:(id)other;
@property(readonly) NSUInteger hash;
@property(readonly) NSString* description;
@end

@protocol NSCopying
- (id)copyWithZone:(NSZone*)zone;
@end

__attribute__((objc_root_class))
@interface NSObject<NSObject> {
  Class isa;
  int _references;
}
+ (instancetype)alloc;
+ (instancetype)new;
- (instancetype)init;
- (void)dealloc;
+ (Class)class;
- (id)copy;
@end

@interface NSAutoreleasePool : NSObject {
  void* _token;
}
- (void)drain;
@end

typedef struct {
  unsigned long state;
  id __unsafe_unretained* itemsPtr;
  unsigned long* mutationsPtr;
  unsigned long extra[5];
} NSFastEnumerationState;
@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained*)buffer
                                    count:(NSUInteger)count;
@end

typedef NSUInteger NSStringEncoding;
enum : NSStringEncoding { NSUTF8StringEncoding = 4 };

// Immutable UTF-8. The first two fields are what the compiler writes for a literal, after its
// class.
@interface NSString : NSObject <NSCopying> {
 @public
  const char* _text;
  unsigned _length;
}
+ (instancetype)string;
+ (instancetype)stringWithUTF8String:(const char*)text;
+ (instancetype)stringWithFormat:(NSString*)format, ...;
- (instancetype)initWithUTF8String:(const char*)text;
- (instancetype)initWithBytes:(const void*)bytes
                       length:(NSUInteger)length
                     encoding:(NSStringEncoding)encoding;
- (NSString*)stringByAppendingString:(NSString*)other;
- (BOOL)isEqualToString:(NSString*)other;
- (BOOL)hasPrefix:(NSString*)prefix;
@property(readonly) const char* UTF8String;
@property(readonly) NSUInteger length;
@end
@interface NSConstantString : NSString
@end

@interface NSNumber : NSObject <NSCopying> {
  double _real;
  long _integer;
}
+ (NSNumber*)numberWithInt:(int)value;
+ (NSNumber*)numberWithUnsignedInt:(unsigned)value;
+ (NSNumber*)numberWithLong:(long)value;
+ (NSNumber*)numberWithUnsignedLong:(unsigned long)value;
+ (NSNumber*)numberWithLongLong:(long long)value;
+ (NSNumber*)numberWithUnsignedLongLong:(unsigned long long)value;
+ (NSNumber*)numberWithBool:(BOOL)value;
+ (NSNumber*)numberWithFloat:(float)value;
+ (NSNumber*)numberWithDouble:(double)value;
@property(readonly) int intValue;
@property(readonly) NSUInteger unsignedIntegerValue;
@property(readonly) BOOL boolValue;
@property(readonly) double doubleValue;
@property(readonly) NSString* stringValue;
@end

@interface NSArray<__covariant Element> : NSObject <NSCopying, NSFastEnumeration> {
 @public
  struct SwmNSArrayState* _state;
}
+ (instancetype)array;
+ (instancetype)arrayWithObject:(Element)object;
+ (instancetype)arrayWithObjects:(const Element[])objects count:(NSUInteger)count;
- (Element)objectAtIndex:(NSUInteger)index;
- (Element)objectAtIndexedSubscript:(NSUInteger)index;
@property(readonly) NSUInteger count;
@property(readonly) Element firstObject;
@end

@interface NSDictionary<__covariant Key, __covariant Value> : NSObject <NSCopying> {
 @public
  struct SwmNSDictionaryState* _state;
}
+ (instancetype)dictionary;
+ (instancetype)dictionaryWithObjects:(const Value[])objects
                              forKeys:(const Key[])keys
                                count:(NSUInteger)count;
- (Value)objectForKey:(Key)key;
- (Value)objectForKeyedSubscript:(Key)key;
@property(readonly) NSUInteger count;
@property(readonly) NSArray<Key>* allKeys;
@end

typedef NSString* NSErrorDomain;
typedef NSString* NSErrorUserInfoKey;
FOUNDATION_EXPORT NSErrorUserInfoKey const NSLocalizedDescriptionKey;

@interface NSError : NSObject <NSCopying> {
  NSString* _domain;
  NSInteger _code;
  NSDictionary* _userInfo;
}
+ (instancetype)errorWithDomain:(NSErrorDomain)domain
                           code:(NSInteger)code
                       userInfo:(NSDictionary<NSErrorUserInfoKey, id>*)userInfo;
@property(readonly) NSErrorDomain domain;
@property(readonly) NSInteger code;
@property(readonly) NSDictionary<NSErrorUserInfoKey, id>* userInfo;
@property(readonly) NSString* localizedDescription;
@end

@interface NSURL : NSObject <NSCopying> {
  NSString* _path;
}
+ (NSURL*)fileURLWithPath:(NSString*)path;
@property(readonly) NSString* path;
@end

@interface NSProcessInfo : NSObject
+ (NSProcessInfo*)processInfo;
@property(readonly) NSOperatingSystemVersion operatingSystemVersion;
@property(readonly) NSString* operatingSystemVersionString;
@end

FOUNDATION_EXPORT void NSLog(NSString* format, ...);
