// Each tensor is taken once, with the shape that the model needs.
#include "models/common/weight_loader.h"

#include <cstring>

namespace tern::models {
namespace {

std::string expected_shape(std::int64_t rows, std::int64_t inputs) {
  return rows == 1 ? fmt::format("[{}]", inputs) : fmt::format("[{}, {}]", inputs, rows);
}

program::WeightPart part_of(const io::GgufTensor& t, std::int64_t rows) {
  return {std::string(t.name), t.bytes, rows};
}

}  // namespace

const io::GgufTensor* WeightLoader::take_tensor(const std::string& name, std::int64_t rows,
                                                std::int64_t inputs) {
  const io::GgufTensor* t = file_.find_tensor(name);
  if (!t) {
    record(fail(ErrorCode::kInvalidFile, "tensor '{}' is missing", name));
    return nullptr;
  }
  used_[static_cast<std::size_t>(t - file_.tensors().data())] = true;
  if (t->row_elements() != static_cast<std::uint64_t>(inputs) ||
      t->rows() != static_cast<std::uint64_t>(rows)) {
    record(fail(ErrorCode::kInvalidFile, "tensor '{}' is {}, expected {}", name, t->shape_text(),
                expected_shape(rows, inputs)));
    return nullptr;
  }
  return t;
}

program::WeightId WeightLoader::matrix(const std::string& name, std::int64_t rows,
                                       std::int64_t inputs, std::uint8_t uses) {
  const io::GgufTensor* t = take_tensor(name + ".weight", rows, inputs);
  if (!t) return 0;
  return set_.add({name, t->format, rows, inputs, uses, {part_of(*t, rows)}});
}

program::WeightId WeightLoader::add_vector(const std::string& label,
                                           const std::vector<PartSpec>& parts) {
  program::WeightDecl decl;
  decl.name = label;
  decl.rows = 1;
  decl.uses = program::kUseVector;
  for (const PartSpec& part : parts) {
    const io::GgufTensor* t = take_tensor(part.name, 1, part.rows);
    if (!t) return 0;
    if (quant::info(t->format).kind != quant::FormatClass::kDense) {
      record(fail(ErrorCode::kInvalidFile, "tensor '{}' has type {}, expected F32, F16 or BF16",
                  part.name, t->type_name));
      return 0;
    }
    if (!decl.parts.empty() && t->format != decl.format) {
      record(fail(ErrorCode::kUnsupported,
                  "tensor '{}' has type {}, expected {} like '{}', which it is joined with",
                  part.name, t->type_name, quant::info(decl.format).file_name,
                  decl.parts.front().name));
      return 0;
    }
    decl.format = t->format;
    decl.inputs += part.rows;
    decl.parts.push_back(part_of(*t, 1));
  }
  return set_.add(std::move(decl));
}

program::WeightId WeightLoader::vector(const std::string& name, std::int64_t width) {
  return add_vector(name, {{name + ".weight", width}});
}

std::vector<JoinedPart> WeightLoader::joined(const std::string& label,
                                             const std::vector<PartSpec>& parts,
                                             std::int64_t inputs) {
  struct Group {
    program::WeightDecl decl;
    std::vector<PartSpec> biases;
    bool has_bias = false;
    std::vector<std::size_t> members;
  };
  std::vector<Group> groups;
  std::vector<JoinedPart> result(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartSpec& part = parts[i];
    const io::GgufTensor* t = take_tensor(part.name + ".weight", part.rows, inputs);
    if (!t) return result;
    const bool has_bias = has(part.name + ".bias");
    Group* group = nullptr;
    for (Group& g : groups)
      if (g.decl.format == t->format && g.has_bias == has_bias) group = &g;
    if (!group) {
      groups.emplace_back();
      group = &groups.back();
      group->decl.name = part.name;
      group->decl.format = t->format;
      group->decl.inputs = inputs;
      group->has_bias = has_bias;
    }
    result[i].begin = group->decl.rows;
    result[i].rows = part.rows;
    group->members.push_back(i);
    group->decl.rows += part.rows;
    group->decl.parts.push_back(part_of(*t, part.rows));
    if (has_bias) group->biases.push_back({part.name + ".bias", part.rows});
  }
  for (Group& g : groups) {
    if (g.members.size() == parts.size() && parts.size() > 1) g.decl.name = label;
    const std::string name = g.decl.name;
    const program::WeightId weight = set_.add(std::move(g.decl));
    std::optional<program::WeightId> bias;
    if (g.has_bias) bias = add_vector(name + ".bias", g.biases);
    for (std::size_t member : g.members) {
      result[member].weight = weight;
      result[member].bias = bias;
    }
  }
  return result;
}

std::optional<std::vector<float>> WeightLoader::numbers(const std::string& name,
                                                        std::int64_t count) {
  if (!has(name)) return std::nullopt;
  const io::GgufTensor* t = take_tensor(name, 1, count);
  if (!t) return std::nullopt;
  if (t->format != quant::Format::kF32) {
    record(
        fail(ErrorCode::kInvalidFile, "tensor '{}' has type {}, expected F32", name, t->type_name));
    return std::nullopt;
  }
  std::vector<float> values(static_cast<std::size_t>(count));
  std::memcpy(values.data(), t->bytes.data(), values.size() * sizeof(float));
  return values;
}

Result<void> WeightLoader::finish(const std::string& architecture) const {
  TERN_TRY(status_);
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i])
      return fail(ErrorCode::kInvalidFile,
                  "tensor '{}' is not part of a {} model; refusing to ignore it",
                  file_.tensors()[i].name, architecture);
  }
  return {};
}

}  // namespace tern::models
