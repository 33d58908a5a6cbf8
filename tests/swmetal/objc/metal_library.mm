// Libraries (prebuilt or from source) and functions.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dispatch_data.h"
#include "metal_library.h"
#include "metal_objects.h"

namespace swm {
namespace {

constexpr char kMagic[] = "SWMTLIB1";
constexpr size_t kMagicBytes = 8;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string fingerprint(const std::string& bytes) {
  std::uint64_t h = 14695981039346656037u;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016lx", static_cast<unsigned long>(h));
  return text;
}

// Symbolizers of the sanitizers read the file of a module while it is loaded.
constexpr bool kKeepWhileLoaded =
#if defined(SWM_KEEP_MODULES)
    true;
#else
    false;
#endif

id<MTLLibrary> load_module(const std::string& module, NSError** error) {
  const std::string path = temporary_file(".so");
  std::ofstream(path, std::ios::binary) << module;
  auto library = std::make_shared<Library>();
  library->temporary_file = path;
  std::string text;
  library->module = Module::load(path, text);
  if (!library->module) {
    set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorInternal, text);
    return nil;
  }
  if (!kKeepWhileLoaded) {
    unlink(path.c_str());
    library->temporary_file.clear();
  }
  library->identity = fingerprint(module);
  SwmLibrary* result = [SwmLibrary new];
  result->_library = library;
  return result;
}

}  // namespace

Library::~Library() {
  module.reset();
  if (!temporary_file.empty()) unlink(temporary_file.c_str());
}

std::string temporary_file(const std::string& ending) {
  static std::atomic<unsigned> n{0};
  const std::string name =
      "swmetal-" + std::to_string(getpid()) + "-" + std::to_string(n++) + ending;
  return std::filesystem::temp_directory_path() / name;
}

id<MTLLibrary> library_from_archive(const std::string& archive, NSError** error) {
  if (control().fails(SWM_LIBRARY)) {
    set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorInternal, "an injected failure");
    return nil;
  }
  if (archive.size() <= kMagicBytes || std::memcmp(archive.data(), kMagic, kMagicBytes)) {
    set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorInternal,
              "not a library of software Metal: it does not begin with " + std::string(kMagic));
    return nil;
  }
  return load_module(archive.substr(kMagicBytes), error);
}

id<MTLLibrary> library_from_source(const std::string& source, const std::string& flags,
                                   NSError** error) {
  if (control().fails(SWM_LIBRARY)) {
    set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, "an injected failure");
    return nil;
  }
  const std::string in = temporary_file(".metal"), out = temporary_file(".so"), log = in + ".log";
  std::ofstream(in, std::ios::binary) << source;
  const std::string compiler = environment("SWM_COMPILER").value_or(SWM_BUILD_MODULE);
  const std::string extra = environment("SWM_CFLAGS").value_or(SWM_MODULE_FLAGS);
  const std::string command = "'" + compiler + "' '" + in + "' '" + out + "'" + flags + " " +
                              extra + " >'" + log + "' 2>&1";
  const int status = std::system(command.c_str());
  const std::string text = slurp(log), module = slurp(out);
  if (!environment("SWM_KEEP"))
    for (const std::string& file : {in, out, log}) unlink(file.c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) || module.empty()) {
    set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, text);
    return nil;
  }
  return load_module(module, error);
}

std::string Function::identity() const {
  std::string text = library->identity + " " + kernel->name;
  for (size_t i = 0; i < constants.size(); i++) {
    text += " " + std::to_string(kernel->module->constants[i].index) + "=";
    for (const char c : constants[i]) text += std::to_string(static_cast<unsigned char>(c)) + ".";
  }
  return text;
}

std::string Function::unset_constants() const {
  std::string names;
  for (unsigned i = 0; i < kernel->constant_count; i++) {
    const unsigned row = kernel->constants[i];
    if (row < constants.size() && !constants[row].empty()) continue;
    const swm_constant& c = kernel->module->constants[row];
    names += (names.empty() ? "" : ", ") + std::string(c.name) + " (index " +
             std::to_string(c.index) + ")";
  }
  return names;
}

