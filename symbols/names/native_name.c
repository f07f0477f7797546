#include "symbols/names/native_name.h"

#include "base/cleanup.h"
#include "symbols/names/demangle.h"

#include <stdbool.h>
#include <string.h>

static bool native_name_starts(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}

int native_name_perf(const char *raw, size_t len, struct outbuf *out)
{
	AUTO_FREE char *text = len <= NATIVE_NAME_BYTES_MAX ? demangle_perf(raw) : NULL;

	if (text)
		outbuf_str(out, text);
	else
		outbuf_put(out, raw, len);
	return out->error;
}

/* The length of the template argument at p, without the "," or ">" that ends it. */
static size_t native_name_arg_len(const char *p)
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

/* The length of the noise at p; 0: none. *ret_instead: the text to write instead. */
static size_t native_name_noise(const char *p, const char **ret_instead)
{
	static const char *const noise[][2] = {
		{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		 "std::string"},
		{"std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		 "std::string"},
		{"std::__1::basic_string<char, std::__1::char_traits<char>, "
		 "std::__1::allocator<char> >",
		 "std::string"},
		{"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
		{"std::__cxx11::", "std::"},
		{"std::__1::", "std::"},
		{"__gnu_cxx::__normal_iterator", "__normal_iterator"},
	};

	*ret_instead = "";
	if (*p != 's' && *p != '_' && *p != ',' && *p != '[') /* first characters of noise */
		return 0;
	for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++) {
		if (native_name_starts(p, noise[i][0])) {
			*ret_instead = noise[i][1];
			return strlen(noise[i][0]);
		}
	}
	if (native_name_starts(p, ", std::allocator<") ||
	    native_name_starts(p, ", std::char_traits<") ||
	    native_name_starts(p, ", std::__1::allocator<") ||
	    native_name_starts(p, ", std::__1::char_traits<"))
		return 2 + native_name_arg_len(p + 2);
	if (native_name_starts(p, "[abi:"))
		return strcspn(p, "]") + (strchr(p, ']') != NULL);
	return 0;
}

/*
 * The length without the suffixes of copies that compilers make of a function:
 * ".constprop.0.isra.0", ".part.3", ".cold", ".lto_priv.0".
 */
static size_t native_name_without_suffix(const char *raw, size_t len)
{
	static const char *const suffixes[] = {".constprop", ".isra",     ".part",
					       ".cold",      ".lto_priv", ".llvm"};

	for (size_t i = 1; i < len; i++) {
		for (size_t k = 0; raw[i] == '.' && k < sizeof(suffixes) / sizeof(*suffixes); k++) {
			size_t n = strlen(suffixes[k]);

			if (native_name_starts(raw + i, suffixes[k]) &&
			    (raw[i + n] == '.' || i + n == len))
				return i;
		}
	}
	return len;
}

int native_name_full(const char *raw, size_t len, struct outbuf *out)
{
	AUTO_FREE char *text = len <= NATIVE_NAME_BYTES_MAX ? demangle_perf(raw) : NULL;
	const char *instead;
	size_t n;

	if (!text) {
		outbuf_put(out, raw, native_name_without_suffix(raw, len));
		return out->error;
	}
	for (const char *p = text; *p; p += n) {
		n = native_name_noise(p, &instead);
		if (n) {
			outbuf_str(out, instead);
			continue;
		}
		n = p[0] == ' ' && p[1] == '>' && p > text && p[-1] == '>' ? 2 : 1;
		outbuf_char(out, n == 2 ? '>' : *p);
	}
	return out->error;
}
