#include "profcpu/port/report.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

void port_report(const struct port *p, const struct port_error *error)
{
	char text[PORT_TEXT_BYTES];

	port_error_text(error, text, sizeof(text));
	if (p->path && error->code == -ENOENT)
		log_error("%s: %s: no runtime listens there", p->path, strerror(ENOENT));
	else if (p->path && error->code == -ECONNREFUSED)
		log_error("%s: no process listens there any more", p->path);
	else if (p->path && error->code == -ENAMETOOLONG)
		log_error("%s: longer than the path of a socket can be, 107 bytes; use a symbolic "
			  "link, or a path from the current directory",
			  p->path);
	else if (p->path && error->code == -ENOTSOCK)
		log_error("%s: it is not a socket; give the one on which the runtime listens",
			  p->path);
	else if (p->path && (error->code == -EACCES || error->code == -EPERM))
		log_error("%s: %s; run as the user whose process listens there, or as root",
			  p->path, text);
	else if (p->path)
		log_error("%s: %s", p->path, text);
	else if (!p->pid)
		log_error("the runtime: %s", text);
	else if (error->code == -ESRCH)
		log_error("process %d does not exist", p->pid);
	else if (error->code == -EACCES)
		log_error("process %d: %s; run as its user, or with the capabilities that "
			  "`profcpu doctor -p %d` names",
			  p->pid, text, p->pid);
	else
		log_error("process %d: %s", p->pid, text);
}