// Fills in the constants that are set; a sentence when one has another type.
static std::string take_constants(Function& function, MTLFunctionConstantValues* values) {
  const swm_module& table = *function.kernel->module;
  function.constants.resize(table.constant_count);
  for (unsigned i = 0; i < table.constant_count; i++) {
    const swm_constant& c = table.constants[i];
    const ConstantValue* value = find_constant(values, c.index, c.name);
    if (!value) continue;
    if (value->type != c.type || value->bytes.size() != c.bytes)
      return "function constant " + std::string(c.name) + " (index " + std::to_string(c.index) +
             ") has type " + std::to_string(c.type) + " in the library and was set with type " +
             std::to_string(value->type);
    function.constants[i] = value->bytes;
  }
  return "";
}

}  // namespace swm

@implementation SwmFunction
- (NSString*)name {
  return swm::ns(_function->kernel->name);
}
- (void)dealloc {
  [_label release];
  [super dealloc];
}
SWM_LABEL
SWM_DEVICE
@end

@implementation SwmLibrary
- (void)dealloc {
  [_label release];
  [super dealloc];
}
- (NSArray*)functionNames {
  std::vector<id> names;
  for (const swm_kernel* k : _library->module->kernels()) names.push_back(swm::ns(k->name));
  return [NSArray arrayWithObjects:names.data() count:names.size()];
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  return [self functionNamed:name values:nil error:nullptr];
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error {
  if (!values) swm::misuse("newFunctionWithName:constantValues: nil values");
  return [self functionNamed:name values:values error:error];
}
- (id<MTLFunction>)functionNamed:(NSString*)name
                          values:(MTLFunctionConstantValues*)values
                           error:(NSError**)error {
  if (!name) swm::misuse("newFunctionWithName: nil");
  auto function = std::make_shared<swm::Function>();
  function->library = _library;
  function->kernel = _library->module->find(name.UTF8String);
  std::string why;
  NSInteger code = MTLLibraryErrorInternal;
  if (swm::control().fails(SWM_FUNCTION)) {
    why = "an injected failure";
  } else if (!function->kernel) {
    why = std::string("there is no kernel ") + name.UTF8String + " in the library";
    code = MTLLibraryErrorFunctionNotFound;
  } else if (values) {
    why = swm::take_constants(*function, values);
  }
  if (!why.empty()) {
    swm::set_error(error, MTLLibraryErrorDomain, code, why);
    return nil;
  }
  SwmFunction* result = [SwmFunction new];
  result->_function = function;
  return result;
}
SWM_LABEL
SWM_DEVICE
@end

@implementation SwmDevice (Libraries)
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error {
  if (!source) swm::misuse("newLibraryWithSource: nil");
  std::string flags;
  if (options && options.mathMode == MTLMathModeFast)
    flags += " -ffast-math -fhonor-infinities -fhonor-nans";
  for (NSString* name in options.preprocessorMacros.allKeys) {
    NSObject* value = [options.preprocessorMacros objectForKey:name];
    flags += std::string(" '-D") + name.UTF8String + "=" + value.description.UTF8String + "'";
  }
  return swm::library_from_source(source.UTF8String, flags, error);
}
- (id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data error:(NSError**)error {
  if (!data) swm::misuse("newLibraryWithData: nil");
  return swm::library_from_archive(swm::bytes_of(data), error);
}
- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)url error:(NSError**)error {
  if (!url) swm::misuse("newLibraryWithURL: nil");
  const std::string path = url.path.UTF8String;
  if (!std::filesystem::is_regular_file(path)) {
    swm::set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorFileNotFound,
                   path + ": there is no such file");
    return nil;
  }
  return swm::library_from_archive(swm::slurp(path), error);
}
@end
