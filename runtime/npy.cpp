#include "quern/runtime/npy.h"

#include <charconv>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quern/codegen/error.h"
#include "quern/runtime/file.h"

namespace quern {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlign = 64;
constexpr size_t kMaxHeader = 1 << 16;

struct Descr {
  Scalar scalar;
  std::string_view text;
};
constexpr Descr kDescrs[] = {
    {Scalar::Bool, "|b1"},     {Scalar::Int8, "|i1"},     {Scalar::UInt8, "|u1"},
    {Scalar::Int16, "<i2"},    {Scalar::UInt16, "<u2"},   {Scalar::Int32, "<i4"},
    {Scalar::UInt32, "<u4"},   {Scalar::Int64, "<i8"},    {Scalar::UInt64, "<u8"},
    {Scalar::Float16, "<f2"},  {Scalar::Float32, "<f4"},  {Scalar::Float64, "<f8"},
    {Scalar::BFloat16, "<V2"}, {Scalar::BFloat16, "|V2"},
};

int64_t product(std::span<const int64_t> shape) {
  int64_t size = 1;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(size, dim, &size)) return -1;
  return size;
}

struct Header {
  DType dtype;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// The header is a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string_view key = quoted();
      expect(':');
      if (key == "descr") header.dtype = parse_descr(), has_descr = true;
      else if (key == "fortran_order") has_order = true, header.fortran_order = parse_bool();
      else if (key == "shape") has_shape = true, header.shape = parse_shape();
      else fail(fmt::format("unknown key '{}'", key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape)
      fail("descr, fortran_order and shape must be there");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    raise<FileError>("{}: malformed .npy header: {}", path_, why);
  }

  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_blanks();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}' before '{}'", c, text_.substr(0, 20)));
  }

  std::string_view quoted() {
    char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail("a string without an end");
    std::string_view found = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return found;
  }

  DType parse_descr() {
    if (accept('[')) raise<FileError>("{}: structured arrays are not supported", path_);
    std::string_view text = quoted();
    for (const Descr& known : kDescrs)
      if (known.text == text) return known.scalar;
    if (text.starts_with('>'))
      raise<FileError>("{}: dtype '{}' is big endian; expected little endian", path_, text);
    raise<FileError>("{}: dtype '{}' is none that Quern has", path_, text);
  }

  bool parse_bool() {
    skip_blanks();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    fail("fortran_order is neither True nor False");
  }

  std::vector<int64_t> parse_shape() {
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      int64_t dim = -1;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) fail("a dimension is no size");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      dims.push_back(dim);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& path_;
};

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

int64_t NpyArray::size() const { return product(shape); }

NpyArray read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

NpyArray parse_npy(std::string_view content, const std::string& path) {
  std::string_view rest = content;
  if (!rest.starts_with(kMagic) || rest.size() < kMagic.size() + 2)
    raise<FileError>("{}: not a .npy file", path);
  int version = static_cast<uint8_t>(rest[kMagic.size()]);
  rest.remove_prefix(kMagic.size() + 2);
  if (version < 1 || version > 3)
    raise<FileError>("{}: .npy version {}; expected 1, 2 or 3", path, version);
  size_t length_bytes = version == 1 ? 2 : 4;
  if (rest.size() < length_bytes) raise<FileError>("{}: cut short", path);
  size_t length = little_endian(rest.substr(0, length_bytes));
  rest.remove_prefix(length_bytes);
  if (length > rest.size() || length > kMaxHeader)
    raise<FileError>("{}: the header has {} bytes, the file {}", path, length, content.size());

  Header header = HeaderParser(rest.substr(0, length), path).parse();
  rest.remove_prefix(length);
  if (header.fortran_order && header.shape.size() > 1)
    raise<FileError>("{}: the array is in Fortran order; expected C order", path);
  NpyArray array{header.dtype, std::move(header.shape), {}};
  int64_t bytes = 0;
  bool fits =
      array.size() >= 0 && !__builtin_mul_overflow(array.size(), array.dtype.itemsize(), &bytes);
  if (!fits || static_cast<size_t>(bytes) != rest.size())
    raise<FileError>("{}: an array of {} with shape [{}] does not have {} bytes of data", path,
                     to_string(array.dtype), fmt::join(array.shape, ", "), rest.size());
  auto data = std::as_bytes(std::span(rest));
  array.data.assign(data.begin(), data.end());
  return array;
}

void write_npy(const std::string& path, DType dtype, std::span<const int64_t> shape,
               std::span<const std::byte> data) {
  std::string_view descr;
  for (const Descr& known : kDescrs)
    if (descr.empty() && known.scalar == dtype.scalar) descr = known.text;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // Magic, two bytes of version and two of length stand in front; a line break ends it.
  size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlign - unpadded % kAlign) % kAlign, ' ');
  header += '\n';
  std::string front(kMagic);
  front += '\x01';
  front += '\0';
  front += static_cast<char>(header.size() & 0xff);
  front += static_cast<char>(header.size() >> 8);
  write_file(path, {std::as_bytes(std::span(front)), std::as_bytes(std::span(header)), data});
}

}  // namespace quern
