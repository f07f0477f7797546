#include "symbols/native_name.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The platform's demangler, in every C++ runtime library: Itanium C++ ABI, section 3.4. */
char *__cxa_demangle(const char *mangled, char *buf, size_t *len, int *status);

#define DEMANGLE_NO_MEMORY (-1) /* *status */

static bool demangle_ends(const char *text, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len >= n && !memcmp(text + len - n, tail, n);
}

static bool demangle_starts(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}

/* The length of a demangled function's text without its parameters and what follows them. */
static size_t demangle_without_params(const char *text, size_t len)
{
	static const char *const tails[] = {" const", " volatile", " &&", " &", " noexcept"};
	size_t depth = 0;

	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails);) {
		if (demangle_ends(text, len, tails[i])) {
			len -= strlen(tails[i]);
			i = 0;
		} else {
			i++;
		}
	}
	if (!len || text[len - 1] != ')')
		return len;
	for (size_t i = len; i-- > 0;) {
		if (text[i] == ')')
			depth++;
		else if (text[i] == '(' && !--depth)
			return i ? i : len;
	}
	return len;
}

/* At "operator": past its symbol, so that "<", ">" and "(" of it are not taken for brackets. Words stay. */
static size_t demangle_skip_operator(const char *text, size_t i, size_t len)
{
	i += strlen("operator");
	if (i + 1 < len && (!memcmp(text + i, "()", 2) || !memcmp(text + i, "[]", 2)))
		return i + 2;
	while (i < len && strchr("<>-=!+*/%&|^~,", text[i]))
		i++;
	return i;
}

/* Where the name begins in a demangled template function: after the return type. */
static size_t demangle_return_type(const char *text, size_t len)
{
	size_t depth = 0, start = 0;

	for (size_t i = 0; i < len; i++) {
		if (!depth && demangle_starts(text + i, "operator") && (!i || !isalnum((unsigned char)text[i - 1]))) {
			i = demangle_skip_operator(text, i, len);
			/* Words after it, such as a type that is converted to, belong to the name. */
			if (i < len && text[i] == ' ')
				return start;
			i--;
		} else if (strchr("<({[", text[i])) {
			depth++;
		} else if (strchr(">)}]", text[i])) {
			depth -= depth > 0;
		} else if (text[i] == ' ' && !depth) {
			start = i + 1;
		}
	}
	return start;
}

/* Writes what perf makes of the demangler's full text. */
static void demangle_put_name(const char *raw, const char *text, struct outbuf *out)
{
	const char *clone = strstr(text, " [clone ");
	size_t len = clone ? (size_t)(clone - text) : strlen(text), start = 0;

	/* Tables, guards and thunks: what stands behind "for" and "to" keeps its parameters. */
	if (!demangle_starts(raw, "_ZT") && !demangle_starts(raw, "_ZG")) {
		len = demangle_without_params(text, len);
		if (len && text[len - 1] == '>' && !demangle_starts(raw, "_ZZ"))
			start = demangle_return_type(text, len);
	}
	outbuf_put(out, text + start, len - start);
}

/* Rust's first scheme is C++'s with a hash as the last part and escapes: "_ZN4core3fmt5write17h0123456789abcdefE". */
static bool demangle_is_rust(const char *raw, size_t len)
{
	size_t digits = 0;

	if (len < 24 || !demangle_starts(raw, "_ZN") || raw[len - 1] != 'E' || memcmp(raw + len - 20, "17h", 3))
		return false;
	while (digits < 16 && isxdigit((unsigned char)raw[len - 17 + digits]))
		digits++;
	return digits == 16;
}

/* One escape at p, "$LT$"; writes what it means and gives its length, 0 if it is none. */
static size_t demangle_rust_escape(const char *p, size_t len, struct outbuf *out)
{
	static const char *const escapes[][2] = {{"$LT$", "<"},	 {"$GT$", ">"},	 {"$RF$", "&"},	 {"$BP$", "*"},
						 {"$C$", ","},	 {"$SP$", "@"},	 {"$LP$", "("},	 {"$RP$", ")"},
						 {"$u20$", " "}, {"$u22$", "\""}, {"$u27$", "'"}, {"$u2b$", "+"},
						 {"$u3b$", ";"}, {"$u5b$", "["}, {"$u5d$", "]"}, {"$u7b$", "{"},
						 {"$u7d$", "}"}, {"$u7e$", "~"}, {"..", "::"}};

	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++) {
		size_t n = strlen(escapes[i][0]);

		if (n <= len && !memcmp(p, escapes[i][0], n)) {
			outbuf_str(out, escapes[i][1]);
			return n;
		}
	}
	return 0;
}

static void demangle_rust_part(const char *p, size_t len, struct outbuf *out)
{
	if (len > 1 && p[0] == '_' && p[1] == '$') {
		p++;
		len--;
	}
	while (len) {
		size_t n = demangle_rust_escape(p, len, out);

		if (!n) {
			outbuf_char(out, *p);
			n = 1;
		}
		p += n;
		len -= n;
	}
}

