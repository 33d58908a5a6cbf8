// `tern logits`: the model's logits, and layer outputs, for given token ids, as a safetensors file.
#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/file_text.h"
#include "cli/model_setup.h"
#include "cli/progress_bar.h"
#include "cli/safetensors_writer.h"
#include "cli/values.h"
#include "tern/version.h"

namespace tern::cli {
namespace {

std::vector<std::int32_t> read_ids(const Context& context) {
  const Arguments& arguments = context.arguments;
  const bool is_file = arguments.has(Flag::kTokenIdsFile);
  if (is_file == arguments.has(Flag::kTokenIds)) {
    fail(ErrorCode::kUsage, "--token-ids",
         "give one of --token-ids \"1,2,3\" and --token-ids-file FILE");
  }
  const std::string subject =
      is_file ? arguments.text(Flag::kTokenIdsFile) : arguments.spelling(Flag::kTokenIds);
  const auto ids = parse_ids(is_file ? read_file(subject, InputLimit::kPrompt, context.interrupt)
                                     : arguments.text(Flag::kTokenIds));
  if (!ids) fail(ErrorCode::kInvalidArgument, subject, "is no list of token ids such as 1,2,3");
  if (ids->empty()) fail(ErrorCode::kInvalidArgument, subject, "there is no token id");
  return *ids;
}

LogitsRequest make_request(const Arguments& arguments, std::vector<std::int32_t> ids) {
  LogitsRequest request;
  const auto count = static_cast<std::int64_t>(ids.size());
  request.ids = std::move(ids);
  request.taps = arguments.on(Flag::kTaps);
  for (const Flag flag : {Flag::kLast, Flag::kDecodeLast}) {
    if (arguments.has(flag) && arguments.integer(flag) > count) {
      fail(ErrorCode::kInvalidArgument, arguments.spelling(flag), "{} is more than the {} ids",
           arguments.integer(flag), count);
    }
  }
  if (arguments.has(Flag::kLast)) request.last = arguments.integer(Flag::kLast);
  request.decode = arguments.integer(Flag::kDecodeLast);
  return request;
}

void check_ids(const Model& model, const std::vector<std::int32_t>& ids) {
  const std::string& path = model.info().path;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= model.info().vocabulary) {
      fail(ErrorCode::kInvalidArgument, path, "id {} at position {} is outside of 0 .. {}", ids[i],
           i, model.info().vocabulary - 1);
    }
  }
  if (static_cast<std::int64_t>(ids.size()) > model.context_size()) {
    fail(ErrorCode::kContextOverflow, path, "{} ids do not fit the context of {} tokens",
         ids.size(), model.context_size());
  }
}

void write_result(const Arguments& arguments, const Engine& engine, const Model& model,
                  const std::vector<std::int32_t>& ids, const std::vector<NamedTensor>& tensors,
                  WrittenFile& file) {
  std::vector<TensorToWrite> rows;
  rows.push_back(
      {"input_ids", "I32", {static_cast<std::int64_t>(ids.size())}, std::as_bytes(std::span(ids))});
  for (const NamedTensor& tensor : tensors) {
    rows.push_back({tensor.name, "F32", tensor.shape, std::as_bytes(std::span(tensor.values))});
  }
  const std::vector<std::pair<std::string, std::string>> metadata = {
      {"model", base_name(model.info().path)},
      {"architecture", model.info().architecture},
      {"activations", arguments.text(Flag::kActivations)},
      {"type_k", arguments.text(Flag::kCacheTypeK)},
      {"type_v", arguments.text(Flag::kCacheTypeV)},
      {"device", engine.device_text()},
      {"threads", std::to_string(engine.threads())},
      {"version", TERN_VERSION_STRING},
  };
  write_safetensors(file, rows, metadata);
  file.commit();
}

}  // namespace

int logits_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string path = only_model(arguments);
  const EngineOptions engine_choice = engine_options(arguments);
  const ModelOptions model_choice = model_options(arguments);
  if (!arguments.has(Flag::kOutput)) {
    fail(ErrorCode::kUsage, "--output", "say where the result goes: -o FILE.safetensors");
  }
  const std::string output = arguments.text(Flag::kOutput);
  WrittenFile::refuse_input(output, path);
  if (arguments.has(Flag::kTokenIdsFile)) {
    WrittenFile::refuse_input(output, arguments.text(Flag::kTokenIdsFile));
  }
  print_settings(context);
  const LogitsRequest request = make_request(arguments, read_ids(context));
  WrittenFile file(output, arguments.on(Flag::kForce));

  ProgressBar bar(
      progress_mode(arguments.text(Flag::kProgress), arguments.on(Flag::kQuiet), context.terminal));
  const Engine engine = Engine::create(engine_choice).value();
  const Model model =
      take(path, engine.open(path, model_choice, bar.callback(), context.interrupt.token()));
  bar.close();
  print_start(context, engine, model);
  check_ids(model, request.ids);
  const std::vector<NamedTensor> tensors =
      take(path, model.logits(request, bar.callback(), context.interrupt.token()));
  bar.close();
  write_result(arguments, engine, model, request.ids, tensors, file);
  return kExitOk;
}

}  // namespace tern::cli
