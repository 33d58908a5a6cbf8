// `tern run`: one answer to one prompt, streamed to stdout.
#include <exception>

#include "cli/chat.h"
#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/model_setup.h"
#include "cli/progress_bar.h"
#include "cli/prompt_source.h"
#include "cli/utf8_text.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

GenerateRequest generate_request(const Arguments& arguments, const SamplingOptions& defaults) {
  GenerateRequest request;
  request.max_tokens = arguments.integer(Flag::kNPredict);
  request.min_tokens = arguments.integer(Flag::kMinTokens);
  request.ignore_end_tokens = arguments.on(Flag::kIgnoreEos);
  request.sampling = sampling_options(arguments, defaults);
  for (const std::string& text : arguments.list(Flag::kReversePrompt)) {
    if (text.empty()) {
      fail(ErrorCode::kUsage, arguments.spelling(Flag::kReversePrompt),
           "an empty text would end every answer");
    }
    request.stop.push_back(arguments.on(Flag::kEscape) ? unescape(text) : text);
  }
  return request;
}

void print_prompt(const Context& context, const Tokenizer& tokenizer,
                  const std::vector<std::int32_t>& ids) {
  print_line(context.terminal.dimmed(fmt::format("prompt: {} tokens", ids.size())));
  for (const std::int32_t id : ids) {
    const std::string piece = take("prompt", tokenizer.piece(id));
    print_line(context.terminal.dimmed(fmt::format("{:6}  {}", id, visible(piece, true))));
  }
}

// Rates of fewer than 8 tokens say nothing.
std::string tokens_and_rate(std::int64_t tokens, double seconds) {
  std::string text = fmt::format("{} tok", tokens);
  if (tokens >= 8 && seconds > 0) {
    text += fmt::format(", {:.1f} t/s", static_cast<double>(tokens) / seconds);
  }
  return text;
}

void print_figures(const Context& context, const GenerateStats& stats, const Session& session) {
  std::string prompt = tokens_and_rate(stats.prompt_tokens, stats.prompt_seconds);
  if (stats.cached_tokens > 0) prompt += fmt::format(" ({} cached)", stats.cached_tokens);
  print_line(context.terminal.dimmed(fmt::format(
      "[ prompt {} | generated {} | {:.1f} s | ctx {}/{} ]", prompt,
      tokens_and_rate(stats.generated_tokens, stats.generate_seconds),
      stats.prompt_seconds + stats.generate_seconds, session.position(), session.context_size())));
}

void check_bias(const Arguments& arguments, const SamplingOptions& sampling,
                std::int64_t vocabulary) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id < vocabulary) continue;
    fail(ErrorCode::kInvalidArgument, arguments.spelling(Flag::kLogitBias),
         "there is no token {}: ids go from 0 to {}", id, vocabulary - 1);
  }
}

// Writes pieces of the answer; a failure to write ends the generation and is thrown afterwards.
class Streamer {
 public:
  explicit Streamer(Output& output) : output_(output) {}
  [[nodiscard]] TokenFn callback() {
    return [this](std::string_view text) {
      try {
        output_.write_text(text);
        return true;
      } catch (...) {
        failure_ = std::current_exception();
        return false;
      }
    };
  }
  void finish() {
    if (failure_) std::rethrow_exception(failure_);
    // The shell's prompt belongs on a line of its own.
    if (output_.is_terminal() && output_.last_byte() != 0 && output_.last_byte() != '\n') {
      output_.write("\n");
    }
  }

 private:
  Output& output_;
  std::exception_ptr failure_;
};

int report_end(const Context& context, const Answer& answer, const Session& session) {
  if (answer.finish == FinishReason::kCancelled) {
    if (answer.stats.generated_tokens == 0) {
      print_line("interrupted: before the answer began");
    } else {
      print_line(fmt::format("interrupted: {} tokens of the answer were kept",
                             answer.stats.generated_tokens));
    }
    return context.interrupt.exit_code();
  }
  if (answer.finish == FinishReason::kContextFull) {
    print_warning(fmt::format("the context is full ({} tokens); a larger --ctx-size goes on",
                              session.context_size()));
  }
  return kExitOk;
}

}  // namespace

int run_command(Context& context) {
  const Arguments& arguments = context.arguments;
  check_chat_flags(arguments);
  const EngineOptions engine_choice = engine_options(arguments);
  const ModelOptions model_choice = model_options(arguments);
  (void)generate_request(arguments, {});  // refuses bad values before anything is read
  const Prompt prompt = read_prompt(context);
  print_settings(context);

  ProgressBar bar(
      progress_mode(arguments.text(Flag::kProgress), arguments.on(Flag::kQuiet), context.terminal));
  const Engine engine = Engine::create(engine_choice).value();
  const Model model = take(prompt.model, engine.open(prompt.model, model_choice, bar.callback(),
                                                     context.interrupt.token()));
  bar.close();
  print_start(context, engine, model);

  GenerateRequest request = generate_request(arguments, model.default_sampling());
  check_bias(arguments, request.sampling, model.info().vocabulary);
  request.prompt = prompt_ids(context, model, prompt.subject, prompt.text);
  if (arguments.on(Flag::kVerbosePrompt)) print_prompt(context, model.tokenizer(), request.prompt);
  if (request.sampling.temperature > 0 && !arguments.on(Flag::kQuiet)) {
    print_line(context.terminal.dimmed(fmt::format("seed     {}", request.sampling.seed)));
  }
  Session session = take(prompt.model, model.session({}));
  Streamer streamer(context.output);
  const Answer answer = take(
      prompt.subject,
      session.generate(request, streamer.callback(), bar.callback(), context.interrupt.token()));
  bar.close();
  streamer.finish();
  // A prompt that was cut short has no rate.
  const bool was_begun =
      answer.finish != FinishReason::kCancelled || answer.stats.generated_tokens > 0;
  if (arguments.on(Flag::kPerf) && was_begun) print_figures(context, answer.stats, session);
  return report_end(context, answer, session);
}

}  // namespace tern::cli
