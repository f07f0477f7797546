#include "elf/cfi_entry.h"

#include <dwarf.h>
#include <errno.h>

#define LENGTH_64 UINT32_C(0xffffffff) /* the next 8 bytes are the length */
#define FORMAT_MASK 0x0f

/*
 * In .eh_frame the CIE id is 0 and always has 4 bytes, also with an 8-byte length. An FDE stores
 * the distance back from that field to its CIE.
 */
int cfi_head_read(const unsigned char *p, size_t have, uint64_t off, uint64_t section_bytes,
		  bool eh, struct cfi_head *ret_head)
{
	struct dwarf_bytes b = {.p = p, .end = p + have};
	uint64_t length = dwarf_uint(&b, 4);
	bool is_64 = length == LENGTH_64;

	if (b.bad)
		return -EBADMSG;
	if (!length)
		return -ENOENT;
	if (is_64)
		length = dwarf_uint(&b, 8);
	uint64_t field = off + (uint64_t)(b.p - p);
	unsigned int id_bytes = is_64 && !eh ? 8 : 4;

	if (b.bad || field > section_bytes || length > section_bytes - field || length < id_bytes)
		return -EBADMSG;
	uint64_t id = dwarf_uint(&b, id_bytes);

	if (b.bad)
		return -EBADMSG;
	struct cfi_head head = {.off = off, .body = field + id_bytes, .end = field + length};

	head.is_cie = eh ? !id : id == (is_64 ? UINT64_MAX : UINT32_MAX);
	if (!head.is_cie)
		head.cie = !eh           ? id
			   : id <= field ? field - id
					 : UINT64_MAX; /* outside any section */
	*ret_head = head;
	return 0;
}

static uint64_t read_format(struct dwarf_bytes *b, uint8_t encoding, uint8_t address_bytes,
			    int *ret_error)
{
	switch (encoding & FORMAT_MASK) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
		return dwarf_uint(b, address_bytes);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return dwarf_uint(b, 8);
	case DW_EH_PE_uleb128:
		return dwarf_uleb(b);
	case DW_EH_PE_sleb128:
		return (uint64_t)dwarf_sleb(b);
	case DW_EH_PE_udata2:
		return dwarf_uint(b, 2);
	case DW_EH_PE_udata4:
		return dwarf_uint(b, 4);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)dwarf_uint(b, 2);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)dwarf_uint(b, 4);
	default:
		*ret_error = -ENOTSUP;
		return 0;
	}
}

int cfi_pointer(struct dwarf_bytes *b, uint8_t encoding, uint8_t address_bytes, uint64_t here,
		uint64_t data, uint64_t *ret_value)
{
	uint8_t relative = encoding & CFI_RELATIVE_MASK;
	int error = encoding == DW_EH_PE_omit || encoding & DW_EH_PE_indirect ? -ENOTSUP : 0;
	uint64_t value = error ? 0 : read_format(b, encoding, address_bytes, &error);

	if (relative == DW_EH_PE_pcrel)
		value += here;
	else if (relative == DW_EH_PE_datarel && data)
		value += data;
	else if (relative)
		error = -ENOTSUP;
	if (error || b->bad)
		return error ? error : -EBADMSG;
	*ret_value = address_bytes == 4 ? (uint32_t)value : value;
	return 0;
}

/* Skips the pointer to the exception handler. */
static void skip_personality(struct dwarf_bytes *b, uint8_t address_bytes, int *ret_error)
{
	uint8_t encoding = (uint8_t)dwarf_uint(b, 1);

	if (encoding == DW_EH_PE_omit)
		return;
	if ((encoding & CFI_RELATIVE_MASK) == DW_EH_PE_aligned)
		*ret_error = -ENOTSUP;
	(void)read_format(b, encoding, address_bytes, ret_error);
}

/* Reads the data of an augmentation. letters: those after z. */
static int read_augmentation(struct dwarf_bytes *b, const unsigned char *letters, size_t n,
			     struct cfi_cie *cie)
{
	uint64_t len = dwarf_uleb(b);
	struct dwarf_bytes data = *b;
	int error = 0;

	dwarf_skip(b, len);
	if (b->bad)
		return -EBADMSG;
	data.end = b->p;
	for (size_t i = 0; i < n && !error; i++) {
		if (letters[i] == 'R')
			cie->encoding = (uint8_t)dwarf_uint(&data, 1);
		else if (letters[i] == 'L')
			dwarf_skip(&data, 1);
		else if (letters[i] == 'P')
			skip_personality(&data, cie->address_bytes, &error);
		else if (letters[i] == 'S')
			cie->signal = true;
		else if (letters[i] != 'B')
			error = -ENOTSUP;
	}
	return error ? error : data.bad ? -EBADMSG : 0;
}

int cfi_cie_read(const unsigned char *body, size_t len, uint8_t address_bytes,
		 struct cfi_cie *ret_cie)
{
	struct dwarf_bytes b = {.p = body, .end = body + len};
	struct cfi_cie cie = {.address_bytes = address_bytes, .encoding = DW_EH_PE_absptr};
	uint64_t version = dwarf_uint(&b, 1);
	const unsigned char *letters = b.p,
			    *nul = b.bad ? NULL : memchr(b.p, 0, (size_t)(b.end - b.p));

	if (!nul)
		return -EBADMSG;
	size_t n = (size_t)(nul - letters);

	if ((version != 1 && version != 3 && version != 4) || n > CFI_AUGMENTATION_MAX ||
	    (n && *letters != 'z'))
		return -ENOTSUP;
	b.p = nul + 1;
	if (version == 4 && (dwarf_uint(&b, 1) != address_bytes || dwarf_uint(&b, 1)))
		return b.bad ? -EBADMSG : -ENOTSUP; /* another address size, or segments */
	cie.code_align = dwarf_uleb(&b);
	cie.data_align = dwarf_sleb(&b);
	cie.return_column = version == 1 ? dwarf_uint(&b, 1) : dwarf_uleb(&b);
	if (b.bad)
		return -EBADMSG;
	cie.has_augmentation = n > 0;
	int r = n ? read_augmentation(&b, letters + 1, n - 1, &cie) : 0;

	cie.program = b.p;
	cie.program_bytes = (size_t)(b.end - b.p);
	if (!r)
		*ret_cie = cie;
	return r;
}

int cfi_fde_read(const struct cfi_cie *cie, const unsigned char *body, size_t len, uint64_t here,
		 struct cfi_fde *ret_fde)
{
	struct dwarf_bytes b = {.p = body, .end = body + len};
	struct cfi_fde fde;
	uint64_t bytes;
	int r = cfi_pointer(&b, cie->encoding, cie->address_bytes, here, 0, &fde.start);

	if (r)
		return r;
	if (cie->encoding & CFI_RELATIVE_MASK && fde.start == here)
		return -ENOENT;
	r = cfi_pointer(&b, cie->encoding & FORMAT_MASK, cie->address_bytes, 0, 0, &bytes);
	if (r)
		return r;
	if (cie->has_augmentation)
		dwarf_skip(&b, dwarf_uleb(&b));
	if (b.bad || bytes > UINT64_MAX - fde.start)
		return -EBADMSG;
	fde.end = fde.start + bytes;
	fde.program = b.p;
	fde.program_bytes = (size_t)(b.end - b.p);
	*ret_fde = fde;
	return 0;
}
