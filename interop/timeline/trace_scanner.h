#ifndef PLANCAST_INTEROP_TIMELINE_TRACE_SCANNER_H_
#define PLANCAST_INTEROP_TIMELINE_TRACE_SCANNER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "interop/timeline/trace_json.h"

namespace plancast {

// Reads the words of JSON, and of text that was meant to be JSON.
class TraceScanner {
 public:
  TraceScanner(absl::string_view text, TraceProblems& problems)
      : text_(text), problems_(problems) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  // 0 at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  size_t place() const { return at_; }
  int64_t line() const { return line_; }
  absl::string_view From(size_t place) const { return text_.substr(place, at_ - place); }

  void Take() { Advance(at_ + 1); }
  void SkipSpace();
  // Past spaces and commas; a second comma in a row counts as mended.
  void SkipCommas();
  // A key or value: quoted, in whatever quotes, or a bare word up to a delimiter. False:
  // there is none here, or it does not end; `why` says so.
  bool Word(std::string& word, bool& quoted, std::string& why);
  // To where another event may begin: the next line, or the next `{"` in files of few lines.
  void SkipToNextEvent();
  void SkipLine();

 private:
  void Advance(size_t to);
  // Bytes of a quote at `place`, 0 if there is none; curly ones have three.
  size_t QuoteAt(size_t place) const;
  bool DelimiterAfter(size_t place) const;
  // Where the next line begins; beyond the end if there is none.
  size_t NextLine();
  bool Quoted(std::string& word, std::string& why);
  // The closing quote of a string that begins at `begin`, or npos.
  size_t Closing(size_t begin, bool curly) const;

  absl::string_view text_;
  TraceProblems& problems_;
  size_t at_ = 0, next_line_ = 0;
  int64_t line_ = 1;
};

// The text of a JSON string without its quotes; what is no escape stays as it is.
std::string Unescape(absl::string_view raw);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_TIMELINE_TRACE_SCANNER_H_
