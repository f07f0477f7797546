/*
 * Layouts of runtimes that do not describe their JIT code, in the format of .NET 10's descriptor.
 * The structures of a version do not change while it is serviced. .NET 9 describes most of these
 * fields itself. The others were found in running processes, by pointers between structures with
 * known contents, such as range sections, code headers and metadata of mapped files.
 *
 * tests/dotnet/promises/agree.sh compares all fields with the runtimes' own lists. A user of a
 * layout must check that its results are consistent.
 */
#include "dotnet/coreclr/layouts.h"

#include <stddef.h>

#define CODE                                                                                   \
	"\"RangeSectionMap\":{\"TopLevelData\":0},"                                            \
	"\"RangeSectionFragment\":{\"Next\":0,\"RangeBegin\":8,\"RangeEndOpen\":16,"           \
	"\"RangeSection\":24},"                                                                \
	"\"RangeSection\":{\"RangeBegin\":0,\"RangeEndOpen\":8,\"Flags\":16,\"R2RModule\":32," \
	"\"HeapList\":40},"                                                                    \
	"\"CodeHeapListNode\":{\"StartAddress\":16,\"EndAddress\":24,\"MapBase\":32,"          \
	"\"HeaderMap\":40},"                                                                   \
	"\"RealCodeHeader\":{\"MethodDesc\":24,\"NumUnwindInfos\":32,\"UnwindInfos\":36},"     \
	"\"RuntimeFunction\":{\"!\":12,\"BeginAddress\":0,\"EndAddress\":4,\"UnwindData\":8},"
#define TYPES                                                                             \
	"\"MethodDescChunk\":{\"!\":24,\"MethodTable\":0,\"FlagsAndTokenRange\":18},"     \
	"\"MethodTable\":{\"!\":64,\"MTFlags\":0,\"MTFlags2\":8,\"EEClassOrCanonMT\":40," \
	"\"Module\":24,\"PerInstInfo\":48},"                                              \
	"\"GenericsDictInfo\":{\"NumDicts\":4,\"NumTypeArgs\":6},"                        \
	"\"TypeDesc\":{\"TypeAndFlags\":0},\"ParamTypeDesc\":{\"TypeArg\":16},"           \
	"\"PEAssembly\":{\"PEImage\":8},\"PEImage\":{\"LoadedImageLayout\":120},"         \
	"\"PEImageLayout\":{\"Base\":8,\"Size\":16,\"Flags\":20},"
#define METHOD_FIELDS "\"ChunkIndex\":2,\"Flags\":6,\"Flags3AndTokenRemainder\":0}"
#define GLOBALS                                                                                    \
	"\"ExecutionManagerCodeRangeMapAddress\":[0],\"StubCodeBlockLast\":15,"                    \
	"\"MethodDescTokenRemainderBitCount\":12,"                                                 \
	"\"MethodDescAlignment\":8,\"Architecture\":\"x64\"},\"contracts\":{\"ExecutionManager\":" \
	"1}}"

const char *clr_layouts_find(uint32_t major)
{
	static const char net8[] =
		"{\"types\":{" CODE TYPES "\"MethodDesc\":{\"!\":8," METHOD_FIELDS ","
		"\"StoredSigMethodDesc\":{\"Sig\":8,\"cSig\":16},\"DynamicMethodDesc\":{\"!\":40,"
		"\"MethodName\":24},"
		"\"ArrayClass\":{\"Rank\":56},\"Module\":{\"PEAssembly\":272}},\"globals\":{"
		"\"" CLR_LAYOUTS_TOKEN_SHIFT "\":16,\"" CLR_LAYOUTS_EMITTED "\":1," GLOBALS;
	static const char net9[] =
		"{\"types\":{" CODE TYPES "\"MethodDesc\":{\"!\":16," METHOD_FIELDS ","
		"\"StoredSigMethodDesc\":{\"Sig\":16,\"cSig\":24},\"DynamicMethodDesc\":{\"!\":48,"
		"\"MethodName\":32},"
		"\"ArrayClass\":{\"Rank\":72},\"Module\":{\"PEAssembly\":280,\"DynamicMetadata\":"
		"1120},"
		"\"DynamicMetadata\":{\"Size\":0,\"Data\":4}},\"globals\":{" GLOBALS;

	return major == 8 ? net8 : major == 9 ? net9 : NULL;
}
