#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/text.h"
#include "quern/codegen/uop/text_check.h"
#include "quern/codegen/uop/text_fields.h"

namespace quern {
namespace {

using uop_text::Field;
using uop_text::Fields;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_number(char c) { return is_word(c) || c == '-' || c == '+' || c == '.'; }

// The text, a line at a time, and the place in it.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  // Goes to the next line that is not blank; false at the end.
  bool next_line() {
    while (next_ < text_.size()) {
      size_t end = std::min(text_.find('\n', next_), text_.size());
      line_ = text_.substr(next_, end - next_);
      next_ = end + 1;
      ++line_number_;
      if (size_t comment = line_.find("//"); comment != std::string_view::npos)
        line_ = line_.substr(0, comment);
      at_ = 0;
      if (!at_end()) return true;
    }
    return false;
  }

  bool at_end() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r'))
      ++at_;
    return at_ == line_.size();
  }

  bool accept(char c) {
    if (at_end() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(at_, fmt::format("expected '{}'", c));
  }

  std::string_view word(const char* what) { return token(is_word, what); }
  std::string_view number(const char* what) { return token(is_number, what); }

  int64_t integer() {
    std::string_view text = number("an integer");
    auto value = uop_text::parse_integer(text);
    if (!value) fail(text, fmt::format("'{}' is not an integer of 64 bits", text));
    return *value;
  }

  std::string_view rest() const { return line_.substr(at_); }
  void skip(size_t n) { at_ += n; }

  [[noreturn]] void fail(size_t at, std::string_view why) const {
    raise<CompileError>("uop text, line {}, column {}: {}", line_number_, at + 1, why);
  }
  [[noreturn]] void fail(std::string_view token, std::string_view why) const {
    fail(static_cast<size_t>(token.data() - line_.data()), why);
  }
  [[noreturn]] void fail(std::string_view why) const { fail(at_, why); }

 private:
  template <class Class>
  std::string_view token(Class&& belongs, const char* what) {
    at_end();
    size_t end = at_;
    while (end < line_.size() && belongs(line_[end])) ++end;
    if (end == at_) fail(at_, fmt::format("expected {}", what));
    std::string_view found = line_.substr(at_, end - at_);
    at_ = end;
    return found;
  }

  std::string_view text_;
  size_t next_ = 0;
  std::string_view line_;
  size_t line_number_ = 0;
  size_t at_ = 0;
};

// The scopes of a list, and which of them each uop lies in.
class Scopes {
 public:
  // Why `u` may not stand here, or an empty text.
  std::string add(UOp u) {
    if (scope_of_.contains(u)) return "the same uop stands further up";
    // A BARRIER only says what has happened.
    for (UOp s : u->src())
      if (u->op != Op::BARRIER && !is_visible(s))
        return fmt::format("the {} that it uses was computed in a scope that is closed",
                           name(s->op));
    if (u->op == Op::END || u->op == Op::ENDIF) {
      if (open_.back() != u->src(0)) return "it does not close the innermost scope";
      is_open_[scope_of_head(u->src(0))] = false;
      open_.pop_back();
    }
    scope_of_.emplace(u, current());
    if (u->op == Op::RANGE || u->op == Op::IF) {
      head_scope_.emplace(u, is_open_.size());
      is_open_.push_back(true);
      open_.push_back(u);
    }
    return {};
  }

  // The innermost scope that is open: its head, or null.
  UOp innermost() const { return open_.back(); }

 private:
  size_t current() const { return open_.back() ? scope_of_head(open_.back()) : 0; }
  size_t scope_of_head(UOp head) const { return head_scope_.at(head); }

  // The head of a scope lies outside it, but a loop's counter can be used only inside; to close it,
  // END may name it too. What an ASSIGN leaves in its accumulator outlives its scope.
  bool is_visible(UOp u) const {
    if (u->op == Op::RANGE) return is_open_[scope_of_head(u)];
    if (u->op == Op::ASSIGN) u = u->src(0);
    return is_open_[scope_of_.at(u)];
  }

  std::unordered_map<UOp, size_t> scope_of_, head_scope_;
  std::vector<bool> is_open_ = {true};
  std::vector<UOp> open_ = {nullptr};
};

class Parser {
 public:
  Parser(std::string_view text, Graph& graph, bool linear)
      : cursor_(text), graph_(graph), linear_(linear) {}

  std::vector<UOp> parse() {
    std::vector<UOp> uops;
    Scopes scopes;
    while (cursor_.next_line()) {
      std::string_view label = parse_label();
      UOp u = parse_uop();
      if (linear_)
        if (std::string why = scopes.add(u); !why.empty()) cursor_.fail(op_, why);
      uops.push_back(u);
      if (!label.empty()) labels_.emplace(label, u);
    }
    if (scopes.innermost())
      cursor_.fail(fmt::format("the {} is not closed at the end", name(scopes.innermost()->op)));
    return uops;
  }

  [[noreturn]] void fail(const char* why) const { cursor_.fail(why); }

 private:
  std::string_view parse_label() {
    if (!cursor_.accept('%')) return {};
    std::string_view label = cursor_.word("a label");
    if (labels_.contains(label)) cursor_.fail(label, fmt::format("%{} stands further up", label));
    cursor_.expect('=');
    return label;
  }

