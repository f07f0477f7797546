/* Events of a runtime, and a stream that lists its methods. */
#ifndef TESTS_UNIT_FAKE_EVENTS_H
#define TESTS_UNIT_FAKE_EVENTS_H

#include "base/clock.h"
#include "dotnet/eventpipe/method_name.h"
#include "tests/unit/nettrace_writer.h"

#define FAKE_RUNTIME "Microsoft-Windows-DotNETRuntime"
#define FAKE_RUNDOWN FAKE_RUNTIME "Rundown"
#define FAKE_COLLECTIBLE 8 /* flag of an assembly */

enum { FAKE_MODULE = 0x700, FAKE_ASSEMBLY = 0x800 };

/* Payloads. */
static inline struct outbuf fake_method(unsigned version, uint64_t start, uint32_t flags,
					uint32_t token, const char *signature)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, 0x900);
	ipc_put_u64(&p, FAKE_MODULE);
	ipc_put_u64(&p, start);
	ipc_put_u32(&p, 0x40);
	ipc_put_u32(&p, token);
	ipc_put_u32(&p, flags);
	nt_text(&p, flags & METHOD_DYNAMIC ? "dynamicClass" : "N.T`1[System.__Canon]");
	nt_text(&p, "M");
	nt_text(&p, signature);
	nt_u16(&p, 1);
	if (version >= 2)
		ipc_put_u64(&p, 77);
	return p;
}

static inline struct outbuf fake_module(void)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, FAKE_MODULE);
	ipc_put_u64(&p, FAKE_ASSEMBLY);
	ipc_put_u32(&p, 8);
	ipc_put_u32(&p, 0);
	nt_text(&p, "/app/a.dll");
	nt_text(&p, "");
	nt_u16(&p, 1);
	outbuf_put(&p, "GUIDguidGUIDguid", 16);
	ipc_put_u32(&p, 1);
	nt_text(&p, "a.pdb");
	return p;
}

static inline struct outbuf fake_assembly(const char *full_name, uint32_t flags)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, FAKE_ASSEMBLY);
	ipc_put_u64(&p, 1);
	ipc_put_u64(&p, 2);
	ipc_put_u32(&p, flags);
	nt_text(&p, full_name);
	nt_u16(&p, 1);
	return p;
}

/*
 * A whole stream as .NET 5 and 6 write it: the methods with their layout 1, then their module and
 * its assembly, with these flags.
 */
static inline void fake_put_list(struct outbuf *s, unsigned methods, uint32_t flags)
{
	struct outbuf payloads[] = {fake_module(), fake_assembly("Old, Version=6.0.0.0", flags)};

	nt_head(s);
	nt_trace(s, NS_PER_S);
	nt_kind(s, 1, FAKE_RUNDOWN, 144, "", 1);
	nt_kind(s, 2, FAKE_RUNDOWN, 154, "", 2);
	nt_kind(s, 3, FAKE_RUNDOWN, 156, "", 1);
	for (unsigned i = 0; i < methods + 2; i++) {
		struct outbuf p = i < methods ? fake_method(1, 0x1000 * (i + 1), METHOD_JITTED,
							    0x06000001, "void  ()")
					      : payloads[i - methods];
		struct outbuf b = nt_events(true);
		struct nettrace_blob e = {.metadata_id = i < methods ? 1 : 2 + i - methods,
					  .sequence = i + 1,
					  .capture_thread = 1,
					  .ticks = 50,
					  .payload = (const unsigned char *)p.data,
					  .payload_len = (uint32_t)p.len};

		nt_compressed(&b, &e, 0, 0);
		nt_block(s, "EventBlock", &b);
		outbuf_close(&p);
	}
	nt_end(s);
}

#endif