static void demangle_rust(const char *raw, size_t len, struct outbuf *out)
{
	const char *p = raw + 3, *end = raw + len - 20;
	bool first = true;

	while (p < end && isdigit((unsigned char)*p)) {
		size_t n = 0;

		while (p < end && isdigit((unsigned char)*p) && n < NATIVE_NAME_BYTES_MAX)
			n = n * 10 + (size_t)(*p++ - '0');
		if (n > (size_t)(end - p))
			n = (size_t)(end - p);
		if (!first)
			outbuf_str(out, "::");
		first = false;
		demangle_rust_part(p, n, out);
		p += n;
	}
}

int native_name_perf(const char *raw, size_t len, struct outbuf *out)
{
	const char *version = memchr(raw, '@', len);
	size_t bare = version ? (size_t)(version - raw) : len;
	AUTO_FREE char *mangled = NULL;
	AUTO_FREE char *text = NULL;
	int status = 0;

	if (len > NATIVE_NAME_BYTES_MAX || (!demangle_starts(raw, "_Z") && !demangle_starts(raw, "_GLOBAL_"))) {
		outbuf_put(out, raw, len);
		return 0;
	}
	if (demangle_is_rust(raw, bare)) {
		demangle_rust(raw, bare, out);
	} else {
		mangled = strndup(raw, bare);
		text = mangled ? __cxa_demangle(mangled, NULL, NULL, &status) : NULL;
		if (!mangled || (!text && status == DEMANGLE_NO_MEMORY))
			return -ENOMEM;
		if (text)
			demangle_put_name(mangled, text, out);
		else
			outbuf_put(out, raw, bare);
	}
	if (version && (!text || demangle_ends(raw, len, "@plt")))
		outbuf_put(out, version, len - bare);
	return 0;
}

/* The length of a template argument from p on: up to the "," or ">" that ends it. */
static size_t demangle_arg_len(const char *p)
{
	size_t depth = 0, n = 0;

	for (; p[n]; n++) {
		if (strchr("<({[", p[n]))
			depth++;
		else if (!depth && (p[n] == ',' || p[n] == '>'))
			break;
		else if (strchr(">)}]", p[n]))
			depth -= depth > 0;
	}
	return n;
}

/* How much noise begins at p; *ret_instead is what to write for it. 0: none. */
static size_t demangle_noise(const char *p, const char **ret_instead)
{
	static const char *const noise[][2] = {
		{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
		{"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
		{"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >", "std::string"},
		{"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
		{"std::__cxx11::", "std::"},
		{"std::__1::", "std::"},
		{"__gnu_cxx::__normal_iterator", "__normal_iterator"},
	};

	*ret_instead = "";
	for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++) {
		if (demangle_starts(p, noise[i][0])) {
			*ret_instead = noise[i][1];
			return strlen(noise[i][0]);
		}
	}
	if (demangle_starts(p, ", std::allocator<") || demangle_starts(p, ", std::char_traits<") ||
	    demangle_starts(p, ", std::__1::allocator<") || demangle_starts(p, ", std::__1::char_traits<"))
		return 2 + demangle_arg_len(p + 2);
	if (demangle_starts(p, "[abi:"))
		return strcspn(p, "]") + (strchr(p, ']') != NULL);
	return 0;
}

/* The length without what compilers append to copies of a function: ".constprop.0.isra.0", ".part.3", ".cold", ".lto_priv.0". */
static size_t demangle_without_suffix(const char *raw, size_t len)
{
	static const char *const suffixes[] = {".constprop", ".isra", ".part", ".cold", ".lto_priv", ".llvm"};

	for (size_t i = 1; i < len; i++) {
		for (size_t k = 0; raw[i] == '.' && k < sizeof(suffixes) / sizeof(*suffixes); k++) {
			size_t n = strlen(suffixes[k]);

			if (demangle_starts(raw + i, suffixes[k]) && (raw[i + n] == '.' || i + n == len))
				return i;
		}
	}
	return len;
}

int native_name_full(const char *raw, size_t len, struct outbuf *out)
{
	struct outbuf whole = outbuf_to(-1);
	const char *instead;
	size_t n;
	int r;

	if (len > NATIVE_NAME_BYTES_MAX || !demangle_starts(raw, "_Z")) {
		outbuf_put(out, raw, demangle_without_suffix(raw, len));
		return 0;
	}
	r = native_name_perf(raw, len, &whole);
	outbuf_char(&whole, '\0');
	for (const char *p = whole.data; !r && !whole.error && *p; p += n) {
		n = demangle_noise(p, &instead);
		if (n) {
			outbuf_str(out, instead);
			continue;
		}
		n = p[0] == ' ' && p[1] == '>' && p > whole.data && p[-1] == '>' ? 2 : 1;
		outbuf_char(out, n == 2 ? '>' : *p);
	}
	if (!r)
		r = whole.error;
	outbuf_close(&whole);
	return r;
}
