// A stranger's program: opens a model through the installed library, answers with it, and meets a
// file that is no model.
//
// usage: tern_user MODEL.gguf        exit code 0 when everything came as expected
#include <tern/engine.h>
#include <tern/version.h>

#include <cstdio>
#include <string>

namespace {

bool check(const char* what, bool ok) {
  std::printf("%s  %s\n", ok ? "ok    " : "FAILED", what);
  return ok;
}

// The library's whole way from a file to text, with two sessions of one model beside each other.
bool use_model(const tern::Engine& engine, const std::string& path) {
  tern::ModelOptions options;
  options.context = 256;
  auto model = engine.open(path, options, {}, {}).value();
  bool ok = check("the model has a vocabulary", model.tokenizer().size() > 0);

  tern::EncodeOptions plain;
  plain.add_special = false;
  const auto ids = model.tokenizer().encode("hello hello", plain).value();
  ok &= check("text becomes ids", !ids.empty());
  ok &= check("ids become the text again",
              model.tokenizer().decode(ids, false).value() == "hello hello");

  tern::GenerateRequest request;
  request.prompt = ids;
  request.max_tokens = 4;
  request.ignore_end_tokens = true;
  request.sampling = model.default_sampling();
  request.sampling.temperature = 0;
  auto first = model.session({}).value();
  auto second = model.session({}).value();
  const auto answer = first.generate(request, {}, {}, {}).value();
  const auto again = second.generate(request, {}, {}, {}).value();
  ok &= check("four tokens come back", answer.ids.size() == 4);
  ok &= check("another session gives the same", answer.ids == again.ids);
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
    return 2;
  }
  std::printf("tern %s\n", TERN_VERSION_STRING);
  try {
    const auto engine = tern::Engine::create({}).value();
    bool ok = use_model(engine, argv[1]);
    const auto refused = engine.open(argv[0], {}, {}, {});
    ok &= check("a program is not a model", !refused.ok());
    if (!refused.ok()) std::printf("        %s\n", refused.error().message().c_str());
    return ok ? 0 : 1;
  } catch (const tern::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
