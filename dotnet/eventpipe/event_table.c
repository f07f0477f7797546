#include "dotnet/eventpipe/event_table.h"

#include <string.h>

/* Most events have the number of the runtime in the process. */
#define CLR "ClrInstanceID:u16"

#define HEAP "HeapNum:u32 " CLR
#define SAMPLED \
	"Address:ptr TypeID:ptr ObjectCountForTypeSample:u32 TotalSizeForTypeSample:u64 " CLR
#define BULK "Index:u32 Count:u32 " CLR " Values:[Count]"
#define SET_HANDLE "HandleID:ptr ObjectID:ptr Kind:u32 Generation:u32 AppDomainID:u64 " CLR
#define WORKER "WorkerThreadCount:u32 RetiredWorkerThreads:u32"
#define IO_THREAD "IOThreadCount:u32 RetiredIOThreads:u32 " CLR
#define POOL "ActiveWorkerThreadCount:u32 RetiredWorkerThreadCount:u32 " CLR
#define OVERLAPPED "NativeOverlapped:ptr Overlapped:ptr "
#define STACK_WALK CLR " Reserved1:u8 Reserved2:u8 FrameCount:u32 Stack:[FrameCount]ptr"
#define THREAD "ManagedThreadID:u64 AppDomainID:u64 "
#define THREAD_CREATED THREAD "Flags:u32 ManagedThreadIndex:u32 OSThreadID:u32 " CLR
#define HANDLER "EntryEIP:u64 MethodID:u64 MethodName:text " CLR

#define METHOD_NAME "MethodNamespace:text MethodName:text MethodSignature:text"
#define METHOD                                                                             \
	"MethodID:u64 ModuleID:u64 MethodStartAddress:u64 MethodSize:u32 MethodToken:u32 " \
	"MethodFlags:u32"
#define METHOD_LOAD METHOD " " CLR " ReJITID:u64"
#define METHOD_LOAD_VERBOSE METHOD " " METHOD_NAME " " CLR " ReJITID:u64"
#define METHOD_MAP                                                                   \
	"MethodID:u64 ReJITID:u64 MethodExtent:u8 CountOfMapEntries:u16 "            \
	"ILOffsets:[CountOfMapEntries]u32 NativeOffsets:[CountOfMapEntries]u32 " CLR \
	" ILVersionID:u64"
#define COMPILED                                                          \
	"MethodBeingCompiledNamespace:text MethodBeingCompiledName:text " \
	"MethodBeingCompiledNameSignature:text "
#define INLINING                                                                     \
	COMPILED "InlinerNamespace:text InlinerName:text InlinerNameSignature:text " \
		 "InlineeNamespace:text InlineeName:text InlineeNameSignature:text "
#define TAIL_CALL                                                                 \
	COMPILED "CallerNamespace:text CallerName:text CallerNameSignature:text " \
		 "CalleeNamespace:text CalleeName:text CalleeNameSignature:text TailPrefix:bool "
#define INSTRUMENTATION CLR " MethodFlags:u32 DataSize:u32 MethodID:u64"

#define PATHS "ModuleFlags:u32 Reserved1:u32 ModuleILPath:text ModuleNativePath:text"
#define DOMAIN_MODULE "ModuleID:u64 AssemblyID:u64 AppDomainID:u64 " PATHS " " CLR
#define MODULE "ModuleID:u64 AssemblyID:u64 " PATHS
#define MODULE_LOAD                                                                            \
	MODULE " " CLR " ManagedPdbSignature:guid ManagedPdbAge:u32 ManagedPdbBuildPath:text " \
	       "NativePdbSignature:guid NativePdbAge:u32 NativePdbBuildPath:text"
#define MODULE_RANGE CLR " ModuleID:u64 RangeBegin:u32 RangeSize:u32 RangeType:u8"
#define ASSEMBLY_V0 \
	"AssemblyID:u64 AppDomainID:u64 AssemblyFlags:u32 FullyQualifiedAssemblyName:text"
#define ASSEMBLY                                                          \
	"AssemblyID:u64 AppDomainID:u64 BindingID:u64 AssemblyFlags:u32 " \
	"FullyQualifiedAssemblyName:text " CLR
#define DOMAIN "AppDomainID:u64 AppDomainFlags:u32 AppDomainName:text AppDomainIndex:u32 " CLR
#define RUNTIME                                                                         \
	CLR " Sku:u16 BclMajorVersion:u16 BclMinorVersion:u16 BclBuildNumber:u16 "      \
	    "BclQfeNumber:u16 VMMajorVersion:u16 VMMinorVersion:u16 VMBuildNumber:u16 " \
	    "VMQfeNumber:u16 StartupFlags:u32 StartupMode:u8 CommandLine:text "         \
	    "ComObjectGuid:guid RuntimeDllPath:text"
