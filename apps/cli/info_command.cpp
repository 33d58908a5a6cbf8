// `tern info`: what is in a file, what it needs, what will run it. Reads headers only.
#include <algorithm>
#include <set>

#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/file_text.h"
#include "cli/info_json.h"
#include "cli/model_setup.h"
#include "cli/table.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

// Sections of "  name        value" lines.
class Report {
 public:
  void section(std::string_view title) {
    if (!text_.empty()) text_ += "\n";
    text_ += std::string(title) + "\n";
  }
  void line(std::string_view name, std::string_view value) {
    text_ += fmt::format("  {:<12}{}\n", name, visible(value, true));
  }
  void block(const std::string& text) { text_ += text; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string dimensions(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

void report_file(Report& report, const ModelInfo& info, const std::string& sha256) {
  report.section("file");
  report.line("path", info.path);
  report.line("container", fmt::format("{}, alignment {}", info.container, info.alignment));
  report.line("size", fmt::format("{} bytes ({}), {} tensors with {} bytes",
                                  grouped(info.file_bytes), binary_size(info.file_bytes),
                                  info.tensors.size(), grouped(info.data_bytes)));
  if (!sha256.empty()) report.line("sha256", sha256);
}

void report_model(Report& report, const ModelInfo& info) {
  report.section("model");
  if (!info.name.empty()) report.line("name", info.name);
  report.line("type",
              fmt::format("{}, {} weights", model_type(info), parameter_count(info.parameters)));
  report.line("layers", fmt::format("{}, {} wide, feed-forward {}", info.layers, info.hidden,
                                    info.feed_forward));
  report.line("heads", fmt::format("{} of {}, keys and values {}", info.heads, info.head_dim,
                                   info.kv_heads));
  report.line("vocabulary",
              fmt::format("{}{}", grouped(static_cast<std::uint64_t>(info.vocabulary)),
                          info.tied_embeddings ? ", embeddings tied to the head" : ""));
  report.line("context", grouped(static_cast<std::uint64_t>(info.context_length)));
  report.line("rope", info.rope);
}

void report_weights(Report& report, const ModelInfo& info) {
  report.section("weights");
  Table table({"type", ">tensors", ">weights", ">bytes", ">bits each"});
  for (const WeightTypeSummary& type : info.types) {
    const double bits =
        type.weights == 0 ? 0
                          : static_cast<double>(type.bytes) * 8 / static_cast<double>(type.weights);
    table.add({type.type, fmt::format("{}", type.tensors), grouped(type.weights),
               grouped(type.bytes), fmt::format("{:.3f}", bits)});
  }
  report.block(table.text("  "));
}

void report_tokenizer(Report& report, const ModelInfo& info) {
  report.section("tokenizer");
  report.line("model", info.tokenizer_model.empty() ? "none" : info.tokenizer_model);
  report.line("split rule", info.pre_tokenizer);
  report.line("tokens",
              fmt::format("{}, {} of them special",
                          grouped(static_cast<std::uint64_t>(info.tokens)), info.special_tokens));
  report.line("template", info.has_chat_template ? "yes (--template prints it)" : "no");
}

void report_needs(Report& report, const ModelInfo& info, const Arguments& arguments) {
  const MemoryNeeds& needs = info.needs;
  report.section("needs");
  report.line("weights", binary_size(needs.weights));
  report.line("context", binary_size(needs.kv_per_position * 1000) + " per 1,000 tokens");
  report.line("work", binary_size(needs.arena));
  std::set<std::uint64_t> sizes = {4096, 8192, 32768,
                                   static_cast<std::uint64_t>(info.context_length)};
  if (arguments.has(Flag::kCtxSize)) {
    sizes.insert(static_cast<std::uint64_t>(arguments.integer(Flag::kCtxSize)));
  }
  for (const std::uint64_t size : sizes) {
    if (size == 0 || size > static_cast<std::uint64_t>(info.context_length)) continue;
    report.line(fmt::format("-c {}", size), binary_size(needs.total(size)));
  }
}

void report_runs(Report& report, const ModelInfo& info, const InfoExtras& extras) {
  report.section("runs");
  if (!info.cannot_run.empty()) {
    report.line("no", info.cannot_run);
    return;
  }
  report.line("device", info.device);
  for (const std::string& kernel : info.kernels) report.line("kernel", kernel);
  if (info.bytes_per_token == 0) return;
  if (extras.read_gbps > 0) {
    report.line("speed",
                fmt::format("about {:.1f} tokens/s: {} per token at {:.2f} GB/s",
                            extras.read_gbps * 1e9 / static_cast<double>(info.bytes_per_token),
                            binary_size(info.bytes_per_token), extras.read_gbps));
  } else {
    report.line("speed", extras.not_measured);
  }
  if (extras.fits_cache) report.line("cache", "holds all that a token reads: it may be faster");
}

void report_lists(Report& report, const ModelInfo& info, const Arguments& arguments) {
  if (arguments.on(Flag::kKeys)) {
    report.section("keys");
    Table table({"key", "type", "value"});
    for (const MetadataEntry& entry : info.metadata) {
      table.add({visible(entry.key, true), visible(entry.type, true), visible(entry.value, true)});
    }
    report.block(table.text("  "));
  }
  if (arguments.on(Flag::kTensors)) {
    report.section("tensors");
    Table table({"name", "type", "shape", ">offset", ">bytes"});
    for (const TensorEntry& tensor : info.tensors) {
      table.add({visible(tensor.name, true), visible(tensor.type, true), dimensions(tensor.shape),
                 grouped(tensor.offset), grouped(tensor.bytes)});
    }
    report.block(table.text("  "));
  }
}

std::string report_text(const ModelInfo& info, const Arguments& arguments,
                        const InfoExtras& extras) {
  Report report;
  report_file(report, info, extras.sha256);
  report_model(report, info);
  report_weights(report, info);
  report_tokenizer(report, info);
  if (info.cannot_run.empty()) report_needs(report, info, arguments);
  report_runs(report, info, extras);
  if (!info.warnings.empty()) {
    report.section("warnings");
    for (const std::string& warning : info.warnings) report.line("-", warning);
  }
  report_lists(report, info, arguments);
  return report.text();
}

// What the device reads per second, as far as that can be said in a moment.
void measure(const Engine& engine, const ModelInfo& info, const Interrupt& interrupt,
             InfoExtras& extras) {
  extras.fits_cache = info.bytes_per_token > 0 && info.bytes_per_token <= engine.last_cache_bytes();
  const Result<double> gbps = engine.estimate_read_gbps(interrupt.token());
  if (gbps.ok()) {
    extras.read_gbps = *gbps;
  } else if (gbps.error().code() == ErrorCode::kCancelled) {
    throw about("info", gbps.error());
  } else {
    extras.not_measured = gbps.error().message();
  }
}

}  // namespace

int info_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string path = only_model(arguments);
  const EngineOptions engine_choice = engine_options(arguments);
  const ModelOptions model_choice = model_options(arguments);
  print_settings(context);
  const Engine engine = Engine::create(engine_choice).value();
  const ModelInfo info = take(path, engine.inspect(path, model_choice));
  if (arguments.on(Flag::kTemplateText)) {
    if (!info.has_chat_template) fail(ErrorCode::kNotFound, path, "has no chat template");
    context.output.write_text(info.chat_template);
    return kExitOk;
  }
  InfoExtras extras;
  if (arguments.on(Flag::kHash)) extras.sha256 = sha256_of_file(path, context.interrupt);
  if (info.cannot_run.empty()) measure(engine, info, context.interrupt, extras);
  if (arguments.on(Flag::kJson)) {
    context.output.write(
        info_json(info, extras, arguments.on(Flag::kKeys), arguments.on(Flag::kTensors)) + "\n");
  } else {
    context.output.write(report_text(info, arguments, extras));
  }
  return kExitOk;
}

}  // namespace tern::cli
