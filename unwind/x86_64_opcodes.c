#include "unwind/x86_64_opcodes.h"

/* Short names, to give each row of 16 opcodes one line, as in the manual's opcode maps. */
#define __ 0
#define BAD X86_64_OP_BAD
#define I1 X86_64_OP_IMM8
#define I2 X86_64_OP_IMM16
#define I3 (X86_64_OP_IMM8 | X86_64_OP_IMM16)
#define IZ X86_64_OP_IMM32
#define M X86_64_OP_MODRM
#define M1 (M | I1)
#define MR (M | X86_64_OP_TO_REG)
#define MR1 (MR | I1)
#define MRZ (MR | IZ)
#define MM (M | X86_64_OP_TO_RM)
#define MM1 (MM | I1)
#define MMZ (MM | IZ)
#define MX (MR | MM)

/* clang-format off */
const uint8_t x86_64_one_byte[256] = {
	/*       x0   x1   x2   x3   x4   x5   x6   x7   x8   x9   xA   xB   xC   xD   xE   xF  */
	/* 0x */ MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD, MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD,
	/* 1x */ MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD, MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD,
	/* 2x */ MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD, MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD,
	/* 3x */ MM,  MM,  MR,  MR,  I1,  IZ,  BAD, BAD, M,   M,   M,   M,   I1,  IZ,  BAD, BAD,
	/* 4x */ BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
	/* 5x */ __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  __,
	/* 6x */ BAD, BAD, BAD, MR,  BAD, BAD, BAD, BAD, IZ,  MRZ, I1,  MR1, __,  __,  __,  __,
	/* 7x */ I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,
	/* 8x */ MM1, MMZ, BAD, MM1, M,   M,   MX,  MX,  MM,  MM,  MR,  MR,  MM,  MR,  M,   MM,
	/* 9x */ __,  __,  __,  __,  __,  __,  __,  __,  __,  __,  BAD, __,  __,  __,  __,  __,
	/* Ax */ __,  __,  __,  __,  __,  __,  __,  __,  I1,  IZ,  __,  __,  __,  __,  __,  __,
	/* Bx */ I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,
	/* Cx */ MM1, MM1, I2,  __,  BAD, BAD, MM1, MMZ, I3,  __,  I2,  __,  __,  I1,  BAD, __,
	/* Dx */ MM,  MM,  MM,  MM,  BAD, BAD, BAD, __,  M,   M,   M,   M,   M,   M,   M,   M,
	/* Ex */ I1,  I1,  I1,  I1,  I1,  I1,  I1,  I1,  IZ,  IZ,  BAD, I1,  __,  __,  __,  __,
	/* Fx */ __,  __,  __,  __,  __,  __,  MM,  MM,  __,  __,  __,  __,  __,  __,  MM,  MM,
};

const uint8_t x86_64_two_bytes[256] = {
	/*       x0   x1   x2   x3   x4   x5   x6   x7   x8   x9   xA   xB   xC   xD   xE   xF  */
	/* 0x */ M,   M,   MR,  MR,  BAD, __,  __,  __,  __,  __,  BAD, __,  BAD, M,   __,  M1,
	/* 1x */ M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,
	/* 2x */ MM,  MM,  M,   M,   BAD, BAD, BAD, BAD, M,   M,   M,   M,   MR,  MR,  M,   M,
	/* 3x */ __,  __,  __,  __,  __,  __,  BAD, __,  BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
	/* 4x */ MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,  MR,
	/* 5x */ MR,  M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,
	/* 6x */ M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,
	/* 7x */ M1,  M1,  M1,  M1,  M,   M,   M,   __,  M,   M,   BAD, BAD, M,   M,   MM,  M,
	/* 8x */ IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,  IZ,
	/* 9x */ MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,  MM,
	/* Ax */ __,  __,  __,  M,   MM1, MM,  BAD, BAD, __,  __,  __,  MM,  MM1, MM,  M,   MR,
	/* Bx */ MM,  MM,  MR,  MM,  MR,  MR,  MR,  MR,  MR,  BAD, MM1, MM,  MR,  MR,  MR,  MR,
	/* Cx */ MX,  MX,  M1,  M,   M1,  MR1, M1,  MM,  __,  __,  __,  __,  __,  __,  __,  __,
	/* Dx */ M,   M,   M,   M,   M,   M,   M,   MR,  M,   M,   M,   M,   M,   M,   M,   M,
	/* Ex */ M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,
	/* Fx */ M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,   M,
};
/* clang-format on */