#define VERIFY "VerificationFlags:u32 ErrorCode:u32 "
#define LOADING                                                             \
	CLR " AssemblyName:text AssemblyPath:text RequestingAssembly:text " \
	    "AssemblyLoadContext:text RequestingAssemblyLoadContext:text"
#define RESULT "ResultAssemblyName:text ResultAssemblyPath:text"

static const struct event_layout runtime_events[] = {
	{1, 0, "GCStart", "Count:u32 Reason:u32"},
	{1, 1, "GCStart",
	 "Count:u32 Depth:u32 Reason:u32 Type:u32 " CLR " ClientSequenceNumber:u64"},
	{2, 0, "GCEnd", "Count:u32 Depth:u16"},
	{2, 1, "GCEnd", "Count:u32 Depth:u32 " CLR},
	{3, 0, "GCRestartEEEnd", CLR},
	{4, 0, "GCHeapStats",
	 "GenerationSize0:u64 TotalPromotedSize0:u64 GenerationSize1:u64 TotalPromotedSize1:u64 "
	 "GenerationSize2:u64 TotalPromotedSize2:u64 GenerationSize3:u64 TotalPromotedSize3:u64 "
	 "FinalizationPromotedSize:u64 FinalizationPromotedCount:u64 PinnedObjectCount:u32 "
	 "SinkBlockCount:u32 GCHandleCount:u32 " CLR " GenerationSize4:u64 TotalPromotedSize4:u64"},
	{5, 0, "GCCreateSegment", "Address:u64 Size:u64 Type:u32 " CLR},
	{6, 0, "GCFreeSegment", "Address:u64 " CLR},
	{7, 0, "GCRestartEEBegin", CLR},
	{8, 0, "GCSuspendEEEnd", CLR},
	{9, 0, "GCSuspendEEBegin", "Reason:u16"},
	{9, 1, "GCSuspendEEBegin", "Reason:u32 Count:u32 " CLR},
	{10, 0, "GCAllocationTick",
	 "AllocationAmount:u32 AllocationKind:u32 " CLR " AllocationAmount64:u64 TypeID:ptr "
	 "TypeName:text HeapIndex:u32 Address:ptr ObjectSize:u64"},
	{11, 0, "GCCreateConcurrentThread", CLR},
	{12, 0, "GCTerminateConcurrentThread", CLR},
	{13, 0, "GCFinalizersEnd", "Count:u32 " CLR},
	{14, 0, "GCFinalizersBegin", CLR},
	{15, 0, "BulkType",
	 "Count:u32 " CLR
	 " Values:[Count]{TypeID:u64 ModuleID:u64 TypeNameID:u32 Flags:u32 CorElementType:u8 "
	 "Name:text TypeParameterCount:u32 TypeParameters:[TypeParameterCount]u64}"},
	{16, 0, "GCBulkRootEdge",
	 BULK "{RootedNodeAddress:ptr GCRootKind:u8 GCRootFlag:u32 GCRootID:ptr}"},
	{17, 0, "GCBulkRootConditionalWeakTableElementEdge",
	 BULK "{GCKeyNodeID:ptr GCValueNodeID:ptr GCRootID:ptr}"},
	{18, 0, "GCBulkNode", BULK "{Address:ptr Size:u64 TypeID:u64 EdgeCount:u64}"},
	{19, 0, "GCBulkEdge", BULK "{Value:ptr ReferencingFieldID:u32}"},
	{20, 0, "GCSampledObjectAllocationHigh", SAMPLED},
	{21, 0, "GCBulkSurvivingObjectRanges", BULK "{RangeBase:ptr RangeLength:u64}"},
	{22, 0, "GCBulkMovedObjectRanges",
	 BULK "{OldRangeBase:ptr NewRangeBase:ptr RangeLength:u64}"},
	{23, 0, "GCGenerationRange",
	 "Generation:u8 RangeStart:ptr RangeUsedLength:u64 RangeReservedLength:u64 " CLR},
	{25, 0, "GCMarkStackRoots", HEAP},
	{26, 0, "GCMarkFinalizeQueueRoots", HEAP},
	{27, 0, "GCMarkHandles", HEAP},
	{28, 0, "GCMarkOlderGenerationRoots", HEAP},
	{29, 0, "FinalizeObject", "TypeID:ptr ObjectID:ptr " CLR},
	{30, 0, "SetGCHandle", SET_HANDLE},
	{31, 0, "DestroyGCHandle", "HandleID:ptr " CLR},
	{32, 0, "GCSampledObjectAllocationLow", SAMPLED},
	{33, 0, "PinObjectAtGCTime", "HandleID:ptr ObjectID:ptr ObjectSize:u64 TypeName:text " CLR},
	{35, 0, "GCTriggered", "Reason:u32 " CLR},
	{36, 0, "GCBulkRootCCW",
	 "Count:u32 " CLR " Values:[Count]{GCRootID:u64 ObjectID:u64 TypeID:u64 IUnknown:u64 "
	 "RefCount:u32 PeggedRefCount:u32 Flags:u32}"},
	{37, 0, "GCBulkRCW",
	 "Count:u32 " CLR " Values:[Count]{ObjectID:u64 TypeID:u64 IUnknown:u64 VTable:u64 "
	 "RefCount:u32 Flags:u32}"},
	{38, 0, "GCBulkRootStaticVar",
	 "Count:u32 AppDomainID:u64 " CLR
	 " Values:[Count]{GCRootID:u64 ObjectID:u64 TypeID:u64 Flags:u32 FieldName:text}"},
	{39, 0, "GCDynamicEvent", "Name:text DataSize:u32 Data:[DataSize]u8 " CLR},
	{40, 0, "WorkerThreadCreate", WORKER},
	{41, 0, "WorkerThreadTerminate", WORKER},
	{42, 0, "WorkerThreadRetire", WORKER},
	{43, 0, "WorkerThreadUnretire", WORKER},
	{44, 0, "IOThreadCreate", IO_THREAD},
	{45, 0, "IOThreadTerminate", IO_THREAD},
	{46, 0, "IOThreadRetire", IO_THREAD},
	{47, 0, "IOThreadUnretire", IO_THREAD},
	{48, 0, "ThreadpoolSuspensionSuspendThread", "ClrThreadID:u32 CpuUtilization:u32"},
	{49, 0, "ThreadpoolSuspensionResumeThread", "ClrThreadID:u32 CpuUtilization:u32"},
	{50, 0, "ThreadPoolWorkerThreadStart", POOL},
	{51, 0, "ThreadPoolWorkerThreadStop", POOL},
	{52, 0, "ThreadPoolWorkerThreadRetirementStart", POOL},
	{53, 0, "ThreadPoolWorkerThreadRetirementStop", POOL},
	{54, 0, "ThreadPoolWorkerThreadAdjustmentSample", "Throughput:f64 " CLR},
	{55, 0, "ThreadPoolWorkerThreadAdjustmentAdjustment",
	 "AverageThroughput:f64 NewWorkerThreadCount:u32 Reason:u32 " CLR},
	{56, 0, "ThreadPoolWorkerThreadAdjustmentStats",
	 "Duration:f64 Throughput:f64 ThreadWave:f64 ThroughputWave:f64 "
	 "ThroughputErrorEstimate:f64 AverageThroughputErrorEstimate:f64 ThroughputRatio:f64 "
	 "Confidence:f64 NewControlSetting:f64 NewThreadWaveMagnitude:u16 " CLR},
	{57, 0, "ThreadPoolWorkerThreadWait", POOL},
	{58, 0, "YieldProcessorMeasurement", CLR " NsPerYield:f64 EstablishedNsPerYield:f64"},
	{59, 0, "ThreadPoolMinMaxThreads",
	 "MinWorkerThreads:u16 MaxWorkerThreads:u16 MinIOCompletionThreads:u16 "
	 "MaxIOCompletionThreads:u16 " CLR},
	{60, 0, "ThreadPoolWorkingThreadCount", "Count:u32 " CLR},
	{61, 0, "ThreadPoolEnqueue", "WorkID:ptr " CLR},
	{62, 0, "ThreadPoolDequeue", "WorkID:ptr " CLR},
	{63, 0, "ThreadPoolIOEnqueue", OVERLAPPED "MultiDequeues:bool " CLR},
	{64, 0, "ThreadPoolIODequeue", OVERLAPPED CLR},
	{65, 0, "ThreadPoolIOPack", OVERLAPPED CLR},
	{70, 0, "ThreadCreating", "ID:ptr " CLR},
	{71, 0, "ThreadRunning", "ID:ptr " CLR},
	{72, 0, "MethodDetails",
	 "MethodID:u64 TypeID:u64 MethodToken:u32 TypeParameterCount:u32 LoaderModuleID:u64 "
	 "TypeParameters:[TypeParameterCount]u64"},
	{73, 0, "TypeLoadStart", "TypeLoadStartID:u32 " CLR},
	{74, 0, "TypeLoadStop",
	 "TypeLoadStartID:u32 " CLR " LoadLevel:u16 TypeID:u64 TypeName:text"},
	{80, 0, "ExceptionThrown",
	 "ExceptionType:text ExceptionMessage:text ExceptionEIP:ptr ExceptionHRESULT:u32 "
	 "ExceptionFlags:u16 " CLR},
	{81, 0, "ContentionStart",
	 "ContentionFlags:u8 " CLR " LockID:ptr AssociatedObjectID:ptr LockOwnerThreadID:u64"},
	{82, 0, "CLRStackWalk", STACK_WALK},
	{83, 0, "AppDomainMemAllocated", "AppDomainID:u64 Allocated:u64 " CLR},
	{84, 0, "AppDomainMemSurvived", "AppDomainID:u64 Survived:u64 ProcessSurvived:u64 " CLR},
	{85, 0, "ThreadCreated", THREAD_CREATED},
	{86, 0, "ThreadTerminated", THREAD CLR},
	{87, 0, "ThreadDomainEnter", THREAD CLR},
	{88, 0, "ILStubGenerated",
	 CLR " ModuleID:u64 StubMethodID:u64 StubFlags:u32 ManagedInteropMethodToken:u32 "
	     "ManagedInteropMethodNamespace:text ManagedInteropMethodName:text "
	     "ManagedInteropMethodSignature:text NativeMethodSignature:text "
	     "StubMethodSignature:text StubMethodILCode:text"},
	{89, 0, "ILStubCacheHit",
	 CLR " ModuleID:u64 StubMethodID:u64 ManagedInteropMethodToken:u32 "
	     "ManagedInteropMethodNamespace:text ManagedInteropMethodName:text "
	     "ManagedInteropMethodSignature:text"},
	{90, 0, "ContentionLockCreated", "LockID:ptr AssociatedObjectID:ptr " CLR},
	{91, 0, "ContentionStop", "ContentionFlags:u8 " CLR " DurationNs:f64"},
	{135, 0, "DCStartCompleteV2", ""},
	{136, 0, "DCEndCompleteV2", ""},
	{137, 0, "MethodDCStartV2", METHOD},
	{138, 0, "MethodDCEndV2", METHOD},
	{139, 0, "MethodDCStartVerboseV2", METHOD " " METHOD_NAME},
	{140, 0, "MethodDCEndVerboseV2", METHOD " " METHOD_NAME},
	{141, 0, "MethodLoad", METHOD_LOAD},
	{142, 0, "MethodUnload", METHOD_LOAD},
	{143, 0, "MethodLoadVerbose", METHOD_LOAD_VERBOSE},
	{144, 0, "MethodUnloadVerbose", METHOD_LOAD_VERBOSE},
	{145, 0, "MethodJittingStarted",
	 "MethodID:u64 ModuleID:u64 MethodToken:u32 MethodILSize:u32 " METHOD_NAME " " CLR},
	{146, 0, "MethodJitMemoryAllocatedForCode",
	 "MethodID:u64 ModuleID:u64 JitHotCodeRequestSize:u64 JitRODataRequestSize:u64 "
	 "AllocatedSizeForJitCode:u64 JitAllocFlag:u32 " CLR},
	{149, 0, "ModuleDCStartV2", MODULE},
	{150, 0, "ModuleDCEndV2", MODULE},
	{151, 0, "DomainModuleLoad", DOMAIN_MODULE},
	{152, 0, "ModuleLoad", MODULE_LOAD " NativeBuildID:text"},
	{153, 0, "ModuleUnload", MODULE_LOAD},
	{154, 0, "AssemblyLoad", ASSEMBLY_V0},
	{154, 1, "AssemblyLoad", ASSEMBLY},
	{155, 0, "AssemblyUnload", ASSEMBLY_V0},
	{155, 1, "AssemblyUnload", ASSEMBLY},
	{156, 0, "AppDomainLoad", DOMAIN},
	{157, 0, "AppDomainUnload", DOMAIN},
	{158, 0, "ModuleRangeLoad", MODULE_RANGE},
	{159, 0, "R2RGetEntryPoint", "MethodID:u64 " METHOD_NAME " EntryPoint:u64 " CLR},
	{160, 0, "R2RGetEntryPointStart", "MethodID:u64 " CLR},
	{181, 0, "StrongNameVerificationStart", VERIFY "FullyQualifiedAssemblyName:text " CLR},
	{182, 0, "StrongNameVerificationStop", VERIFY "FullyQualifiedAssemblyName:text " CLR},
	{183, 0, "AuthenticodeVerificationStart", VERIFY "ModulePath:text " CLR},
	{184, 0, "AuthenticodeVerificationStop", VERIFY "ModulePath:text " CLR},
	{185, 0, "MethodJitInliningSucceeded", INLINING CLR},
	{186, 0, "MethodJitInliningFailedAnsi", INLINING "FailAlways:bool FailReason:text8 " CLR},
	{187, 0, "RuntimeInformationStart", RUNTIME},
	{188, 0, "MethodJitTailCallSucceeded", TAIL_CALL "TailCallType:u32 " CLR},
	{189, 0, "MethodJitTailCallFailedAnsi", TAIL_CALL "FailReason:text8 " CLR},
	{190, 0, "MethodILToNativeMap", METHOD_MAP},
	{191, 0, "MethodJitTailCallFailed", TAIL_CALL "FailReason:text " CLR},
	{192, 0, "MethodJitInliningFailed", INLINING "FailAlways:bool FailReason:text " CLR},
	{200, 0, "IncreaseMemoryPressure", "BytesAllocated:u64 " CLR},
	{201, 0, "DecreaseMemoryPressure", "BytesFreed:u64 " CLR},
	{202, 0, "GCMarkWithType", "HeapNum:u32 " CLR " Type:u32 Bytes:u64"},
	{203, 2, "GCJoin", "Heap:u32 JoinTime:u32 JoinType:u32 " CLR " JoinID:u32"},
	{204, 3, "GCPerHeapHistory",
	 CLR " FreeListAllocated:ptr FreeListRejected:ptr EndOfSegAllocated:ptr "
	     "CondemnedAllocated:ptr PinnedAllocated:ptr PinnedAllocatedAdvance:ptr "
	     "RunningFreeListEfficiency:u32 CondemnReasons0:u32 CondemnReasons1:u32 "
	     "CompactMechanisms:u32 ExpandMechanisms:u32 HeapIndex:u32 ExtraGen0Commit:ptr "
	     "Count:u32 Values:[Count]{SizeBefore:ptr FreeListBefore:ptr FreeObjBefore:ptr "
	     "SizeAfter:ptr FreeListAfter:ptr FreeObjAfter:ptr In:ptr PinnedSurv:ptr "
	     "NonePinnedSurv:ptr NewAllocation:ptr}"},
	{205, 2, "GCGlobalHeapHistory",
	 "FinalYoungestDesired:u64 NumHeaps:i32 CondemnedGeneration:u32 Gen0ReductionCount:u32 "
	 "Reason:u32 GlobalMechanisms:u32 " CLR " PauseMode:u32 MemoryPressure:u32 "
	 "CondemnReasons0:u32 CondemnReasons1:u32 Count:u32 Values:[Count]{Time:u32}"},
	{206, 0, "GenAwareBegin", "Count:u32 " CLR},
	{207, 0, "GenAwareEnd", "Count:u32 " CLR},
	/* The next two have objects as they are in memory, with padding. */
	{208, 0, "GCLOHCompact",
	 CLR " Count:u16 Values:[Count]{TimePlan:u32 TimeCompact:u32 TimeRelocate:u32 Padding:u32 "
	     "TotalRefs:ptr ZeroRefs:ptr}"},
	{209, 0, "GCFitBucketInfo",
	 CLR " BucketKind:u16 TotalSize:u64 Count:u16 "
	     "Values:[Count]{Index:u16 Padding:u16 Count:u32 Size:ptr}"},
	{240, 0, "DebugIPCEventStart", ""},
	{241, 0, "DebugIPCEventEnd", ""},
	{242, 0, "DebugExceptionProcessingStart", ""},
	{243, 0, "DebugExceptionProcessingEnd", ""},
	{250, 0, "ExceptionCatchStart", HANDLER},
	{251, 0, "ExceptionCatchStop", ""},
	{252, 0, "ExceptionFinallyStart", HANDLER},
	{253, 0, "ExceptionFinallyStop", ""},
	{254, 0, "ExceptionFilterStart", HANDLER},
	{255, 0, "ExceptionFilterStop", ""},
	{256, 0, "ExceptionThrownStop", ""},
	{260, 0, "CodeSymbols",
	 "ModuleId:u64 TotalChunks:u16 ChunkNumber:u16 ChunkLength:u32 Chunk:[ChunkLength]u8 " CLR},
	{270, 0, "EventSource", "EventID:i32 EventName:text EventSourceName:text Payload:text"},
	{280, 0, "TieredCompilationSettings", CLR " Flags:u32"},
	{281, 0, "TieredCompilationPause", CLR},
	{282, 0, "TieredCompilationResume", CLR " NewMethodCount:u32"},
	{283, 0, "TieredCompilationBackgroundJitStart", CLR " PendingMethodCount:u32"},
	{284, 0, "TieredCompilationBackgroundJitStop",
	 CLR " PendingMethodCount:u32 JittedMethodCount:u32"},
	{290, 0, "AssemblyLoadStart", LOADING},
	{291, 0, "AssemblyLoadStop", LOADING " Success:bool " RESULT " Cached:bool"},
	{292, 0, "ResolutionAttempted",
	 CLR " AssemblyName:text Stage:u16 AssemblyLoadContext:text Result:u16 " RESULT
	     " ErrorMessage:text"},
	{293, 0, "AssemblyLoadContextResolvingHandlerInvoked",
	 CLR " AssemblyName:text HandlerName:text AssemblyLoadContext:text " RESULT},
	{294, 0, "AppDomainAssemblyResolveHandlerInvoked",
	 CLR " AssemblyName:text HandlerName:text " RESULT},
	{295, 0, "AssemblyLoadFromResolveHandlerInvoked",
	 CLR " AssemblyName:text IsTrackedLoad:bool RequestingAssemblyPath:text "
	     "ComputedRequestedAssemblyPath:text"},
	{296, 0, "KnownPathProbed", CLR " FilePath:text Source:u16 Result:i32"},
	{297, 0, "JitInstrumentationData", INSTRUMENTATION " Data:[DataSize]u8"},
	{298, 0, "JitInstrumentationDataVerbose",
	 INSTRUMENTATION " ModuleID:u64 MethodToken:u32 " METHOD_NAME " Data:[DataSize]u8"},
	{299, 0, "ProfilerMessage", CLR " Message:text"},
	{300, 0, "ExecutionCheckpoint", CLR " Name:text Timestamp:i64"},
	{301, 0, "WaitHandleWaitStart", "WaitSource:u8 AssociatedObjectID:ptr " CLR},
	{302, 0, "WaitHandleWaitStop", CLR},
	{303, 0, "AllocationSampled",
	 "AllocationKind:u32 " CLR " TypeID:ptr TypeName:text Address:ptr ObjectSize:u64 "
	 "SampledByteOffset:u64"},
};

