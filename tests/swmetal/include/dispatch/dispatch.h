// dispatch_data_t, the only part of libdispatch that loading a Metal library needs. Test only.
#pragma once

#import <Foundation/Foundation.h>

@interface OS_dispatch_data : NSObject {
 @public
  struct SwmOS_dispatch_dataState* _state;
}
@end
typedef OS_dispatch_data* dispatch_data_t;
typedef void* dispatch_queue_t;
typedef void (^dispatch_block_t)(void);
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT ((dispatch_block_t) nullptr)

// The default destructor stands for a copy of the bytes; another block is called when the object
// goes.
FOUNDATION_EXPORT dispatch_data_t
dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue,
                     dispatch_block_t destructor) NS_RETURNS_RETAINED;
#if !__has_feature(objc_arc)
static inline void dispatch_release(dispatch_data_t object) { [object release]; }
static inline void dispatch_retain(dispatch_data_t object) { [object retain]; }
#endif
