#include "profcpu/trace/port_report.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

void port_report(const struct port *p, const struct port_error *error)
{
	char text[PORT_TEXT_BYTES];

	port_error_text(error, text, sizeof(text));
	if (p->path && error->code == -ENOENT)
		log_error("%s: %s: no runtime listens there", p->path, strerror(ENOENT));
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
