/* The part of the contract descriptor of .NET 10.0.12 for x64 that profcpu uses, as text. */
#ifndef TESTS_UNIT_CLR_NET10_H
#define TESTS_UNIT_CLR_NET10_H

static const char clr_net10[] =
	"{\"version\":0,\"baseline\":\"empty\",\"contracts\":{\"ExecutionManager\":2},\"types\":{"
	"\"RangeSectionMap\":{"
	"\"TopLevelData\":0},\"RangeSectionFragment\":{\"RangeBegin\":8,\"RangeEndOpen\":16,"
	"\"RangeSection\":24,\"Next"
	"\":0},\"RangeSection\":{\"RangeBegin\":0,\"RangeEndOpen\":8,\"Flags\":16,\"HeapList\":40,"
	"\"R2RModule\":32},\"C"
	"odeHeapListNode\":{\"StartAddress\":16,\"EndAddress\":24,\"MapBase\":32,\"HeaderMap\":40},"
	"\"RealCodeHeader\":{"
	"\"GCInfo\":16,\"MethodDesc\":24,\"NumUnwindInfos\":32,\"UnwindInfos\":36},"
	"\"RuntimeFunction\":{\"!\":12,\"BeginAddress\":0,"
	"\"EndAddress\":4,\"UnwindData\":8},\"MethodDesc\":{\"!\":16,\"ChunkIndex\":2,\"Flags\":6,"
	"\"Flags3AndTokenRemainder\":0},\"Metho"
	"dDescChunk\":{\"!\":24,\"MethodTable\":0,\"FlagsAndTokenRange\":18},"
	"\"StoredSigMethodDesc\":{\"Sig\":16,\"cSig"
	"\":24},\"DynamicMethodDesc\":{\"MethodName\":32,\"!\":48},\"MethodTable\":{\"!\":64,"
	"\"MTFlags\":0,\"MTFlags2\""
	":8,\"EEClassOrCanonMT\":40,\"Module\":24,\"PerInstInfo\":48},\"GenericsDictInfo\":{"
	"\"NumDicts\":4,\"NumTypeArg"
	"s\":6},\"ArrayClass\":{\"Rank\":72},\"TypeDesc\":{\"TypeAndFlags\":0},\"ParamTypeDesc\":{"
	"\"TypeArg\":16},\"Mod"
	"ule\":{\"Path\":200,\"PEAssembly\":216,\"DynamicMetadata\":840},\"PEAssembly\":{"
	"\"PEImage\":8},\"PEImage\":{\"LoadedImageLa"
	"yout\":128},\"PEImageLayout\":{\"Base\":8,\"Size\":16,\"Flags\":20},\"DynamicMetadata\":{"
	"\"Size\":0,\"Data\":4"
	"}},\"globals\":{\"ExecutionManagerCodeRangeMapAddress\":[[20],\"pointer\"],"
	"\"StubCodeBlockLast\":[\"0xf\",\"ui"
	"nt8\"],\"MethodDescTokenRemainderBitCount\":[\"0xc\",\"uint8\"],\"MethodDescAlignment\":["
	"\"0x8\",\"uint64\"],"
	"\"Architecture\":[\"x64\",\"string\"]}}";

#define CLR_NET10_POINTERS 24  /* offset of the descriptor's table */
#define CLR_NET10_RANGE_MAP 20 /* the pointer to the code map */

#endif