static const struct event_layout rundown_events[] = {
	{0, 0, "CLRStackWalkDCStart", STACK_WALK},
	{10, 0, "GCSettingsRundown",
	 "HardLimit:u64 LOHThreshold:u64 PhysicalMemoryConfig:u64 Gen0MinBudgetConfig:u64 "
	 "Gen0MaxBudgetConfig:u64 HighMemPercentConfig:u32 BitSettings:u32 " CLR},
	{141, 0, "MethodDCStart", METHOD_LOAD},
	{142, 0, "MethodDCEnd", METHOD_LOAD},
	{143, 0, "MethodDCStartVerbose", METHOD_LOAD_VERBOSE},
	{144, 0, "MethodDCEndVerbose", METHOD_LOAD_VERBOSE},
	{145, 0, "DCStartComplete", CLR},
	{146, 0, "DCEndComplete", CLR},
	{147, 0, "DCStartInit", CLR},
	{148, 0, "DCEndInit", CLR},
	{149, 0, "MethodDCStartILToNativeMap", METHOD_MAP},
	{150, 0, "MethodDCEndILToNativeMap", METHOD_MAP},
	{151, 0, "DomainModuleDCStart", DOMAIN_MODULE},
	{152, 0, "DomainModuleDCEnd", DOMAIN_MODULE},
	{153, 0, "ModuleDCStart", MODULE_LOAD},
	{154, 0, "ModuleDCEnd", MODULE_LOAD " NativeBuildID:text"},
	{155, 0, "AssemblyDCStart", ASSEMBLY_V0},
	{155, 1, "AssemblyDCStart", ASSEMBLY},
	{156, 0, "AssemblyDCEnd", ASSEMBLY_V0},
	{156, 1, "AssemblyDCEnd", ASSEMBLY},
	{157, 0, "AppDomainDCStart", DOMAIN},
	{158, 0, "AppDomainDCEnd", DOMAIN},
	{159, 0, "ThreadDC", THREAD_CREATED},
	{160, 0, "ModuleRangeDCStart", MODULE_RANGE},
	{161, 0, "ModuleRangeDCEnd", MODULE_RANGE},
	{187, 0, "RuntimeInformationDCStart", RUNTIME},
	{280, 0, "TieredCompilationSettingsDCStart", CLR " Flags:u32"},
	{300, 0, "ExecutionCheckpointDCEnd", CLR " Name:text Timestamp:i64"},
};

