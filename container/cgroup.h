/* The container that a process runs in, found by its control group. */
#ifndef CONTAINER_CGROUP_H
#define CONTAINER_CGROUP_H

#include <stddef.h>

#define CGROUP_CONTAINER_BYTES 80 /* holds a whole container id */

/*
 * Finds a container id in the text of /proc/PID/cgroup: the last path component with 64 hex digits.
 * Examples: "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID", "/docker/ID",
 * "/kubepods/.../ID". Otherwise takes the name that LXC or systemd-nspawn gave. Writes an empty
 * text if it finds neither.
 */
void cgroup_container_id(const char *cgroup_text, char *buf, size_t cap);

#endif
