/* Quotes text so that a user can paste it into a shell. */
#ifndef BASE_SHELL_WORD_H
#define BASE_SHELL_WORD_H

/*
 * Returns text as one word of a command line, in printable characters: unchanged if it has no
 * special ones, else 'in quotes', or $'\033' with control characters (bash, zsh, POSIX.1-2024). A
 * path that begins with '-' gets "./" before it. The caller frees the result; NULL: out of memory.
 */
char *shell_word(const char *text);

#endif
