// The program `tern`: finds the command, runs it, and turns every failure into one line and an exit
// code.
#include <exception>
#include <new>
#include <vector>

#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/utf8_text.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

[[noreturn]] void unknown_command(const std::string& name) {
  if (name.empty()) {
    fail(ErrorCode::kUsage, "COMMAND", "the name of the command is empty; tern help lists them");
  }
  std::vector<std::string> names;
  for (const CommandRow& row : command_table()) {
    if (row.function != nullptr) names.emplace_back(row.name);
  }
  const std::string near = nearest_name(name, names);
  fail(ErrorCode::kUsage, name, "there is no such command{}; tern help lists them",
       near.empty() ? "" : ", did you mean " + near + "?");
}

int dispatch(std::vector<std::string> words, const Environment& environment,
             const Terminal& terminal, Output& output, const Interrupt& interrupt) {
  if (words.empty()) {
    write_to_stderr(help_text(nullptr));
    return kExitUsage;
  }
  if (words[0] == "--help" || words[0] == "-h") words[0] = "help";
  if (words[0] == "--version") words[0] = "version";
  const std::string name = words[0];
  const CommandRow* row = find_command(name);
  if (row == nullptr) unknown_command(name);
  if (row->function == nullptr) {
    fail(ErrorCode::kUsage, name, "this build does not have this command yet");
  }
  words.erase(words.begin());
  std::vector<std::string> warnings;
  const Arguments arguments = Arguments::parse(row->bit, words, environment, warnings);
  if (arguments.on(Flag::kHelp)) {
    output.write(help_text(row));
    return kExitOk;
  }
  Terminal looks = terminal;
  if ((row->bit & kPlanning) != 0 && arguments.text(Flag::kColor) != "auto") {
    looks.err_has_color = arguments.text(Flag::kColor) == "on";
  }
  for (const std::string& warning : warnings) print_warning(warning);
  Context context{arguments, looks, output, interrupt};
  return row->function(context);
}

int report(const Error& error, const Interrupt& interrupt) {
  if (error.code() == ErrorCode::kCancelled) {
    print_line(fmt::format("interrupted: {}", visible(error.message(), true)));
    return interrupt.requested() ? interrupt.exit_code() : kExitInterrupted;
  }
  print_line(fmt::format("error: {}", visible(error.message(), true)));
  return exit_code(error.code());
}

int guarded_main(int argc, char** argv) {
  occupy_standard_streams();
  const Environment environment = Environment::read();
  const Terminal terminal = Terminal::look(environment);
  Output output(terminal.out_is_terminal);
  const Interrupt interrupt;
  try {
    return dispatch(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), environment,
                    terminal, output, interrupt);
  } catch (const BrokenPipe&) {
    return kExitOk;
  } catch (const Error& error) {
    return report(error, interrupt);
  } catch (const std::bad_alloc&) {
    write_to_stderr("error: memory: there is not enough of it for this step\n");
    return kExitMemoryOrDisk;
  } catch (const std::exception& error) {
    print_line(fmt::format("error: tern: a fault of the program: {}", visible(error.what(), true)));
    return kExitFailed;
  }
}

}  // namespace
}  // namespace tern::cli

int main(int argc, char** argv) { return tern::cli::guarded_main(argc, argv); }