/* Without those of COM, WinRT, security and binding, which .NET on Linux does not send. */
static const struct event_layout private_events[] = {
	{2, 0, "GCSettings", "SegmentSize:u64 LargeObjectSegmentSize:u64 ServerGC:bool " CLR},
	{11, 0, "BGCBegin", CLR},
	{12, 0, "BGC1stNonConEnd", CLR},
	{13, 0, "BGC1stConEnd", CLR},
	{14, 0, "BGC2ndNonConBegin", CLR},
	{15, 0, "BGC2ndNonConEnd", CLR},
	{16, 0, "BGC2ndConBegin", CLR},
	{17, 0, "BGC2ndConEnd", CLR},
	{18, 0, "BGCPlanEnd", CLR},
	{19, 0, "BGCSweepEnd", CLR},
	{20, 0, "BGCDrainMark", "Objects:u64 " CLR},
	{21, 0, "BGCRevisit", "Pages:u64 Objects:u64 IsLarge:u32 " CLR},
	{22, 0, "BGCOverflow", "Min:u64 Max:u64 Objects:u64 IsLarge:u32 " CLR " GenNumber:u32"},
	{23, 0, "BGCAllocWaitBegin", "Reason:u32 " CLR},
	{24, 0, "BGCAllocWaitEnd", "Reason:u32 " CLR},
	{25, 0, "GCFullNotify", "GenNumber:u32 IsAlloc:u32 " CLR},
	{26, 0, "BGC1stSweepEnd", "GenNumber:u32 " CLR},
	{80, 0, "EEStartupStart", CLR},
	{81, 0, "EEStartupEnd", CLR},
	{82, 0, "EEConfigSetup", CLR},
	{83, 0, "EEConfigSetupEnd", CLR},
	{84, 0, "LdSysBases", CLR},
	{85, 0, "LdSysBasesEnd", CLR},
	{86, 0, "ExecExe", CLR},
	{87, 0, "ExecExeEnd", CLR},
	{88, 0, "Main", CLR},
	{89, 0, "MainEnd", CLR},
	{90, 0, "ApplyPolicyStart", CLR},
	{91, 0, "ApplyPolicyEnd", CLR},
	{92, 0, "LdLibShFolder", CLR},
	{93, 0, "LdLibShFolderEnd", CLR},
	{94, 0, "PrestubWorker", CLR},
	{95, 0, "PrestubWorkerEnd", CLR},
	{96, 0, "GetInstallationStart", CLR},
	{97, 0, "GetInstallationEnd", CLR},
	{98, 0, "OpenHModule", CLR},
	{99, 0, "OpenHModuleEnd", CLR},
	{100, 0, "ExplicitBindStart", CLR},
	{101, 0, "ExplicitBindEnd", CLR},
	{102, 0, "ParseXml", CLR},
	{103, 0, "ParseXmlEnd", CLR},
	{104, 0, "InitDefaultDomain", CLR},
	{105, 0, "InitDefaultDomainEnd", CLR},
	{106, 0, "InitSecurity", CLR},
	{107, 0, "InitSecurityEnd", CLR},
	{108, 0, "AllowBindingRedirs", CLR},
	{109, 0, "AllowBindingRedirsEnd", CLR},
	{110, 0, "EEConfigSync", CLR},
	{111, 0, "EEConfigSyncEnd", CLR},
	{112, 0, "FusionBinding", CLR},
	{113, 0, "FusionBindingEnd", CLR},
	{114, 0, "LoaderCatchCall", CLR},
	{115, 0, "LoaderCatchCallEnd", CLR},
	{116, 0, "FusionInit", CLR},
	{117, 0, "FusionInitEnd", CLR},
	{118, 0, "FusionAppCtx", CLR},
	{119, 0, "FusionAppCtxEnd", CLR},
	{120, 0, "Fusion2EE", CLR},
	{121, 0, "Fusion2EEEnd", CLR},
	{122, 0, "SecurityCatchCall", CLR},
	{123, 0, "SecurityCatchCallEnd", CLR},
	{151, 0, "CLRStackWalkPrivate", STACK_WALK},
	{158, 0, "ModuleRangeLoadPrivate", MODULE_RANGE " IBCType:u8 SectionType:u16"},
	{188, 0, "NgenBindEvent", CLR " BindingID:u64 ReasonCode:u32 AssemblyName:text"},
	{189, 0, "JittedMethodRichDebugInfo",
	 CLR " MethodID:u64 ReJITID:u64 ILVersionID:u64 ChunkIndex:u32 DataSize:u32 "
	     "Data:[DataSize]u8"},
	{191, 0, "FailFast",
	 "FailFastUserMessage:text FailedEIP:ptr OSExitCode:u32 ClrExitCode:u32 " CLR},
	{192, 0, "PrvFinalizeObject", "TypeID:ptr ObjectID:ptr " CLR " TypeName:text"},
	{194, 0, "PrvSetGCHandle", SET_HANDLE},
	{195, 0, "PrvDestroyGCHandle", "HandleID:ptr " CLR},
	{196, 0, "FusionMessageEvent", CLR " Prepend:bool Message:text"},
	{197, 0, "FusionErrorCodeEvent", CLR " Category:u32 ErrorCode:u32"},
	{199, 0, "PinPlugAtGCTime", "PlugStart:ptr PlugEnd:ptr GapBeforeSize:ptr " CLR},
	{201, 0, "MulticoreJit", CLR " String1:text String2:text Int1:i32 Int2:i32 Int3:i32"},
	{202, 0, "MulticoreJitMethodCodeReturned", CLR " ModuleID:u64 MethodID:u64"},
	{310, 0, "AllocRequest",
	 "LoaderHeapPtr:ptr MemoryAddress:ptr RequestSize:u32 Unused1:u32 Unused2:u64 " CLR},
};

