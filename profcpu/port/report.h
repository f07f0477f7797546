/* Messages for failures of a diagnostic port. */
#ifndef PROFCPU_PORT_REPORT_H
#define PROFCPU_PORT_REPORT_H

#include "dotnet/eventpipe/port.h"

/* Reports that a command to the runtime failed, in one log_error line. */
void port_report(const struct port *p, const struct port_error *error);

#endif
