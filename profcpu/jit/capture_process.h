/*
 * One process of a recording during the capture of names: probes it for .NET, chooses a way, takes
 * its steps, and notices when it executes another program.
 */
#ifndef PROFCPU_JIT_CAPTURE_PROCESS_H
#define PROFCPU_JIT_CAPTURE_PROCESS_H

#include "base/hashmap.h"
#include "container/dotnet_process.h"
#include "container/proc.h"
#include "profcpu/jit/names_option.h"
#include "profcpu/jit/way.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_PROCESS_READY_NS (5 * NS_PER_S)    /* limit for a reply; then the next way is tried */
#define JIT_PROCESS_STEP_MAX_NS (2 * NS_PER_S) /* longest time between two steps */
#define JIT_PROCESS_WHY_BYTES (3 * JIT_WAY_WHY_BYTES + 64)

/* Identifies a program, not only its PID: after an exec the numbers differ too. */
struct jit_identity {
	uint64_t start_ticks, start_stack;
};

/*
 * One program of a process: after exec, its PID gets another struct. A new one is zeroed, except
 * pid, since_ns and next_ns.
 */
struct jit_process {
	pid_t pid;
	struct jit_identity identity; /* of the program that is followed */
	/* CLOCK_MONOTONIC: until then the program is expected to free code */
	uint64_t frees_until_ns;
	/* CLOCK_MONOTONIC: time of adding; time of the next probe or step */
	uint64_t since_ns, next_ns;
	char comm[PROC_COMM_BYTES], version[DOTNET_VERSION_BYTES];
	const struct jit_way *way; /* NULL: not followed */
	void *state;
	struct jit_target target;
	const char *words; /* words of the last way that worked; NULL: none */
	char why[JIT_PROCESS_WHY_BYTES];
	bool is_dotnet, done; /* done: no more names will come */
	bool replaced;        /* done, because its PID executes another program */
	bool user_left_out;   /* counted in users_left_out */
	bool has_old_user;    /* its PID may be a new process's, whose user was not read yet */
	bool broken;          /* something failed after names began to come */
	bool write_failed;    /* names could not be written */
	bool over_share;      /* because they take more than their share of the disk */
	/* the last try took too long, or needs a reply; repeated in turn, at the latest at the end
	 */
	bool late;
	bool stepped; /* at least one step was taken in the current way */
	/* its memory takes long to read, or its list of maps: more than PROC_MAPS_SMALL, or slow */
	bool slow;
	bool doubtful; /* its memory shows no known runtime */
};

/* State that the processes of a recording share. */
struct jit_processes {
	enum jit_names names;
	bool lines; /* struct jit_target */
	int dir_fd; /* symbols/ of the recording */
	struct opener *opener;
	/* Processes that could not be probed for .NET, the last one because of unseen_error. */
	size_t unseen;
	int unseen_error;
	pid_t unseen_pid; /* the one with unseen_error */
	uint64_t turn_ns; /* CLOCK_MONOTONIC: when the next late or slow process has its turn */
	/* For events and names; limits of 0: a quarter of what is left at first. */
	struct share_total memory, disk;
	struct hashmap users;  /* what symbols/users says of each PID; RIGHTS_NOBODY: unknown */
	size_t users_left_out; /* processes whose user was over JIT_USERS_MAX */
};

/*
 * Writes the user of a process to symbols/users, if it does not say so already. RIGHTS_NOBODY: not
 * known any more. If a wrong entry cannot be corrected, all are deleted. Returns 0; -E2BIG:
 * JIT_USERS_MAX are noted; -errno.
 */
int jit_process_note_user(struct jit_processes *all, pid_t pid, uid_t uid);

/*
 * Probes a process that is not followed, and notes its user; with JIT_NAMES_NONE that is all. If it
 * runs .NET, takes the way that --jit-names names, or the first that works and is safe. last: a
 * runtime that is not ready now never will be. Done by until_ns.
 *
 * A process that may take longer becomes late and waits for a turn. All late and slow ones share a
 * small part of the time, because a user can start many of them. With last, the next call is the
 * turn.
 */
void jit_process_probe(struct jit_processes *all, struct jit_process *p, uint64_t now_ns,
		       uint64_t until_ns, bool last);

/*
 * Takes one step with a followed process, by p->target.until_ns, and sets next_ns. last: the
 * recording has ended.
 */
void jit_process_step(struct jit_processes *all, struct jit_process *p, uint64_t now_ns, bool last);

/* Notes that a process gets no last step, because the time after the recording is over. */
void jit_process_note_missed_step(struct jit_processes *all, struct jit_process *p);

/* Stops following a process, by until_ns; the lines written stay. */
void jit_process_release(struct jit_process *p, uint64_t until_ns);

#endif