static const struct event_layout stress_events[] = {
	{0, 0, "StressLogEvent", "Facility:u32 LogLevel:u8 Message:text8 " CLR},
	{1, 0, "CLRStackWalkStress", STACK_WALK},
};

static const struct event_layout sampler_events[] = {
	{0, 0, "ThreadSample", "Type:u32"},
};

static const struct event_layout eventpipe_events[] = {
	{1, 0, "ProcessInfo", "CommandLine:text OSInformation:text ArchInformation:text"},
};

/* Sorted by id, then version. */
static const struct event_provider {
	const char *name;
	const struct event_layout *v;
	size_t len;
} event_providers[] = {
#define PROVIDER(name, layouts)                                       \
	{                                                             \
		name, layouts, sizeof(layouts) / sizeof((layouts)[0]) \
	}
	PROVIDER("Microsoft-Windows-DotNETRuntime", runtime_events),
	PROVIDER("Microsoft-Windows-DotNETRuntimeRundown", rundown_events),
	PROVIDER("Microsoft-Windows-DotNETRuntimePrivate", private_events),
	PROVIDER("Microsoft-Windows-DotNETRuntimeStress", stress_events),
	PROVIDER("Microsoft-DotNETCore-SampleProfiler", sampler_events),
	PROVIDER("Microsoft-DotNETCore-EventPipe", eventpipe_events),
#undef PROVIDER
};

#define EVENT_PROVIDERS (sizeof(event_providers) / sizeof(event_providers[0]))

const struct event_layout *event_layout_find(const char *provider, uint32_t id, uint32_t version)
{
	const struct event_provider *p = event_providers;

	while (p < event_providers + EVENT_PROVIDERS && strcmp(p->name, provider) != 0)
		p++;
	if (p == event_providers + EVENT_PROVIDERS)
		return NULL;
	size_t low = 0, high = p->len;

	/* Finds the first layout behind the one that is wanted. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct event_layout *layout = &p->v[middle];

		if (layout->id < id || (layout->id == id && layout->version <= version))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && p->v[low - 1].id == id)
		return &p->v[low - 1];
	return low < p->len && p->v[low].id == id ? &p->v[low] : NULL;
}

const struct event_layout *event_layout_at(size_t i, const char **ret_provider)
{
	for (size_t p = 0; p < EVENT_PROVIDERS; p++) {
		if (i < event_providers[p].len) {
			*ret_provider = event_providers[p].name;
			return &event_providers[p].v[i];
		}
		i -= event_providers[p].len;
	}
	return NULL;
}
