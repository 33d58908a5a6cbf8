// `tern version`: what was built, from what, and what it found; with --limits the table of limits.
#include "cli/build_info.h"
#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/utf8_text.h"
#include "tern/engine.h"
#include "tern/limits.h"

namespace tern::cli {

int version_command(Context& context) {
  if (!context.arguments.words().empty()) {
    fail(ErrorCode::kUsage, context.arguments.words()[0], "version takes no words");
  }
  if (context.arguments.on(Flag::kLimits)) {
    std::string table;
    for (const Limit& row : limit_table()) {
      table += fmt::format("{:<32} {}\n", row.what, grouped(row.most));
    }
    context.output.write(table);
    return kExitOk;
  }
  const BuildInfo build = build_info();
  std::string text = fmt::format("tern {}\nbuild      {} ({}), {}, {}\nbackends   cpu\n",
                                 build.version, build.commit, build.number, build.compiler,
                                 build.build_type.empty() ? "no build type" : build.build_type);
  const Engine engine = Engine::create({}).value();
  text += fmt::format("device     {}\nprocessor  {}\nlicence    Apache-2.0; ships no model\n",
                      engine.device_text(), engine.processor_name());
  context.output.write(text);
  return kExitOk;
}

}  // namespace tern::cli