  UOp parse_uop() {
    op_ = cursor_.word("an op");
    auto op = parse_op(op_);
    if (!op) cursor_.fail(op_, fmt::format("there is no op '{}'", op_));
    int stages = linear_ ? OpInfo::kL : OpInfo::kL | OpInfo::kG;
    if (!(info(*op).stages & stages))
      cursor_.fail(op_, fmt::format("{} does not occur at this stage", op_));
    dtype_ = parse_dtype_if_any();
    if (linear_ && dtype_.is_index())
      cursor_.fail(op_, "the index type does not occur at this stage");
    src_.clear();
    arg_ = 0;
    args_.clear();
    if (cursor_.accept('(')) parse_sources();
    if (*op == Op::CONST) arg_ = parse_literal();
    else if (*op == Op::VCONST) parse_list([this] { return parse_literal(); });
    else parse_fields(*op);
    if (!cursor_.at_end()) cursor_.fail("expected the end of the line");
    return make(*op);
  }

  UOp make(Op op) {
    std::string why = uop_text::check_uop(op, dtype_, src_, arg_, args_);
    if (!why.empty()) cursor_.fail(op_, fmt::format("{}: {}", op_, why));
    try {
      return graph_.make(op, dtype_, src_, arg_, args_);
    } catch (const std::logic_error& e) {
      cursor_.fail(op_, e.what());
    }
  }

  DType parse_dtype_if_any() {
    if (cursor_.at_end()) return {};
    std::string_view rest = cursor_.rest();
    size_t size = 0;
    while (size < rest.size() && is_word(rest[size])) ++size;
    auto dtype = uop_text::parse_vector_dtype(rest.substr(0, size));
    if (dtype) cursor_.skip(size);
    return dtype.value_or(DType());
  }

  void parse_sources() {
    if (cursor_.accept(')')) return;
    do {
      cursor_.expect('%');
      std::string_view label = cursor_.word("a label");
      auto found = labels_.find(label);
      if (found == labels_.end())
        cursor_.fail(label, fmt::format("%{} does not stand above", label));
      src_.push_back(found->second);
    } while (cursor_.accept(','));
    cursor_.expect(')');
  }

  int64_t parse_literal() {
    std::string_view text = cursor_.number("a value");
    auto lane = uop_text::parse_literal(dtype_, text);
    if (!lane)
      cursor_.fail(
          text, fmt::format("'{}' is not a value of type {}", text, to_string(dtype_.element())));
    return *lane;
  }

  template <class F>
  void parse_list(F&& item) {
    cursor_.expect('[');
    if (cursor_.accept(']')) return;
    do args_.push_back(item());
    while (cursor_.accept(','));
    cursor_.expect(']');
  }

  // In any order, each at most once.
  void parse_fields(Op op) {
    Fields fields = uop_text::fields_of(op);
    std::optional<int64_t> arg, args[Fields::kMaxArgs];
    bool any_named = false, has_list = false;
    while (!cursor_.at_end()) {
      if (cursor_.rest()[0] == '[') {
        if (has_list) cursor_.fail("a second list");
        has_list = true;
        parse_list([this] { return cursor_.integer(); });
        continue;
      }
      bool numbered = cursor_.accept('#');
      std::string_view name = numbered ? "#" : cursor_.word("a field");
      size_t i = 0;
      while (i < fields.nargs && fields.args[i].name != name) ++i;
      bool is_arg = fields.arg.name == name;
      if (!is_arg && i == fields.nargs)
        cursor_.fail(fmt::format("{} has no field '{}'", op_, name));
      std::optional<int64_t>& value = is_arg ? arg : args[i];
      if (value) cursor_.fail(fmt::format("a second '{}'", name));
      value = field_value(is_arg ? fields.arg : fields.args[i], numbered);
      any_named |= !is_arg;
    }
    if (!arg && fields.arg.kind != Field::Optional)
      cursor_.fail(fmt::format("{} needs '{}'", op_, fields.arg.name));
    arg_ = arg.value_or(0);
    if (!any_named) return;
    if (has_list) cursor_.fail("either a list or named arguments, not both");
    for (size_t i = 0; i < fields.nargs; ++i) {
      bool needed = fields.args[i].kind != Field::Optional && fields.args[i].kind != Field::Flag;
      if (!args[i] && needed) cursor_.fail(fmt::format("{} needs '{}='", op_, fields.args[i].name));
      args_.push_back(args[i].value_or(0));
    }
  }

  int64_t field_value(const Field& field, bool numbered) {
    if (numbered) return cursor_.integer();
    if (!cursor_.accept('=')) {
      if (field.kind == Field::Flag) return 1;
      cursor_.fail("expected '='");
    }
    std::string_view text = cursor_.number("a value");
    auto value = uop_text::parse_value(field.kind, text);
    if (!value) cursor_.fail(text, fmt::format("'{}' is not a value of '{}'", text, field.name));
    return *value;
  }

  Cursor cursor_;
  Graph& graph_;
  bool linear_;
  std::unordered_map<std::string_view, UOp> labels_;
  // Of the uop that is being read.
  std::string_view op_;
  DType dtype_;
  std::vector<UOp> src_;
  int64_t arg_ = 0;
  std::vector<int64_t> args_;
};

}  // namespace

LinearUOps parse_uops(std::string_view text, Graph& graph) {
  return Parser(text, graph, true).parse();
}

UOp parse_graph(std::string_view text, Graph& graph) {
  Parser parser(text, graph, false);
  std::vector<UOp> uops = parser.parse();
  if (uops.empty()) parser.fail("expected at least one uop");
  return uops.back();
}

}  // namespace quern
