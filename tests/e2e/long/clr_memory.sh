#!/usr/bin/env bash
# The test of JIT code in memory, with programs delivered in the ways that take the compiler minutes.
export CLR_MEMORY_KINDS="single r2r composite single-r2r"
export CLR_MEMORY_SETTINGS="DOTNET_EnableWriteXorExecute=0 DOTNET_gcServer=1"
export CLR_MEMORY_OLDER="wide-net-net8 wide-net-net9 wide-net-net8-single wide-net-net9-single wide-net-net8-composite"
exec bash "$TESTS/e2e/clr_memory.sh"
