// The version of Tern: the only place where it is written.
#pragma once

#define TERN_VERSION_STRING "0.1.0"
